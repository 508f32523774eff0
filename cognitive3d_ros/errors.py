"""Every exception this package raises on purpose.

::

    Cognitive3dError
    ├── ParameterError        the parameters are wrong; holds every fault, not only the first
    ├── SessionError          a session cannot start or end as asked
    ├── FormatError           bytes are not what they should be: magic, length, checksum
    │   └── NewerFormatError  they are whole, and of a newer format than this version reads
    ├── SpoolError            the spool cannot be used
    │   └── SpoolLockedError  another process owns it
    ├── BagError              a recording cannot be read
    ├── GatewayError          the gateway cannot be started
    ├── ReadError             a stored session cannot be found or opened
    └── ExportError           a session cannot be written in the form, or to the place, asked for

Each message says what was wrong, with the values, and what to do about it.
"""

from __future__ import annotations


class Cognitive3dError(Exception):
    """Base of all errors this package raises on purpose."""


class ParameterError(Cognitive3dError):
    """The parameters are wrong.

    ``faults`` holds one sentence for each fault: the parameter, its value, and what is allowed.
    """

    def __init__(self, faults: list[str] | tuple[str, ...]) -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        head = '1 parameter fault' if count == 1 else f'{count} parameter faults'
        super().__init__(f'{head}: ' + '; '.join(self.faults))


class SessionError(Cognitive3dError):
    """A session cannot start or end as asked."""


class FormatError(Cognitive3dError):
    """Bytes are not what they should be: wrong magic, length or checksum."""


class NewerFormatError(FormatError):
    """A file is whole, but of a newer format than this version reads."""


class SpoolError(Cognitive3dError):
    """The spool cannot be used: not a folder, not writable, or no space."""


class SpoolLockedError(SpoolError):
    """Another process owns the spool."""


class BagError(Cognitive3dError):
    """A bag or log cannot be read."""


class GatewayError(Cognitive3dError):
    """The gateway cannot be started."""


class ReadError(Cognitive3dError):
    """A stored session cannot be found or opened."""


class ExportError(Cognitive3dError):
    """A session cannot be written in the form, or to the place, asked for."""
