"""`ArrayLike` and `DTypeLike` of NumPy, with short names in printed signatures: NumPy's own print as 300 characters."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import DTypeLike as DTypeLike
else:

    class ArrayLike:
        """Anything that `numpy.asarray` accepts."""

        __module__ = "builtins"  # so that it prints without a module

    class DTypeLike:
        """Anything that `numpy.dtype` accepts."""

        __module__ = "builtins"
