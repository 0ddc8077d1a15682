"""Vector instructions for four adjacent numbers, which Numba's loops add one by one, and prefetch instructions.

Numba itself has no prefetch instructions.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

FOUR = 4


def add_four(out, i, values, j):
    """Do ``out[i] += values[j]`` for C-contiguous arrays (n, 4) of one type; i and j are unchecked uint64."""
    out[i] += values[j]


def fetch(values, j):
    """Fetch ``values[j]`` of an array (n,), or (n, 4) as in `add_four`, into the cache, without waiting for it."""


@overload(add_four)
def _compiled(out, i, values, j):
    return lambda out, i, values, j: _add_vectors(out, i, values, j)  # type: ignore[call-arg]


@intrinsic
def _add_vectors(_, out, i, values, j):
    def generate(context, builder, signature, arguments):
        to, addend = (_address(context, builder, signature.args[k], arguments[k], arguments[k + 1]) for k in (0, 2))
        width = context.get_abi_sizeof(context.get_data_type(out.dtype))
        total = builder.fadd(builder.load(to, align=width), builder.load(addend, align=width))
        builder.store(total, to, align=width)
        return context.get_dummy_value()

    return types.none(out, types.uint64, values, types.uint64), generate


@overload(fetch)
def _compiled_fetch(values, j):
    return lambda values, j: _prefetch(values, j)  # type: ignore[call-arg]


@intrinsic
def _prefetch(_, values, j):
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        address = builder.bitcast(_address(context, builder, signature.args[0], *arguments), byte)
        read, keep, data = number(0), number(3), number(1)
        builder.call(function, [address, read, keep, data])
        return context.get_dummy_value()

    return types.none(values, types.uint64), generate


def _address(context, builder, array_type, array, row):
    number = context.get_data_type(array_type.dtype)
    kind = number if array_type.ndim == 1 else ir.VectorType(number, FOUR)
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, kind.as_pointer()), [row])
