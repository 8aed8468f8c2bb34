"""Holds what all contract checks share: the error, a watch on global generators, and comparison of results."""

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np


class ContractError(AssertionError):
    """A class breaks its contract; the message says what was done, expected and seen, and what to do about it."""


def breach(rule: str, *, done: str, expected: str, seen: str, advice: str) -> ContractError:
    """Return the error that says which rule is broken and how that was found."""
    lines = {"what was done": done, "expected": expected, "seen": seen, "what to do": advice}
    return ContractError("\n".join([rule, *(f"  {name}: {text}" for name, text in lines.items())]))


@contextmanager
def explained(rule: str, *, done: str, expected: str, advice: str) -> Iterator[None]:
    """Say which rule is broken if the code inside raises another error."""
    try:
        yield
    except ContractError:
        raise
    except Exception as error:
        seen, advice = f"{type(error).__name__}: {error}", f"the traceback above shows the line; {advice}"
        raise breach(rule, done=done, expected=expected, seen=seen, advice=advice) from error


def _generator_states() -> dict[str, Any]:
    """Return the states of the global generators, torch's only if it is loaded."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    states: dict[str, Any] = {"numpy.random": (kind, np.asarray(keys).tobytes(), *rest), "random": random.getstate()}
    if (torch := sys.modules.get("torch")) is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


@contextmanager
def global_generators_left_alone(name: str, done: str, advice: str) -> Iterator[None]:
    """Raise if the code inside draws from, or seeds, a global generator.

    A first import may draw, so nothing is raised then; code that draws by itself will do so again.
    """
    before, n_modules = _generator_states(), len(sys.modules)
    yield
    after = _generator_states()
    for generator, state in before.items():
        if after[generator] != state and len(sys.modules) == n_modules:
            raise breach(
                f"{name} uses the global generator of {generator}",
                done=done,
                expected="unchanged global generators",
                seen=f"the state of {generator} has changed",
                advice=advice,
            )


def find_difference(left: Any, right: Any, path: str = "") -> str | None:
    """Return the first difference of two nested results, as "info['outcome'][2]: 0.0 and 1.0"; None if equal."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        if left.keys() != right.keys():
            return f"the keys of {path}: {sorted(left)} and {sorted(right)}"
        parts = ((left[key], right[key], f"{path}[{key!r}]") for key in left)
        return next((found for part in parts if (found := find_difference(*part))), None)
    if _is_list(left) and _is_list(right):
        if len(left) != len(right):
            return f"the length of {path}: {len(left)} and {len(right)}"
        parts = ((a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(left, right, strict=True)))
        return next((found for part in parts if (found := find_difference(*part))), None)
    return _find_array_difference(np.asarray(left), np.asarray(right), path)


def _is_list(value: Any) -> bool:
    is_objects = isinstance(value, np.ndarray) and value.dtype == object
    return is_objects or (isinstance(value, Sequence) and not isinstance(value, str))


def _find_array_difference(left: np.ndarray, right: np.ndarray, path: str) -> str | None:
    if left.shape != right.shape or left.dtype != right.dtype:
        return f"{path}: {left.dtype}{left.shape} and {right.dtype}{right.shape}"
    unlike = ~((left == right) | ((left != left) & (right != right)))  # NaN equals NaN here
    if not unlike.any():
        return None
    where = tuple(int(i) for i in np.argwhere(unlike)[0])
    index = "".join(f"[{i}]" for i in where)
    return f"{path}{index}: {left[where]} and {right[where]}"
