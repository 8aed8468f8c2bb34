"""Shared by studies: their folder, the text of their pages, and their progress over several evaluations."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from gents_gym.checks import InputError, check_choice
from gents_gym.drawing.style import SOFTWARE
from gents_gym.evaluation.progress import Progress
from gents_gym.evaluation.rollout import Rollout
from gents_gym.evaluation.store import Evaluation, load_results
from gents_gym.files import as_path

Tell = Callable[[Progress], None]


@dataclass(frozen=True)
class PartProgress(Progress):
    """The progress of a study in one of its parts."""

    part: str = ""

    def __str__(self) -> str:
        return f"{self.part}: {super().__str__()}"


class Parts:
    """Combines the progress of several consecutive evaluations."""

    def __init__(self, tell: Tell | None, weights: Sequence[float]) -> None:
        """Begin before the first part.

        Args:
            tell: Called with the progress; None: nothing is called.
            weights: The amount of work of each part.
        """
        self._tell, self._weights, self._at = tell, list(weights), -1

    def begin(self, part: str) -> Tell:
        """Start the next part; return the function that its evaluation calls."""
        self._at += 1
        before, own, total = sum(self._weights[: self._at]), self._weights[self._at], sum(self._weights)

        def tell(now: Progress) -> None:
            if self._tell is not None:
                values = {field.name: getattr(now, field.name) for field in fields(Progress)}
                share = (before + own * now.share) / total
                self._tell(PartProgress(**{**values, "share": share, "part": part}))

        return tell


def open_study(out: str | Path, name: str, title: str) -> Path:
    """Make the folder, or raise if that fails or a file of the study's name in it is not a study's."""
    out = as_path("out", out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, mark in ((out / f"{name}.md", f"# {title}\n"), (out / f"{name}.png", SOFTWARE)):
            if path.exists() and mark.encode() not in path.read_bytes()[:400]:
                raise InputError(f"'{path}' is not of a study: move it away, and start again")
    except OSError as error:
        raise InputError(
            f"out must be a folder that can be written, got '{out}' ({error.strerror or error})"
        ) from error
    return out


def choose_parts(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the requested parts of a study, in the study's order; all, if none is named."""
    for name in names:
        check_choice("regime", name, known)
    return [name for name in known if name in names or not names]


def read_records(folder: Path, seed: int) -> dict[str, dict[str, Rollout]]:
    """Return what an evaluation's folder holds so far, by environment and agent; {} if there is nothing."""
    found = read_evaluation(folder, seed)
    return {} if found is None else found.records


def read_evaluation(folder: Path, seed: int) -> Evaluation | None:
    """Return what an evaluation's folder holds so far; None if there is nothing."""
    if not (folder / "manifest.json").exists():
        return None
    found = load_results(folder)
    if (there := found.manifest["run"]["seed"]) != seed:
        raise InputError(
            f"out must be a new folder or that of the same study: seed is {there} in '{folder}', {seed} here"
        )
    return found


def wrap(text: str) -> str:
    """Return paragraphs with lines of at most 100 characters."""
    wrapper = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(wrapper.fill(part) for part in text.strip().split("\n\n"))
