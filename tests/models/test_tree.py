"""Trees of arrays: mapped, listed and filled in one order, whatever they are made of."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from gents_gym.models.tree import fill_tree, map_tree, tree_leaves


class Pair(NamedTuple):
    left: object
    right: object


def trees():
    one, two, three = np.arange(3.0), torch.arange(4.0), np.ones((2, 2))
    return [
        (one, [one]),
        ({"b": one, "a": two}, [one, two]),  # in the order of the dictionary, not of its keys
        ([one, (two, {"c": three})], [one, two, three]),
        (Pair(one, Pair(two, [three])), [one, two, three]),
        ((), []),
    ]


@pytest.mark.parametrize(("tree", "leaves"), trees())
def test_leaves_come_in_the_order_in_which_they_are_written(tree, leaves):
    assert [id(leaf) for leaf in tree_leaves(tree)] == [id(leaf) for leaf in leaves]


@pytest.mark.parametrize(("tree", "leaves"), trees())
def test_a_mapped_tree_has_the_same_shape_and_the_mapped_leaves(tree, leaves):
    doubled = map_tree(lambda leaf: leaf * 2, tree)
    assert type(doubled) is type(tree)
    assert [leaf.tolist() for leaf in tree_leaves(doubled)] == [(leaf * 2).tolist() for leaf in leaves]
    joined = map_tree(lambda left, right: left + right, tree, doubled)
    assert [leaf.tolist() for leaf in tree_leaves(joined)] == [(leaf * 3).tolist() for leaf in leaves]


@pytest.mark.parametrize(("tree", "leaves"), trees())
def test_filling_a_tree_with_its_leaves_gives_it_back(tree, leaves):
    filled = fill_tree(tree, (leaf + 1 for leaf in tree_leaves(tree)))
    assert type(filled) is type(tree)
    assert [leaf.tolist() for leaf in tree_leaves(filled)] == [(leaf + 1).tolist() for leaf in leaves]


def test_named_tuples_stay_what_they_are():
    mapped = map_tree(np.negative, {"pair": Pair(np.ones(2), [np.zeros(1)])})
    assert isinstance(mapped["pair"], Pair)
    assert mapped["pair"].left.tolist() == [-1, -1]


@pytest.mark.parametrize("other", [(np.ones(1),), {"a": np.ones(1)}, [np.ones(1)] * 3])
def test_trees_of_other_shapes_do_not_go_together(other):
    with pytest.raises((ValueError, KeyError)):
        map_tree(np.add, {"a": np.ones(1), "b": np.ones(1)} if isinstance(other, dict) else [np.ones(1)] * 2, other)
