"""Kills a process that decides and learns live, again and again, and checks that nothing is lost or counted twice.

    python tests/live/kills.py --kills 200 --seed 1

Each process opens the same store and works with several threads: decisions in two streams, outcomes late and in any
order, actions that come and go. What a call returned is noted in a file, and SIGKILL arrives at a random moment. In the
end the noted calls must be in the store, once each, and a process that was never killed, given the same calls, must
have made the same decisions with the same probabilities, and believe the same to the bit. SIGKILL leaves the system's
caches alone, so this says nothing of power cuts: these are SQLite's to survive.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from gents_gym.checks import InputError
from gents_gym.live.live import Live
from gents_gym.live.store import Event, Store, unpack

STREAMS = ("shop", "news")
THREADS = 3
PATIENCE = 60.0  # seconds that no start takes


class Violation(Exception):  # noqa: N818
    """A promise that was not kept."""


def open_live(path: Path) -> Live:
    """Open the store with few rows and frequent snapshots, so that all of it is used."""
    return Live(path, "ts-gen(m=4)", "synthetic-filter", window=60, snapshot_every=20)


class Worker:
    """A process that works until it is killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Open the store, with whatever earlier processes left there."""
        self._notes = os.open(folder / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._live, self._seed = open_live(folder / "live.db"), seed
        self._waiting, self._actions = list[int](), {name: list[str]() for name in STREAMS}
        for event in self._live._store.events():
            self._take_up(event)

    def _take_up(self, event: Event) -> None:
        if event.kind == "decide":
            self._waiting.append(event.seq)
        elif event.kind == "outcome":
            self._waiting.remove(int(event.decision or 0))
        elif event.kind == "add":
            self._actions[event.stream].append(str(event.action))
        else:
            self._actions[event.stream].remove(str(event.action))

    def note(self, *what: object) -> None:
        """Write down what a call returned; a line is written whole."""
        os.write(self._notes, (json.dumps(what) + "\n").encode())

    def run(self) -> None:
        """Work without end."""
        rng = np.random.default_rng(self._seed)
        for name in STREAMS:
            while len(self._actions[name]) < 3:
                self._add(name, rng)
        self.note("ready", os.getpid())
        for i in range(THREADS):
            threading.Thread(target=self._work, args=(np.random.default_rng([self._seed, i]), i == 0)).start()

    def _add(self, stream: str, rng: np.random.Generator) -> None:
        name = f"item-{rng.integers(2**62)}"
        self._live.add(name, rng.normal(size=2), stream=stream)
        self._actions[stream].append(name)
        self.note("add", stream, name)

    def _work(self, rng: np.random.Generator, turnover: bool) -> None:
        try:
            while True:
                self._decide(rng)
                for _ in range(rng.integers(3)):
                    self._learn(rng)
                if turnover and rng.random() < 0.05:
                    self._add(STREAMS[rng.integers(2)], rng)
                if turnover and rng.random() < 0.05:
                    self._retire(STREAMS[rng.integers(2)])
        except BaseException as error:
            self.note("broken", repr(error))
            os._exit(1)

    def _decide(self, rng: np.random.Generator) -> None:
        made = self._live.decide(rng.normal(size=5), stream=STREAMS[rng.integers(2)], votes=rng.random() < 0.1)
        self.note("decide", made.id, made.action, made.probability)
        self._waiting.append(made.id)

    def _learn(self, rng: np.random.Generator) -> None:
        with contextlib.suppress(IndexError, ValueError):  # another thread was quicker
            decision = self._waiting.pop(rng.integers(len(self._waiting)))
            value = float(rng.random() < 0.5)
            self._live.outcome(decision, value)
            self.note("outcome", decision, value)
            if rng.random() < 0.05:
                with contextlib.suppress(InputError):  # as it must be
                    self._live.outcome(decision, 1.0)
                    self.note("broken", f"a second outcome of {decision} was taken")

    def _retire(self, stream: str) -> None:
        if len(self._actions[stream]) > 3:
            action = self._actions[stream].pop(0)
            self._live.retire(action, stream=stream)
            self.note("retire", stream, action)


def read_notes(folder: Path) -> list[list]:
    """Return what was noted; a torn line at the end was not finished."""
    lines = (folder / "notes").read_text().split("\n")[:-1] if (folder / "notes").exists() else []
    return [json.loads(line) for line in lines]


def kill_once(folder: Path, seed: int, pick: random.Random) -> None:
    """Start a process, and kill it: one in five at any moment of its start, others at work."""
    child = os.fork()
    if child == 0:
        try:
            Worker(folder, seed).run()
            signal.pause()
        finally:
            os._exit(1)  # never on to the parent's work
    early, ends = pick.random() < 0.2, time.monotonic() + PATIENCE
    while not early and ["ready", child] not in read_notes(folder)[-2000:]:
        if time.monotonic() > ends or os.waitpid(child, os.WNOHANG)[0]:
            raise Violation(f"a process did not start again, in {folder}")
        time.sleep(0.01)
    time.sleep(pick.uniform(0, 0.5))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise Violation(f"a process ended by itself, in {folder}: {read_notes(folder)[-1:]}")


def key(event: Event) -> tuple:
    """Return an event as its note has it."""
    if event.kind == "decide":
        return ("decide", event.seq, event.action, event.probability)
    return (event.kind, *((event.decision, event.value) if event.kind == "outcome" else (event.stream, event.action)))


def check(folder: Path) -> Counter[str]:
    """Return what is in the store, once it is right."""
    store = Store(folder / "live.db", readonly=True)
    events = list(store.events())
    store.close()
    noted = [tuple(note) for note in read_notes(folder) if note[0] != "ready"]
    if broken := [note for note in noted if note[0] == "broken"]:
        raise Violation(f"{broken[0][1]}, in {folder}")
    kept = Counter(key(event) for event in events)
    if twice := [what for what, count in kept.items() if count > 1]:
        raise Violation(f"counted twice: {twice[0]}, in {folder}")
    if lost := [note for note in noted if note not in kept]:
        raise Violation(f"lost: {lost[0]}, in {folder}")
    with open_live(folder / "undisturbed.db") as again, open_live(folder / "live.db") as live:
        again._store._db.execute("PRAGMA synchronous = OFF")  # it is not killed
        for event in events:
            repeat(again, event)
        for name in STREAMS:
            believed, expected = (each._stream(name).state() for each in (live, again))
            if believed != expected:
                raise Violation(f"stream {name} has another state, in {folder}")
    counts = Counter(event.kind for event in events)
    return counts + Counter({"events that no process lived to note": len(events) - len(noted)})


def repeat(live: Live, event: Event) -> None:
    """Do again what happened, and raise if it comes out differently."""
    if event.kind == "decide":
        votes = event.probability is not None
        made = live.decide(unpack(event.vector, np.float32), stream=event.stream, votes=votes)
        if (made.id, made.action, made.probability) != (event.seq, event.action, event.probability):
            raise Violation(f"an undisturbed run decides {made}, not {event}")
    elif event.kind == "outcome":
        live.outcome(event.decision, event.value)
    elif event.kind == "add":
        live.add(event.action, unpack(event.vector, np.float32), stream=event.stream)
    else:
        live.retire(event.action, stream=event.stream)


def warm_up(folder: Path) -> None:
    """Compile what a decision needs, once for all processes."""
    folder.mkdir()
    with open_live(folder / "live.db") as live:
        for i in range(3):
            live.add(str(i), [i, 1.0])
        live.retire("0")
        for _ in range(3):
            live.outcome(live.decide(np.zeros(5), votes=True).id, 1.0)


def main() -> None:
    """Kill so many processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(np.random.SeedSequence().entropy) % 10**6)
    given = parser.parse_args()
    folder, pick, started = Path(tempfile.mkdtemp(prefix="kills-")), random.Random(given.seed), time.monotonic()
    print(f"seed {given.seed}, {given.kills} kills, in {folder}", flush=True)
    warm_up(folder / "warm")
    for i in range(given.kills):
        kill_once(folder, given.seed * 10**6 + i, pick)
    print(f"all killed after {time.monotonic() - started:.0f} s", flush=True)
    for what, count in sorted(check(folder).items()):
        print(f"{count:7d}  {what}")
    print(f"all survived, in {time.monotonic() - started:.0f} s")
    shutil.rmtree(folder)


if __name__ == "__main__":
    try:
        main()
    except Violation as error:
        sys.exit(str(error))
