"""The compiled exponentials against NumPy's."""

import numpy as np

from gents_gym.numerics.series import decay32, decay64


def test_float64_is_exact_to_rounding():
    x = np.concatenate([np.linspace(-40, 40, 2001), [0.0]])
    assert np.allclose([decay64(value) for value in x], np.exp(-np.abs(x)), rtol=1e-13)
    assert decay64(1000.0) == decay64(40.0)


def test_float32_is_exact_to_rounding_and_stays_float32():
    x = np.linspace(-30, 30, 1001, dtype=np.float32)
    found = np.array([decay32(value) for value in x])
    assert np.allclose(found, np.exp(-np.abs(x.astype(np.float64))), rtol=1e-5)
    assert decay32(np.float32(1000)) == decay32(np.float32(30))
