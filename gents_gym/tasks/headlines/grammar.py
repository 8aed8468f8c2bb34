"""Generates distinct synthetic headlines of many topics, tones and registers from a seed."""

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.checks import InputError, check_integer, check_memory

GRAMMAR = Path(__file__).with_name("grammar.toml")
SYMBOL = re.compile(r"\{(\w+)\}")
HEADLINE = 300  # bytes per headline in memory, in two forms
PATIENCE = 10_000  # repeated headlines in a row after which no new ones are expected
SMALL = frozenset(
    ["a", "an", "and", "as", "at", "but", "by", "for", "in", "of", "off", "on", "or", "the", "to"]
)  # a title leaves them in lower case
SENTENCE = re.compile(r"(?:^|: |\? |\. )'?[a-z]")  # where a letter begins a sentence


def invent(count: int, seed: int = 0) -> list[str]:
    """Return ``count`` distinct headlines; a larger count with the same seed begins with the same ones.

    Tone (good, bad or plain) and register are drawn independently of each other and of the topic.
    """
    count = check_integer("count", count, 1)
    check_memory(HEADLINE * count, count=count)
    grammar = tomllib.loads(GRAMMAR.read_text(encoding="utf-8"))
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    found: dict[str, str] = {}
    known = 0  # headlines since the last new one
    while len(found) < count:
        headline = _one(grammar, rng)
        known = known + 1 if headline.casefold() in found else 0
        if known > PATIENCE:
            raise InputError(f"count must be at most what the grammar has, about {len(found)}, got {count}")
        found.setdefault(headline.casefold(), headline)
    return list(found.values())


def _one(grammar: dict[str, Any], rng: np.random.Generator) -> str:
    register, tone = _weighted(grammar["registers"], rng), _weighted(grammar["tones"], rng)
    topic = grammar["topics"][_pick(list(grammar["topics"]), rng)]
    symbols = {**grammar["common"], **topic, **_pick(topic["cast"], rng)}
    text = _expand(_pick(grammar["frames"][register][tone], rng), symbols, rng)
    text = SENTENCE.sub(lambda match: match[0].upper(), text)
    return _title(text) if rng.random() < 0.5 else text  # papers differ in how they capitalise


def _expand(rule: str, symbols: dict[str, list[str]], rng: np.random.Generator) -> str:
    return SYMBOL.sub(lambda match: _expand(_pick(symbols[match[1]], rng), symbols, rng), rule)


def _title(text: str) -> str:
    return " ".join(word if word in SMALL else word[:1].upper() + word[1:] for word in text.split(" "))


def _pick(entries: list[Any], rng: np.random.Generator) -> Any:
    return entries[rng.integers(len(entries))]


def _weighted(weights: dict[str, float], rng: np.random.Generator) -> str:
    names, shares = list(weights), np.cumsum(list(weights.values()))
    return names[np.searchsorted(shares, rng.random() * shares[-1], side="right")]
