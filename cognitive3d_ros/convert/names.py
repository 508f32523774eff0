"""Names of series that messages themselves bring along: as many as there is room for."""

from __future__ import annotations

from typing import Final

MAX_SERIES: Final = 2_000
"""The most series of one topic whose messages name them."""
MAX_NAME_CHARS: Final = 200
"""The longest name that is taken from a message."""


class BoundedNames:
    """The series of each thing that messages of one topic name: ``<prefix>.<thing>.<field>``.

    A message can name anything. Things beyond :data:`MAX_SERIES`, and those without a name or with an endless
    one, have no series.
    """

    __slots__ = ('_fields', '_known', '_prefix')

    def __init__(self, prefix: str, fields: tuple[str, ...]) -> None:
        self._prefix, self._fields = prefix, fields
        self._known: dict[str, tuple[str, ...]] = {}

    def series(self, thing: str) -> tuple[str, ...] | None:
        """Return the names of a thing's series, one for each field, or None if it has none."""
        names = self._known.get(thing)
        if names is not None:
            return names
        full = (len(self._known) + 1) * len(self._fields) > MAX_SERIES
        if full or not 0 < len(thing) <= MAX_NAME_CHARS:
            return None
        names = tuple(f'{self._prefix}.{thing}.{field}' for field in self._fields)
        self._known[thing] = names
        return names
