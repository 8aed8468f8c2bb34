"""Makes a corpus from a file of headlines: reads, splits, embeds, scores, normalises and writes; resumable."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save

from gents_gym.checks import InputError, check_array, check_integer, check_number
from gents_gym.files import PLAN, as_path, open_run, own_folder, remove_parts, write_whole
from gents_gym.seals import BLANK, note, read_sealed_tensors, seal
from gents_gym.tasks.headlines import score
from gents_gym.tasks.headlines.config import PrepareConfig
from gents_gym.tasks.headlines.corpus import MANIFEST, SCORES, Corpus, Projection, load_corpus, write_corpus
from gents_gym.tasks.headlines.models import Classifier, Encoder
from gents_gym.tasks.headlines.read import read_headlines

PART = 512  # headlines between two saves
SMALLEST = 20  # least number of headlines in a split
MIND_SIZED = 100_000  # number of headlines from which the paper's split sizes apply
PAPER_SPLIT, DEFAULT_SPLIT = (20_000, 10_000), (0.6, 0.15)  # train and validation; the rest is the test split
FOLDS = 5  # folds of the ridge regressions that measure how well embeddings predict scores


def prepare(config: PrepareConfig, out: str | Path, on_part: Callable[[int, int], None] | None = None) -> Corpus:
    """Write the corpus to the folder ``out`` and return it.

    If the folder holds an unfinished run of the same configuration and headlines, the run continues and ends with the
    same bytes; a finished one is left unchanged.

    Args:
        config: How to prepare it.
        out: A new or empty folder, or that of the run to continue.
        on_part: Called with the number of headlines done and the total number.
    """
    out = as_path("out", out)
    headlines, counts = read_headlines(config.headlines, config.format, config.column, config.max_length)
    splits = split(headlines, config.train, config.validation, config.seed)
    target = None if config.space is None else load_corpus(None if config.space == "bundled" else config.space)
    _check_dimensions(config, splits.count("train"), target)
    told = {**asdict(config), "headlines": Path(config.headlines).name}
    plan = json.loads(json.dumps({"config": told, "rows": counts, "headlines": _digest(headlines)}))
    if target is not None:
        plan["space"] = target.space  # another corpus may be in that folder by now
    if not _finished(out, plan):
        models = _models(config)  # wrong names are found before the folder is made
        trial = models(["A headline"])  # a missing package is found here, not after hours of embedding
        _check_width(trial["embeddings"].shape[1], config.dimensions, target)
        with open_run(out, plan):
            _check_same(out / "parts", trial)
            embeddings, scores = _compute(headlines, models, out / "parts", on_part)
            _finish(out, plan, headlines, splits, embeddings, scores, target)
            _finished(out, plan)
    return load_corpus(out)


def split(headlines: list[str], train: float | None, validation: float | None, seed: int) -> list[str]:
    """Return each headline's split; it depends on the headlines and the seed, not on their order."""
    n = len(headlines)
    check_integer("seed", seed, 0)
    defaults = PAPER_SPLIT if n >= MIND_SIZED else DEFAULT_SPLIT
    sizes = []
    for name, given, default in (("train", train, defaults[0]), ("validation", validation, defaults[1])):
        value = default if given is None else check_number(name, given, 0, above=True)
        sizes.append(round(value * n) if value < 1 else int(value))
    for name, size in zip(("train", "validation", "test"), (*sizes, n - sum(sizes)), strict=True):
        if size < SMALLEST:
            hint = "give more headlines, or other sizes by --train and --validation"
            raise InputError(f"the split {name!r} must have at least {SMALLEST} headlines, got {size} of {n}: {hint}")
    order = sorted(range(n), key=lambda i: hashlib.sha256(f"{seed}:{headlines[i]}".encode()).digest())
    splits = ["test"] * n
    for rank, i in enumerate(order[: sum(sizes)]):
        splits[i] = "train" if rank < sizes[0] else "validation"
    return splits


def _check_dimensions(config: PrepareConfig, n_train: int, target: Corpus | None) -> None:
    if config.dimensions is not None:
        if target is not None:
            raise InputError(f"dimensions must be left out if space is given, got {config.dimensions}")
        if check_integer("dimensions", config.dimensions, 1) > n_train:
            raise InputError(f"dimensions must be at most the {n_train} training headlines, got {config.dimensions}")
    if target is not None:
        theirs = target.manifest["plan"]["config"]
        for name in ("encoder", "pooling"):
            if theirs[name] != getattr(config, name):
                rule = (
                    f"{name} must be {theirs[name]!r}, as that of the corpus '{config.space}' whose space is to be used"
                )
                raise InputError(f"{rule}, got {getattr(config, name)!r}")


def _check_width(width: int, dimensions: int | None, target: Corpus | None) -> None:
    if dimensions is not None and dimensions > width:
        raise InputError(f"dimensions must be at most the encoder's {width}, got {dimensions}")
    if target is not None and (wanted := len(target.projection.center)) != width:
        raise InputError(f"encoder must have {wanted} dimensions, as that of the corpus given as space, got {width}")


def _digest(headlines: list[str]) -> str:
    return hashlib.sha256("\n".join(headlines).encode()).hexdigest()


def _finished(out: Path, plan: dict[str, Any]) -> bool:
    """Return whether the folder holds this corpus, finished; working files are removed."""
    path = out / MANIFEST
    if not path.exists() or load_corpus(out).manifest.get("plan") != plan:
        return False
    (out / PLAN).unlink(missing_ok=True)
    shutil.rmtree(out / "parts", ignore_errors=True)
    remove_parts(out)
    return True


class _Models(NamedTuple):
    encoder: Callable[[list[str]], np.ndarray]
    scorers: tuple[Callable[[list[str]], np.ndarray], ...]  # in the order of SCORES

    def __call__(self, headlines: list[str]) -> dict[str, np.ndarray]:
        """Return embeddings (n, E) and raw scores (n, 2)."""
        scores = np.stack([scorer(headlines) for scorer in self.scorers], axis=1)
        return {"embeddings": self.encoder(headlines), "scores": scores}


def _models(config: PrepareConfig) -> _Models:
    offline = {"sentiment": {"vader": score.sentiment}, "formality": {"f-score": score.formality}}
    scorers = []
    for kind in SCORES:
        name, label = getattr(config, kind), getattr(config, f"{kind}_label")
        scorers.append(offline[kind].get(name) or Classifier(kind, name, label, config.source))
    return _Models(Encoder(config.encoder, config.source, config.pooling), tuple(scorers))


def _check_same(folder: Path, trial: dict[str, np.ndarray]) -> None:
    """Raise if the models' ``trial`` differs from that of the run to continue: folders and hubs change."""
    path = own_folder(folder) / "trial.safetensors"
    kept = _saved(path, 1)
    if kept is None:
        _save(path, trial)
    elif any(
        kept[name].shape != trial[name].shape or not np.allclose(kept[name], trial[name], rtol=1e-3, atol=1e-3)
        for name in trial
    ):
        rule = "encoder, sentiment and formality must be the models that the unfinished run began with"
        raise InputError(f"{rule}, got others: remove '{folder.parent}' and start again")


def _compute(
    headlines: list[str], models: _Models, folder: Path, on_part: Callable[[int, int], None] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings (n, E) and raw scores (n, 2); each part is saved when it is finished."""
    remove_parts(folder)
    parts: list[dict[str, np.ndarray]] = []
    for first in range(0, len(headlines), PART):
        path, texts = folder / f"{first:09d}.safetensors", headlines[first : first + PART]
        part = _saved(path, len(texts), parts[0] if parts else None)
        if part is None:
            part = models(texts)
            _save(path, part)
        parts.append(part)
        if on_part is not None:
            on_part(first + len(texts), len(headlines))
    joined = [np.concatenate([part[name] for part in parts]) for name in ("embeddings", "scores")]
    return joined[0], joined[1]


def _saved(path: Path, n_texts: int, first: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray] | None:
    """Return the saved part, which has ``n_texts`` headlines; None if it is not whole and must be computed again.

    Args:
        path: The file.
        n_texts: The number of its headlines.
        first: The first part, whose width it must have.
    """
    if not path.exists():
        return None
    try:
        part, labels = read_sealed_tensors(path, "numpy")
        width = -1 if first is None else first["embeddings"].shape[1]
        if labels or part.keys() != {"embeddings", "scores"}:
            raise ValueError(f"it holds {', '.join([*part, *labels])}")
        check_array("embeddings", part["embeddings"], "(n, E)", (n_texts, width))
        check_array("scores", part["scores"], "(n, 2)", (n_texts, len(SCORES)))
        return part
    except (SafetensorError, OSError, ValueError) as error:
        note(f"'{path}' is not a whole part, and is computed again ({error})")
        return None


def _save(path: Path, part: dict[str, np.ndarray]) -> None:
    write_whole(path, seal(save(part, metadata={"sha256": BLANK})))


def _finish(
    out: Path,
    plan: dict[str, Any],
    headlines: list[str],
    splits: list[str],
    embeddings: np.ndarray,
    raw: np.ndarray,
    target: Corpus | None,
) -> None:
    """Project and normalise by the training split, and write all."""
    train = np.array([name == "train" for name in splits])
    projection = target.projection if target else fit_projection(embeddings[train], plan["config"]["dimensions"])
    stored = projection.apply(embeddings).astype(np.float16)
    mean, spread = raw[train].mean(axis=0), raw[train].std(axis=0)
    for name, value in zip(SCORES, spread, strict=True):
        if not value > 0:
            raise InputError(f"{name} must vary over the training headlines, got a standard deviation of {value:g}")
    scores = (raw - mean) / spread
    predicted = [predictability(stored[train], scores[train, i]) for i in range(len(SCORES))]
    manifest = {
        "about": plan["config"]["about"],
        "sizes": {name: splits.count(name) for name in ("train", "validation", "test")},
        "dimensions": int(stored.shape[1]),
        "scores": {
            name: {
                "mean": float(mean[i]),
                "std": float(spread[i]),
                "share_of_commonest_value": _commonest(raw[:, i]),
                "ridge_r2": predicted[i],
            }
            for i, name in enumerate(SCORES)
        },
        "correlation": float(np.corrcoef(scores[train].T)[0, 1]),
        "plan": plan,
    }
    write_corpus(out, headlines, splits, stored, scores, projection, manifest)


def fit_projection(embeddings: np.ndarray, dimensions: int | None) -> Projection:
    """Return the map to principal components, or to all dimensions, of mean 0 and average variance 1.

    One factor scales all dimensions, so that distances keep their proportions.

    Args:
        embeddings: Those of the training split, (n, E).
        dimensions: F; None: E, without rotation.
    """
    center = embeddings.mean(axis=0, dtype=np.float64)
    if dimensions is None:
        basis = np.eye(embeddings.shape[1])
    else:
        _, vectors = np.linalg.eigh(np.cov(embeddings, rowvar=False, dtype=np.float64))
        basis = vectors[:, ::-1][:, :dimensions]  # (E, F), the largest first
        basis = basis * np.sign(
            basis[np.abs(basis).argmax(axis=0), np.arange(dimensions)]
        )  # a sign is arbitrary: fix it
    scale = np.sqrt(((embeddings - center) @ basis).var(axis=0).mean())
    return Projection(center.astype(np.float32), np.ascontiguousarray(basis / scale, dtype=np.float32))


def predictability(embeddings: np.ndarray, values: np.ndarray) -> float:
    """Return the cross-validated R² of a ridge regression of ``values`` (n,) on ``embeddings`` (n, F)."""
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold, cross_val_score

    folds = KFold(FOLDS, shuffle=True, random_state=0)
    ridge = RidgeCV(np.logspace(-2, 4, 7))
    return float(cross_val_score(ridge, embeddings.astype(np.float64), values, cv=folds).mean())


def _commonest(values: np.ndarray) -> float:
    return float(np.unique(values, return_counts=True)[1].max() / len(values))
