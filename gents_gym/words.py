"""Writes counts in words that agree with their number."""


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 task", "20 tasks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
