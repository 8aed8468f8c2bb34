"""Kills commands and tampers with their files for a given time, and prints what was tried and survived.

    python tests/torture.py --seconds 3600 --seed 1

A command that was killed, by SIGKILL to all its processes at a random moment, is started again until it ends, and must
leave the bytes of one that was never killed. A file that was tampered with must be refused in one clear line, or give
the same numbers. The first violation ends the script with the folder that shows it; the seed repeats it.
Leave the source alone while it runs: results record its state, and another state refuses to go on with them.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from gents_gym import EvaluationConfig, InputError, Tasks, evaluate, load_model, load_results
from gents_gym.evaluation.sealed import json_bytes
from gents_gym.seals import BLANK, seal
from gents_gym.tasks.headlines.corpus import BUNDLED, load_corpus
from gents_gym.tasks.synthetic import Synthetic

ENV = "gents_gym/Synthetic-v0(horizon=20)"
CONFIG = EvaluationConfig(("random", "linucb", "oracle"), (ENV,), tasks=6, block=2)
COMMANDS = {  # what is killed, and the files that must come out the same
    "evaluate": ["evaluate", "--env", ENV, "--agents", *CONFIG.agents, "--tasks", "6", "--block", "2"],
    "train": ["train", "--actions", "40", "--rows", "20", "--horizon", "20", "--epochs", "6"],
}
LONG = {"news prepare": ["news", "prepare", "--headlines", "headlines.txt", "--dimensions", "8"]}
PATIENCE = 300  # seconds that no command takes
VALUES = (None, True, 0, -1, 10**13, 1.5, "", "x", "os:system(command=false)", [], {}, [1], {"a": []})


class Violation(Exception):  # noqa: N818
    """A promise that was not kept."""


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files except those that record times."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name not in ("times", "tensorboard"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command in its own process group."""
    command = [sys.executable, "-m", "gents_gym.cli", *arguments, "--out", "out"]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@contextlib.contextmanager
def alarm(what: str) -> Iterator[None]:
    """Raise if something runs without end."""

    def stop(*_: object) -> None:
        raise Violation(f"{what} took more than {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Torture:
    """Tries one thing after the other."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Make what is tampered with; ``folder`` is kept if a promise is broken."""
        self.folder, self.random, self.tried = folder, random.Random(seed), Counter[str]()
        self.whole: dict[str, tuple[dict[str, bytes], float]] = {}
        evaluate(CONFIG, folder / "results", workers=1)
        Synthetic(n_actions=2, horizon=3).sample(0, range(2)).save(folder / "tasks")
        load_model("synthetic-filter").save_pretrained(folder / "model", {"seed": 3})

    def kill(self, name: str, arguments: list[str]) -> None:
        """Kill a command until it ends, and compare."""
        if name not in self.whole:
            self.whole[name] = self._undisturbed(name, arguments)
        expected, seconds = self.whole[name]
        place = self._place(name)
        for attempt in range(100):
            process = start(arguments, place)
            with contextlib.suppress(subprocess.TimeoutExpired):  # later attempts are given more time
                process.wait(self.random.uniform(0, seconds * (0.5 + attempt / 2)))
            ended = process.poll() is not None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            _, complaint = process.communicate(timeout=PATIENCE)
            if ended:
                break
            self.tried[f"kills of {name}"] += 1
        if process.returncode != 0:
            raise Violation(f"{name} ended with status {process.returncode} after {attempt} kills: {complaint}")
        if content(place / "out") != expected:
            raise Violation(f"{name} left other bytes after {attempt} kills: {complaint}")
        self.tried[f"{name} ended with the same bytes"] += 1
        shutil.rmtree(place)

    def _place(self, name: str) -> Path:
        place = Path(tempfile.mkdtemp(prefix=f"{name.replace(' ', '-')}-", dir=self.folder))
        if name in LONG:
            from gents_gym.tasks.headlines.grammar import invent

            (place / "headlines.txt").write_text("\n".join(invent(1200, 0)) + "\n")
        return place

    def _undisturbed(self, name: str, arguments: list[str]) -> tuple[dict[str, bytes], float]:
        place, started = self._place(name), time.perf_counter()
        process = start(arguments, place)
        _, complaint = process.communicate(timeout=PATIENCE)
        if process.returncode != 0:
            raise Violation(f"{name} does not run at all: {complaint}")
        return content(place / "out"), time.perf_counter() - started

    def tamper(self, name: str, source: Path, read: Callable[[Path], object]) -> None:
        """Change something in a copy of files, and read it; ``read`` returns what must stay the same."""
        copy = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder)) / source.name
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
        files = sorted(path for path in copy.rglob("*") if path.is_file()) if copy.is_dir() else [copy]
        path = self.random.choice(files)
        how = self._damage(path)
        with alarm(f"reading {path} ({how})"):
            try:
                same = read(copy) == read(source)
            except InputError as error:
                if len(str(error).strip().splitlines()) != 1:
                    raise Violation(f"{path} ({how}) is refused with {error!r}") from error
                self.tried[f"changes to {name}: refused"] += 1
            else:
                if not same:
                    raise Violation(f"{path} ({how}) was accepted, and gives other numbers")
                self.tried[f"changes to {name}: harmless"] += 1
        shutil.rmtree(copy.parent)

    def _damage(self, path: Path) -> str:
        data, pick = path.read_bytes(), self.random
        how = pick.choice(["flip", "cut", "zeros", "empty", "swap", "fifo", "device", "missing", "forge"])
        at, size = pick.randrange(len(data)), pick.choice([1, 16, 400])
        path.unlink()
        if how == "fifo":
            os.mkfifo(path)
        elif how == "device":
            path.symlink_to("/dev/zero")
        elif how == "forge" and path.suffix == ".json":
            path.write_bytes(self._forged(json.loads(data), path.name))
        elif how != "missing":
            changed = {
                "flip": data[:at] + bytes([data[at] ^ 1 << pick.randrange(8)]) + data[at + 1 :],
                "cut": data[:at] + data[at + size :],
                "zeros": data[:at] + b"\0" * size + data[at + size :],
                "swap": data[size:] + data[:size],
            }
            path.write_bytes(changed.get(how, b""))
        return how

    def _forged(self, value: dict[str, object], name: str) -> bytes:
        """Return the JSON object of the file ``name`` with one entry changed, and the right seal."""
        sealed = isinstance(value.get("sha256"), str)
        inner = value
        while True:
            key = self.random.choice(sorted(inner))
            if not isinstance(inner[key], dict) or not inner[key] or self.random.random() < 0.3:
                inner[key] = self.random.choice(VALUES)
                break
            inner = inner[key]  # type: ignore[assignment]
        if sealed:
            value.pop("sha256", None)
            return json_bytes(value)
        if isinstance(hashes := value.get("sha256"), dict):
            hashes[name] = BLANK
        return seal(json.dumps(value).encode())


def results_numbers(folder: Path) -> object:
    """Return what an evaluation's folder says, once it was gone on with."""
    with contextlib.redirect_stderr(None):
        found = evaluate(CONFIG, folder, workers=1) if folder.parent.name.startswith("results-") else None
    found = found or load_results(folder)
    return [(agent, each.actions.tobytes(), each.rewards.tobytes()) for agent, each in found.records[ENV].items()]


def corpus_numbers(folder: Path) -> object:
    """Return what a corpus says."""
    corpus = load_corpus(folder)
    return corpus.texts.tolist(), corpus.scores.tobytes(), corpus.embeddings.tobytes()


def model_numbers(folder: Path) -> object:
    """Return what a model's folder says."""
    return {name: tensor.numpy().tobytes() for name, tensor in load_model(folder).state_dict().items()}


def torture(seconds: float, seed: int, folder: Path) -> Counter[str]:
    """Return how often what was tried, all of it survived.

    Args:
        seconds: How long.
        seed: Of what is tried.
        folder: A new folder.
    """
    trial, ends = Torture(folder, seed), time.monotonic() + seconds
    kills = {**COMMANDS, **(LONG if seconds >= 600 else {})}
    while True:
        for name, arguments in kills.items():
            trial.kill(name, arguments)
            for _ in range(10):
                trial.tamper("results", folder / "results", results_numbers)
                trial.tamper("tasks", folder / "tasks", lambda path: Tasks.load(path).content_hash)
                trial.tamper("corpus", BUNDLED, corpus_numbers)
                trial.tamper("model", folder / "model", model_numbers)
            if time.monotonic() > ends:
                return trial.tried


def main() -> None:
    """Run for the given time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int(np.random.SeedSequence().entropy) % 10**6)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    print(f"seed {given.seed}, {given.seconds:g} s, in {folder}", flush=True)
    started = time.monotonic()
    for what, count in sorted(torture(given.seconds, given.seed, folder).items()):
        print(f"{count:7d}  {what}")
    print(f"all survived, in {time.monotonic() - started:.0f} s")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
