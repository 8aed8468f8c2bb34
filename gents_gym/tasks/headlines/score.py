"""Scores headlines without a network: VADER's sentiment and a formality measure from parts of speech."""

import re
import warnings
from collections.abc import Sequence

import numpy as np

from gents_gym.checks import need

# What a word tagger must not see: "won't" is two words, a possessive is not a word.
CONTRACTIONS = [
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bcan't\b"), "can not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'d\b"), " would"),
    (re.compile(r"\b(it|that|here|there|what|who|where|how|he|she|let)'s\b"), r"\1 is"),
    (re.compile(r"'s\b"), ""),
]
ARTICLES = {"a", "an", "the"}
FORMAL = ("NN", "JJ", "IN", "TO")  # nouns, adjectives, prepositions: beginnings of Penn tags
DEICTIC = ("PRP", "WP", "VB", "MD", "RB", "WRB", "UH")  # pronouns, verbs, adverbs, interjections


def sentiment(headlines: Sequence[str]) -> np.ndarray:
    """Return VADER's compound scores, in [-1, 1]; a headline without a word of its lexicon scores exactly 0."""
    vader = need("vaderSentiment.vaderSentiment", "the sentiment score 'vader'", "news").SentimentIntensityAnalyzer()
    return np.array([vader.polarity_scores(text)["compound"] for text in headlines], np.float64)


def formality(headlines: Sequence[str]) -> np.ndarray:
    """Return the F-score of Heylighen and Dewaele, in [0, 100].

    F = (nouns + adjectives + prepositions + articles − pronouns − verbs − adverbs − interjections + 100) / 2, in
    percent of all words. The tags come from TextBlob, which uses a lexicon with rules and no trained model, so its
    mistakes are the same everywhere. Headlines are tagged in lower case, because in a title every word would look like
    a name.
    """
    tag = need("textblob.en", "the formality score 'f-score'", "news").tag
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # TextBlob reads its lexicon and never closes it
        return np.array([_f_score(tag(_spell_out(text))) for text in headlines], np.float64)


def _spell_out(text: str) -> str:
    text = text.lower().replace("’", "'")
    for pattern, words in CONTRACTIONS:
        text = pattern.sub(words, text)
    return text


def _f_score(tagged: list[tuple[str, str]]) -> float:
    """Return F of (word, Penn tag) pairs; 50, the middle, if there is no word."""
    words = [(word, tag) for word, tag in tagged if any(letter.isalnum() for letter in word)]
    formal = sum(word in ARTICLES or tag.startswith(FORMAL) for word, tag in words)
    deictic = sum(word not in ARTICLES and tag.startswith(DEICTIC) for word, tag in words)
    return 50 * (1 + (formal - deictic) / max(len(words), 1))
