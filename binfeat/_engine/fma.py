"""Products and sums with one rounding, if the processor has an instruction for them."""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload


def multiply_add(a, b, c):
    """Return ``a * b + c`` of floats of one type, rounded once if the processor can, otherwise twice."""
    return a * b + c


@overload(multiply_add)
def _compiled(a, b, c):
    return lambda a, b, c: _fused(a, b, c)  # type: ignore[call-arg]


@intrinsic
def _fused(_, a, b, c):
    def generate(context, builder, signature, arguments):
        number = context.get_data_type(signature.return_type)
        kind = ir.FunctionType(number, [number] * 3)
        name = f"llvm.fmuladd.f{signature.return_type.bitwidth}"
        return builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), arguments)

    return (a(a, b, c), generate) if isinstance(a, types.Float) and a == b == c else None
