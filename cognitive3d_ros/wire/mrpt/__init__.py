"""MRPT's serialised objects, as far as rawlogs of robots hold them: one description of each, for both ways."""

from cognitive3d_ros.wire.mrpt.archive import (
    CutOffError,
    Reader,
    Writer,
    open_rawlog,
    stamp_ns,
    ticks,
)

__all__ = ['CutOffError', 'Reader', 'Writer', 'open_rawlog', 'stamp_ns', 'ticks']
