"""Lanes against NumPy's arithmetic on as many numbers."""

import numpy as np
import pytest
from numba import njit

from gents_gym.numerics.lanes import WIDTH, fill, load, repeat, root, store, where_less
from gents_gym.numerics.series import decay32

TWO = np.float32(2)


@njit
def everything(one, other, number, out):
    a, b = load(one, 0), load(other, 0)
    total = fill(number)
    total += a
    total *= b
    results = (
        a + b,
        a - number,
        number * b,
        a / b,
        -a,
        abs(a),
        min(a, b),
        root(abs(b)),
        total,
        decay32(a),
        repeat(one, 3),
    )
    for i in range(len(results)):
        store(out, i * WIDTH, results[i])
    store(out, len(results) * WIDTH, where_less(a, number, b, TWO))


def test_lanes_compute_what_arrays_do():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, WIDTH)).astype(np.float32)
    number, out = np.float32(0.3), np.full(12 * WIDTH, np.nan, np.float32)
    everything(a, b, number, out)
    least, decay = np.minimum(a, b), np.exp(-np.abs(a))
    expected = [a + b, a - number, number * b, a / b, -a, np.abs(a), least, np.sqrt(np.abs(b)), (number + a) * b, decay]
    expected += [np.full(WIDTH, a[3]), np.where(a < number, b, 2)]
    assert np.allclose(out.reshape(12, WIDTH), expected, rtol=1e-5, atol=1e-7)


@njit
def shift(array, start, end):
    store(array, end, load(array, start))


@pytest.mark.parametrize(("start", "end"), [(0, 16), (3, 21), (5, 5)])
def test_lanes_are_read_and_written_at_any_entry(start, end):
    array = np.arange(64, dtype=np.float32)
    expected = array.copy()
    expected[end : end + WIDTH] = array[start : start + WIDTH]
    shift(array, start, end)
    assert np.array_equal(array, expected)
