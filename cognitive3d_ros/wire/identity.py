"""What every part of a session says about the session it belongs to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """The facts of a session that each of its parts carries, fixed when it starts.

    ``session_id`` is ``<unix seconds>_<device id>`` (seed 001, Sessions); ``start_ns`` is the start in
    wire time, ``interval_s`` the time between pose samples that gaze bodies state.
    """

    session_id: str
    device_id: str
    scene_id: str
    scene_version: int
    sdk_version: str
    start_ns: int
    interval_s: float

    @property
    def second(self) -> int:
        """The second of the id: ``timestamp`` in every envelope."""
        return int(self.session_id.partition('_')[0])

    def to_json(self) -> str:
        """Return the identity as one line of JSON."""
        return json.dumps(asdict(self), separators=(',', ':'))

    @classmethod
    def from_json(cls, text: str) -> SessionIdentity:
        """Read what :meth:`to_json` wrote; raises ValueError, KeyError or TypeError."""
        return cls(**json.loads(text))
