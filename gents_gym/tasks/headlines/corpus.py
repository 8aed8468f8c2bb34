"""Reads a corpus folder: texts, embeddings and scores of headlines by split."""

import io
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gents_gym.checks import InputError, check_array
from gents_gym.files import as_path, digest, read_file
from gents_gym.parquet import read_parquet
from gents_gym.randomness import SPLITS
from gents_gym.schema import check_schema, positive, whole
from gents_gym.seals import check_seal, is_sha256, sha256, write_described

BUNDLED = Path(__file__).with_name("bundled")
FORMAT = "gents_gym.news.1"
SCORES = ("sentiment", "formality")  # φ_Z, in this order
TEXTS, VECTORS, MANIFEST = "headlines.parquet", "embeddings.safetensors", "manifest.json"
SCHEMA = {  # schema of the manifest
    "format": str,
    "about": str,
    "sizes": dict.fromkeys(SPLITS, positive),
    "dimensions": positive,
    "scores": {name: {str: float} for name in SCORES},
    "correlation": float,
    "plan": {
        "config": lambda value: isinstance(value, dict) and {"encoder", "pooling", "dimensions"} <= value.keys(),
        "rows": {"rows": whole, "empty": whole, "repeated": whole},
        "headlines": str,
        "space?": str,
    },
    "space": str,
    "sha256": {TEXTS: is_sha256, VECTORS: is_sha256, f"{MANIFEST}?": is_sha256},
}


class Projection(NamedTuple):
    """The affine map from an encoder's space to the one that a corpus is stored in."""

    center: np.ndarray  # (E,) float32
    basis: np.ndarray  # (E, F) float32

    def apply(self, embeddings: np.ndarray) -> np.ndarray:
        """Map (n, E) to (n, F)."""
        return (embeddings - self.center) @ self.basis

    @property
    def space(self) -> str:
        """A name for the space, derived from its numbers."""
        return digest(self.center, self.basis)[:16]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Headlines with embeddings, which agents see, and scores φ_Z, which are hidden."""

    folder: Path
    texts: np.ndarray  # (n,) of str
    embeddings: np.ndarray  # (n, F) float32
    scores: np.ndarray  # (n, 2) float32, mean 0 and variance 1 over the split "train"
    splits: dict[str, np.ndarray]  # the rows of "train", "validation" and "test"
    projection: "Projection"
    manifest: dict[str, Any]

    def __len__(self) -> int:
        """Return the number of headlines."""
        return len(self.texts)

    def __reduce__(self) -> Any:
        """Pickle only the folder's name, so that copies for worker processes stay small."""
        return load_corpus, (self.folder,)

    @property
    def content(self) -> str:
        """The first digits of the sha256 of the texts with their scores, and of the embeddings."""
        return " ".join(self.manifest["sha256"][name][:12] for name in (TEXTS, VECTORS))

    @cached_property
    def space(self) -> str:
        """The name of the embedding space: a model of one space does not fit another."""
        return self.projection.space


def write_corpus(
    folder: Path,
    headlines: list[str],
    splits: list[str],
    embeddings: np.ndarray,
    scores: np.ndarray,
    projection: Projection,
    manifest: dict[str, Any],
) -> None:
    """Write a corpus to ``folder``; the manifest is written last and completes it.

    Args:
        folder: A folder that exists.
        headlines: n texts.
        splits: The split of each.
        embeddings: (n, F); stored as float16.
        scores: φ_Z, (n, 2).
        projection: The map that gave the embeddings.
        manifest: Further entries of the manifest.
    """
    columns = {"headline": headlines, "split": pa.array(splits).dictionary_encode()}
    columns |= {name: scores[:, i].astype(np.float32) for i, name in enumerate(SCORES)}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    vectors = {"embeddings": embeddings.astype(np.float16), **projection._asdict()}
    value = {"format": FORMAT, **manifest, "space": projection.space}
    write_described(folder, MANIFEST, value, {TEXTS: buffer.getvalue(), VECTORS: save(vectors)})


def load_corpus(folder: str | Path | None = None) -> Corpus:
    """Read a corpus that `gents-gym news prepare` wrote; None: the bundled one, whose texts are synthetic."""
    path = BUNDLED if folder is None else as_path("corpus", folder).expanduser().resolve()
    try:
        manifest = read_file(path / MANIFEST)
    except OSError as error:
        rule = "corpus must be a folder that `gents-gym news prepare` has finished"
        raise InputError(f"{rule}, got '{folder}' without a readable {MANIFEST} ({error.strerror})") from error
    return _load(path, manifest)


@lru_cache(maxsize=4)  # the manifest holds the files' hashes, so other content has another key
def _load(folder: Path, text: bytes) -> Corpus:
    manifest = _read_manifest(folder, text)
    files = {name: _whole(folder, name, manifest) for name in (TEXTS, VECTORS)}
    try:
        texts, scores, splits = _read_texts(files[TEXTS], manifest)
        embeddings, projection = _read_vectors(files[VECTORS], manifest, len(texts))
    except (ValueError, KeyError, TypeError, pa.ArrowException, SafetensorError) as error:
        raise _damaged(folder, error) from error
    for array in (embeddings, scores, texts):
        array.flags.writeable = False
    return Corpus(folder, texts, embeddings, scores, splits, projection, manifest)


def _read_manifest(folder: Path, text: bytes) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(text)
        form = manifest["format"]
        if form == FORMAT:
            check_schema(manifest, SCHEMA)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(folder, error) from error
    if form != FORMAT:
        raise InputError(f"corpus '{folder}' has a {MANIFEST} of the format {form!r}, but {FORMAT!r} is read here")
    check_seal(folder / MANIFEST, text, manifest["sha256"].get(MANIFEST))
    return manifest


def _damaged(folder: Path, error: Exception) -> InputError:
    return InputError(f"corpus '{folder}' is damaged: its manifest.json and files do not agree ({error!r})")


def _read_texts(data: bytes, manifest: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return texts (n,), scores (n, 2) and the rows of each split. Raises a ValueError if they are wrong."""
    table = read_parquet(data)
    if table.column_names != ["headline", "split", *SCORES] or any(column.null_count for column in table.columns):
        raise ValueError(f"{TEXTS} has the columns {table.column_names}, or gaps")
    texts, split = (np.array(table.column(name).to_pylist(), object) for name in ("headline", "split"))
    columns = [check_array(name, table.column(name).to_numpy(), "(n,)", texts.shape) for name in SCORES]
    splits = {name: np.flatnonzero(split == name) for name in SPLITS}
    sizes = {name: len(rows) for name, rows in splits.items()}
    if sizes != manifest["sizes"] or sum(sizes.values()) != len(texts) or not all(type(text) is str for text in texts):
        raise ValueError(f"{TEXTS} has {len(texts)} rows, {sizes}")
    return texts, np.stack(columns, axis=1), splits


def _read_vectors(data: bytes, manifest: dict[str, Any], n_texts: int) -> tuple[np.ndarray, Projection]:
    """Return embeddings (n, F) and the map that gave them. Raises a ValueError if they are wrong."""
    vectors, size = load(data), manifest["dimensions"]
    embeddings = check_array("embeddings", vectors["embeddings"], "(n, F)", (n_texts, size))
    center = check_array("center", vectors["center"], "(E,)", (-1,))
    projection = Projection(center, check_array("basis", vectors["basis"], "(E, F)", (len(center), size)))
    if projection.space != manifest["space"]:
        raise ValueError(f"{VECTORS} is of the space {projection.space}, not {manifest['space']}")
    return embeddings, projection


def _whole(folder: Path, name: str, manifest: dict[str, Any]) -> bytes:
    """Return the file's bytes. Raises if they do not match the manifest."""
    try:
        data = read_file(folder / name)
    except OSError as error:
        raise InputError(f"corpus '{folder}' is damaged: {name} cannot be read ({error.strerror})") from error
    if sha256(data) != manifest["sha256"][name]:
        raise InputError(f"corpus '{folder}' is damaged: {name} does not match its sha256 in {MANIFEST}")
    return data
