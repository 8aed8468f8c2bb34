"""Keeps everything that happens live in one SQLite file, on disk before it is answered."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gents_gym.checks import InputError
from gents_gym.files import as_path, held

FORMAT = "gents_gym live 1"
TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);  -- JSON
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,  -- the order in which things happened; that of a decision is its id
  time REAL NOT NULL,  -- seconds since 1970
  stream TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('add', 'retire', 'decide', 'outcome')),
  action TEXT,  -- that was added, retired or played
  decision INTEGER,  -- whose outcome this is
  vector BLOB,  -- float32: the context of a decision, the features of an action
  mask BLOB,  -- of a decision: which actions could be played, in the order in which they were added
  value REAL,  -- the outcome
  probability REAL,  -- of the played action, if it was asked for
  text TEXT  -- of an action
);
CREATE INDEX events_of_stream ON events (stream, seq);
CREATE UNIQUE INDEX one_outcome ON events (decision) WHERE kind = 'outcome';
CREATE UNIQUE INDEX one_action ON events (stream, action) WHERE kind = 'add';
CREATE TABLE snapshots (stream TEXT PRIMARY KEY, seq INTEGER NOT NULL, state BLOB NOT NULL);  -- safetensors
"""


class Event(NamedTuple):
    """Something that happened: a row of the table ``events``."""

    seq: int
    time: float
    stream: str
    kind: str
    action: str | None = None
    decision: int | None = None
    vector: bytes | None = None
    mask: bytes | None = None
    value: float | None = None
    probability: float | None = None
    text: str | None = None


COLUMNS = ", ".join(Event._fields)
WRITTEN = Event._fields[1:]  # SQLite counts ``seq``
INSERT = f"INSERT INTO events ({', '.join(WRITTEN)}) VALUES ({', '.join('?' * len(WRITTEN))})"


def pack(array: Any, dtype: Any) -> bytes:
    """Return an array's numbers as bytes, little-endian whatever the machine."""
    return np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<")).tobytes()


def unpack(data: bytes, dtype: Any) -> np.ndarray:
    """Return the numbers that :func:`pack` wrote, (n,)."""
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype)


class Store:
    """A file of events: one process writes it at a time, others may read it meanwhile.

    A write is one transaction in SQLite's write-ahead log. When it returns, the event is on disk.
    """

    def __init__(self, path: str | Path, readonly: bool = False) -> None:
        """Open the file, which is made if it does not exist.

        Args:
            path: The file; ``path.lock`` beside it is held while it is open for writing.
            readonly: Open it for reading alone.
        """
        self.path = as_path("store", path)
        self._held = ExitStack()
        if readonly and not self.path.is_file():
            raise InputError(f"store must be a file of decisions, got '{path}', which does not exist")
        with self._plain_errors():
            if not readonly:
                lock = self.path.with_name(f"{self.path.name}.lock")
                lock.touch()
                self._held.enter_context(held("store", lock))
            try:
                self._open(readonly)
            except BaseException:
                self._held.close()
                raise

    def _open(self, readonly: bool) -> None:
        mode = "ro" if readonly else "rwc"
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        self._db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous = FULL")
        if not readonly:
            self._db.execute("PRAGMA journal_mode = WAL")
            if not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                made = f"INSERT INTO facts VALUES ('format', '{json.dumps(FORMAT)}');"
                self._db.executescript(f"BEGIN; {TABLES} {made} COMMIT;")
        known = {row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"facts", "events", "snapshots"} <= known or self.facts().get("format") != FORMAT:
            raise InputError(f"store must be a file of decisions, got '{self.path}', which is another database")

    def facts(self) -> dict[str, Any]:
        """Return the facts of the file: its format, agent, model and sizes."""
        with self._plain_errors():
            return {name: json.loads(value) for name, value in self._db.execute("SELECT name, value FROM facts")}

    def set_facts(self, facts: dict[str, Any]) -> None:
        """Write facts, of JSON values."""
        with self.transaction():
            rows = [(name, json.dumps(value)) for name, value in facts.items()]
            self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def write(self, stream: str, kind: str, **fields: Any) -> Event:
        """Write an event and return it; outside a transaction, it is on disk by then."""
        event = Event(0, time.time(), stream, kind, **fields)
        with self._plain_errors():
            seq = self._db.execute(INSERT, event[1:]).lastrowid
        return event._replace(seq=int(seq or 0))

    def events(self, stream: str | None = None, after: int = 0, kind: str | None = None) -> Iterator[Event]:
        """Return events in their order.

        Args:
            stream: Only its events; None: those of all streams.
            after: Only those after this ``seq``.
            kind: Only this kind; None: all kinds.
        """
        rules = {"seq > ?": after, "stream = ?": stream, "kind = ?": kind}
        given = {rule: value for rule, value in rules.items() if value is not None}
        with self._plain_errors():
            asked = f"SELECT {COLUMNS} FROM events WHERE {' AND '.join(given)} ORDER BY seq"
            yield from (Event(*row) for row in self._db.execute(asked, tuple(given.values())))

    def find(self, decision: int) -> Event | None:
        """Return a decision by its id; None if there is none."""
        rule = f"SELECT {COLUMNS} FROM events WHERE seq = ? AND kind = 'decide'"
        with self._plain_errors():
            row = self._db.execute(rule, (decision,)).fetchone()
        return None if row is None else Event(*row)

    def has_outcome(self, decision: int) -> bool:
        """Return whether the decision's outcome is known."""
        with self._plain_errors():
            rule = "SELECT 1 FROM events WHERE kind = 'outcome' AND decision = ?"
            return self._db.execute(rule, (decision,)).fetchone() is not None

    def streams(self) -> list[str]:
        """Return the names of all streams."""
        with self._plain_errors():
            return [row[0] for row in self._db.execute("SELECT DISTINCT stream FROM events ORDER BY stream")]

    def snapshot(self, stream: str) -> tuple[int, bytes] | None:
        """Return the seq of the event that a stream's snapshot was made after, and its bytes; None: there is none."""
        with self._plain_errors():
            row = self._db.execute("SELECT seq, state FROM snapshots WHERE stream = ?", (stream,)).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]))

    def set_snapshot(self, stream: str, seq: int, state: bytes) -> None:
        """Keep a stream's state after the event ``seq``, replacing an earlier one."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (stream, seq, state))

    def close(self) -> None:
        """Close the file and let others write."""
        self._db.close()
        self._held.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that happens within, or nothing if it raises."""
        with self._plain_errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into an InputError of one line."""
        try:
            yield
        except sqlite3.ProgrammingError as error:
            raise InputError(f"store must be open, got '{self.path}' ({error})") from error
        except sqlite3.Error as error:
            raise InputError(f"store '{self.path}' cannot be read or written ({error}): nothing was changed") from error
        except OSError as error:
            raise InputError(f"store '{self.path}' cannot be opened ({error.strerror})") from error
