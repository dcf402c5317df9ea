"""Public attributes that cannot be changed."""

from __future__ import annotations

from typing import Any


class SetOnce:
    """A class whose public attributes are set once, in the constructor; only properties with a setter can be set again.

    A changed attribute would not change the driver's object that was made from it. Use this only for classes whose
    objects are not created or changed in every launch or allocation, because it makes setting any attribute slower.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        is_property = isinstance(getattr(type(self), name, None), property)
        if not name.startswith("_") and not is_property and hasattr(self, name):
            raise AttributeError(f"the attribute {name!r} of a {type(self).__name__} cannot be set")
        super().__setattr__(name, value)
