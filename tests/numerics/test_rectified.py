"""Products that skip units at zero against NumPy's dense ones."""

import numpy as np
import pytest

from gents_gym.numerics.rectified import BLOCK, PART, add_products, aligned, padded


@pytest.mark.parametrize(
    ("n_rows", "size", "wide"), [(1, 16, BLOCK), (5, BLOCK, BLOCK), (300, 3 * PART + 16, 2 * BLOCK)]
)
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_products_are_added_to_the_result(n_rows, size, wide, share):
    rng = np.random.default_rng(0)
    layer, weights, result = aligned(n_rows, size), aligned(size, wide), aligned(n_rows, wide)
    layer[:] = rng.normal(size=layer.shape) * (rng.random(layer.shape) < share)
    weights[:], result[:] = rng.normal(size=weights.shape), rng.normal(size=result.shape)
    expected = result + layer.astype(np.float64) @ weights
    add_products(layer, weights, result)
    assert np.allclose(result, expected, atol=1e-4)


def test_rows_do_not_depend_on_others():
    rng = np.random.default_rng(1)
    layer, weights = aligned(50, BLOCK), aligned(BLOCK, BLOCK)
    layer[:] = np.maximum(rng.normal(size=layer.shape), 0)
    weights[:] = rng.normal(size=weights.shape)
    together, alone = aligned(50, BLOCK), aligned(1, BLOCK)
    add_products(layer, weights, together)
    add_products(layer[30:31], weights, alone)
    assert np.array_equal(together[30], alone[0])


def test_a_nan_is_not_skipped():
    layer, weights, result = aligned(2, BLOCK), aligned(BLOCK, BLOCK), aligned(2, BLOCK)
    layer[0, 3], weights[:] = -np.nan, 1
    add_products(layer, weights, result)
    assert np.isnan(result[0]).all()
    assert not result[1].any()


def test_padded_memory_begins_at_a_cache_line():
    assert [padded(size) for size in (1, BLOCK, BLOCK + 1)] == [BLOCK, BLOCK, 2 * BLOCK]
    assert all(aligned(3, n).ctypes.data % 64 == 0 for n in (1, 5, 1000))
