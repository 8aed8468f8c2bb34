"""Treats sixteen float32 numbers as one value in compiled code, so that they fill one register.

A compiled loop over a short array spends more time on its tests and remainder than on its work. Lanes avoid both. In
compiled functions they support ``+ - * /``, negation, ``abs`` and ``min``, with each other and with single float32
numbers, and the functions below. Rounding may differ from that of single numbers, as in loops with fast-math.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model
from numba.np.arrayobj import make_array

WIDTH = 16

_REGISTER, _INDEX = ir.VectorType(ir.FloatType(), WIDTH), ir.IntType(32)
_ZERO = np.float32(0)
compiled: Any = intrinsic  # as a function of the types, it has one argument more than its calls


class Lanes(types.Type):
    """The type of ``WIDTH`` numbers in compiled code."""

    def __init__(self) -> None:
        super().__init__("Lanes")


LANES = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _REGISTER)  # type: ignore[no-untyped-call]


@compiled
def fill(typing: Any, number: Any) -> Any:
    """Return lanes that all hold a float32 number."""
    return _elementwise(lambda builder, lanes: lanes, types.float32)


@compiled
def load(typing: Any, array: Any, start: Any) -> Any:
    """Return the ``WIDTH`` entries of a flat float32 array from ``start`` on."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(address(context, builder, signature.args[0], *values), align=4)

    return LANES(array, types.intp), emit


@compiled
def repeat(typing: Any, array: Any, at: Any) -> Any:
    """Return lanes that all hold entry ``at`` of a flat float32 array."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, values[0]).data  # type: ignore[no-untyped-call]
        return _filled(builder, types.float32, builder.load(builder.gep(data, [values[1]])))

    return LANES(array, types.intp), emit


@compiled
def store(typing: Any, array: Any, start: Any, lanes: Any) -> Any:
    """Write lanes to the ``WIDTH`` entries of a flat float32 array from ``start`` on."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        *place, value = values
        builder.store(value, address(context, builder, signature.args[0], *place), align=4)
        return context.get_dummy_value()

    return types.none(array, types.intp, LANES), emit


@compiled
def root(typing: Any, lanes: Any) -> Any:
    """Return the square roots."""

    def emit(builder: Any, value: Any) -> Any:
        kind = ir.FunctionType(_REGISTER, [_REGISTER])
        name = f"llvm.sqrt.v{WIDTH}f32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        return builder.call(function, [value], fastmath=("fast",))

    return _elementwise(emit, lanes)


@compiled
def where_less(typing: Any, one: Any, other: Any, then: Any, otherwise: Any) -> Any:
    """Return ``then`` in the lanes in which ``one`` is less than ``other``, and ``otherwise`` in the others."""

    def emit(builder: Any, one: Any, other: Any, then: Any, otherwise: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", one, other), then, otherwise)

    return _elementwise(emit, one, other, then, otherwise)


@compiled
def total(typing: Any, lanes: Any) -> Any:
    """Return the sum of the numbers in all lanes, float32."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (value,), half = values, WIDTH // 2
        while half:  # the upper half is added to the lower, until one number is left
            moved = [(i + half) % WIDTH for i in range(WIDTH)]
            upper = builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(_INDEX, WIDTH), moved))
            value, half = builder.fadd(value, upper, flags=("fast",)), half // 2
        return builder.extract_element(value, ir.Constant(_INDEX, 0))

    return types.float32(LANES), emit


def _elementwise(emit: Callable[..., Any], *kinds: Any) -> Any:
    """Return a maker of intrinsics on lanes; a single number among the values is first broadcast to lanes."""

    def emit_filled(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return emit(builder, *(_filled(builder, *each) for each in zip(signature.args, values, strict=True)))

    return LANES(*(kind if isinstance(kind, Lanes) else types.float32 for kind in kinds)), emit_filled


def _filled(builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, Lanes):
        return value
    first = builder.insert_element(ir.Constant(_REGISTER, ir.Undefined), value, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH))


def address(context: Any, builder: Any, kind: Any, array: Any, start: Any) -> Any:
    """Return the address of an array's entry ``start`` as a pointer to lanes."""
    data = make_array(kind)(context, builder, array).data  # type: ignore[no-untyped-call]
    return builder.bitcast(builder.gep(data, [start]), _REGISTER.as_pointer())


def _arithmetic(instruction: str) -> Callable[..., Any]:
    """Return the overload of an operator by one instruction."""

    @compiled
    def apply(typing: Any, one: Any, other: Any) -> Any:
        def emit(builder: Any, *values: Any) -> Any:
            return getattr(builder, instruction)(*values, flags=("fast",))

        return _elementwise(emit, one, other)

    def choose(one: Any, other: Any) -> Any:
        some = isinstance(one, Lanes) or isinstance(other, Lanes)
        return (lambda one, other: apply(one, other)) if some else None

    return choose


for _symbol, _instruction in {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}.items():
    overload(getattr(operator, _symbol), strict=False)(_arithmetic(_instruction))
    overload(getattr(operator, f"i{_symbol}"), strict=False)(_arithmetic(_instruction))


@overload(operator.neg, strict=False)
def _negate(lanes: Any) -> Any:
    return (lambda lanes: _ZERO - lanes) if isinstance(lanes, Lanes) else None


@overload(abs, strict=False)
def _absolute(lanes: Any) -> Any:
    return (lambda lanes: where_less(lanes, _ZERO, -lanes, lanes)) if isinstance(lanes, Lanes) else None


@overload(min, strict=False)
def _smaller(one: Any, other: Any) -> Any:
    return (lambda one, other: where_less(one, other, one, other)) if isinstance(one, Lanes) else None
