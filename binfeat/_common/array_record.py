"""Dataclasses of arrays."""

from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self, get_type_hints


class ArrayRecord:
    """Base of a dataclass of arrays that is saved by field names; fields with a default factory may be missing.

    ``Annotated[np.ndarray, dtype, *axes]`` declares the dtype of a field, or several, and the names of its axes.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def arrays(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        return cls(**arrays)

    @classmethod
    def names(cls, *, optional: bool) -> list[str]:
        """Return the names of optional fields, or of required ones."""
        return [field.name for field in fields(cls) if (field.default_factory is not MISSING) == optional]

    @classmethod
    def layout(cls, *names: str) -> dict[str, tuple]:
        """Return declared dtypes and axes for `check_arrays`, of some fields or of all required ones."""
        hints = get_type_hints(cls, include_extras=True)
        known = names or cls.names(optional=False)
        return {name: hints[name].__metadata__ for name in known if hasattr(hints[name], "__metadata__")}
