"""The invented headlines: distinct, reproducible, whole sentences."""

import tomllib

import pytest

from gents_gym import InputError
from gents_gym.tasks.headlines.grammar import GRAMMAR, SYMBOL, invent


def test_headlines_are_distinct_and_more_of_a_seed_begin_with_the_same():
    few, many = invent(300), invent(1000)
    assert len({text.casefold() for text in many}) == 1000
    assert many[:300] == few
    assert invent(300, seed=1) != few


def test_headlines_are_expanded_spaced_and_capitalised():
    for text in invent(3000, seed=5):
        assert not SYMBOL.search(text)
        assert text == " ".join(text.split())
        assert text[0].isupper() or text[0] == "'"
        assert 10 < len(text) < 160


def test_every_symbol_of_the_grammar_is_defined_and_every_list_used():
    grammar = tomllib.loads(GRAMMAR.read_text(encoding="utf-8"))
    frames = [rule for register in grammar["frames"].values() for rules in register.values() for rule in rules]
    for topic in grammar["topics"].values():
        lists = {name: entries for name, entries in topic.items() if name != "cast"}
        for cast in topic["cast"]:
            symbols = {**grammar["common"], **lists, **cast}
            rules = [*frames, *(entry for entries in symbols.values() for entry in entries)]
            assert {name for rule in rules for name in SYMBOL.findall(rule)} == set(symbols)
            assert all(len(set(entries)) == len(entries) for entries in symbols.values())


def test_bad_arguments():
    with pytest.raises(InputError, match="count must be at least 1, got 0"):
        invent(0)
    with pytest.raises(InputError, match="seed must be at least 0, got -1"):
        invent(1, seed=-1)


def test_more_headlines_than_the_grammar_has_are_refused(monkeypatch):
    monkeypatch.setattr("gents_gym.tasks.headlines.grammar._one", lambda *_: "The same")
    assert invent(1) == ["The same"]
    with pytest.raises(InputError, match="count must be at most what the grammar has, about 1, got 2"):
        invent(2)
