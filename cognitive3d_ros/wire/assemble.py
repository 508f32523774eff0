"""The body of a part of any stream, made of its entries."""

from __future__ import annotations

from collections.abc import Sequence

from cognitive3d_ros.wire import bodies
from cognitive3d_ros.wire.identity import SessionIdentity


def assemble(
    identity: SessionIdentity, stream: str, klass: str, number: int, entries: Sequence[bytes]
) -> tuple[bytes, str]:
    """Return the body of a part and its content type.

    ``number`` is the part's number, from 1. The same entries give the same bytes, always. Raises
    ValueError for a stream that there is not.
    """
    if stream in ('camera', 'lidar'):
        # Only here: robots without cameras and lidars need no pycapnp.
        from cognitive3d_ros.wire import capnp_codec

        return capnp_codec.assemble(identity, stream, klass, number, entries)
    return bodies.assemble(identity, stream, klass, number, entries)
