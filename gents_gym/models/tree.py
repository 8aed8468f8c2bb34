"""Handles trees, the states of models: nested tuples, lists and dictionaries of arrays or tensors."""

from collections.abc import Callable, Iterator
from typing import Any


def map_tree(function: Callable[..., Any], *trees: Any) -> Any:
    """Return the tree that results from applying ``function`` to the corresponding leaves of ``trees``."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: map_tree(function, *(tree[key] for tree in trees)) for key in first}
    if isinstance(first, tuple | list):
        parts = [map_tree(function, *each) for each in zip(*trees, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return function(*trees)


def tree_leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a tree, always in the same order."""
    if isinstance(tree, dict | tuple | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from tree_leaves(part)
    else:
        yield tree


def fill_tree(tree: Any, leaves: Iterator[Any]) -> Any:
    """Return a tree of the same structure as ``tree`` with other leaves, in the order of :func:`tree_leaves`."""
    return map_tree(lambda _: next(leaves), tree)
