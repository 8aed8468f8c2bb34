"""Holds the options for preparing a corpus; the command line is made from them."""

from dataclasses import dataclass, field
from pathlib import Path

from gents_gym.tasks.headlines.models import Source


@dataclass(frozen=True)
class PrepareConfig:
    """How to prepare a corpus."""

    headlines: Path
    """File of headlines: MIND's news.tsv, CSV or TSV with a header, JSON lines or array, or one per line (.txt)."""
    format: str = "auto"
    """mind, csv, tsv, jsonl or lines; auto: by the file's ending and first line."""
    column: str | None = None
    """Column of a CSV, TSV or JSON file, in any case; none: headline or title."""
    max_length: int = 500
    """Largest number of characters in a headline."""
    encoder: str = "minilm"
    """minilm (packaged, offline), or a transformers model given by its folder or its name on the hub."""
    pooling: str = "mean"
    """mean: average over the tokens; cls: the first token."""
    dimensions: int | None = None
    """Principal components to keep; none: all of the encoder's dimensions."""
    space: str | None = None
    """Corpus whose embedding space is used ("bundled", or a folder), so that its models fit; none: a new space."""
    sentiment: str = "vader"
    """vader (lexicon, offline), or a transformers classifier."""
    sentiment_label: str = "positive"
    """Label whose probability is the sentiment, if the score is a classifier."""
    formality: str = "f-score"
    """f-score (parts of speech, offline), or a transformers classifier."""
    formality_label: str = "formal"
    """Label whose probability is the formality, if the score is a classifier."""
    train: float | None = None
    """Share (below 1) or number of training headlines; none: 0.6, or 20,000 from 100,000 on, as in the paper."""
    validation: float | None = None
    """Share or number of validation headlines; none: 0.15, or 10,000 from 100,000 headlines on."""
    seed: int = 0
    """Seed of the split."""
    about: str = ""
    """Description of the headlines, for the manifest."""
    source: Source = field(default_factory=Source)
