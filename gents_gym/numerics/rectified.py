"""Multiplies rectified layers by weights, and skips the units that are zero.

About half of the units of a rectified layer are zero, so skipping them takes less time than a library's dense product.
Layers and weights are padded with zeros to a multiple of ``BLOCK`` units. Units go through in parts of ``PART``, whose
weights stay in the first-level cache.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from gents_gym.numerics.lanes import WIDTH, address, compiled, load, repeat, store

LANES = 7  # registers that hold a row of the result while units are added to it
BLOCK = LANES * WIDTH
PART = 64  # units whose bits fit into one integer

_BITS = ir.VectorType(ir.IntType(32), WIDTH)
_ONE = np.uint64(1)


def padded(size: int) -> int:
    """Return the padded size of a layer."""
    return -(-size // BLOCK) * BLOCK


def aligned(*shape: int) -> np.ndarray:
    """Return float32 zeros that begin where a cache line does; loads that cross lines take twice as long."""
    size, line = int(np.prod(shape)), 16
    memory = np.zeros(size + line, np.float32)
    start = -(memory.ctypes.data // 4) % line
    return memory[start : start + size].reshape(shape)


@compiled
def _nonzero(typing: Any, array: Any, start: Any) -> Any:
    """Return an integer whose bit i says whether entry ``start`` + i of a flat float32 array is not 0; NaN is not."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = builder.load(address(context, builder, signature.args[0], *values), align=4)
        size = builder.and_(builder.bitcast(lanes, _BITS), ir.Constant(_BITS, [0x7FFFFFFF] * WIDTH))
        found = builder.icmp_unsigned("!=", size, ir.Constant(_BITS, [0] * WIDTH))
        return builder.zext(builder.bitcast(found, ir.IntType(WIDTH)), ir.IntType(64))

    return types.uint64(array, types.intp), emit


@compiled
def _lowest(typing: Any, bits: Any) -> Any:
    """Return the index of an integer's lowest bit that is set."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), emit


@njit(cache=True)
def _units(layer: np.ndarray, start: int, size: int) -> Any:
    """Return the bits of the entries that are not 0, of ``size`` entries from ``start`` on, at most ``PART``."""
    bits = _nonzero(layer, start)
    for i in range(WIDTH, size, WIDTH):
        bits |= _nonzero(layer, start + i) << np.uint64(i)
    return bits


@njit(cache=True, error_model="numpy")
def add_products(layer: np.ndarray, weights: np.ndarray, result: np.ndarray) -> None:
    """Add layer·weights, (n, K) times (K, J), to the result, (n, J); K is a multiple of 16, J of ``BLOCK``."""
    size, wide = weights.shape
    x, w, y = layer.reshape(-1), weights.reshape(-1), result.reshape(-1)
    for block in range(0, wide, BLOCK):
        for part in range(0, size, PART):
            for r in range(len(layer)):
                units = _units(x, r * size + part, min(PART, size - part))
                p = r * wide + block
                a, b, c, d = load(y, p), load(y, p + 16), load(y, p + 32), load(y, p + 48)
                e, f, g = load(y, p + 64), load(y, p + 80), load(y, p + 96)
                while units != 0:
                    k = part + _lowest(units)
                    units &= units - _ONE
                    v, q = repeat(x, r * size + k), k * wide + block
                    a += v * load(w, q)
                    b += v * load(w, q + 16)
                    c += v * load(w, q + 32)
                    d += v * load(w, q + 48)
                    e += v * load(w, q + 64)
                    f += v * load(w, q + 80)
                    g += v * load(w, q + 96)
                store(y, p, a)
                store(y, p + 16, b)
                store(y, p + 32, c)
                store(y, p + 48, d)
                store(y, p + 64, e)
                store(y, p + 80, f)
                store(y, p + 96, g)
