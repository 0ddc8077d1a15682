"""Dataclasses of arrays."""

from dataclasses import fields
from typing import Any, ClassVar, Self


class ArrayRecord:
    """Base of a dataclass of arrays that is saved by field names."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def arrays(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        return cls(**arrays)
