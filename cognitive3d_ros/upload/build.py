"""Puts an uploader together for the real world."""

from __future__ import annotations

import threading

from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.log import Log
from cognitive3d_ros.upload.keys import KeySource
from cognitive3d_ros.upload.transport import RequestsTransport
from cognitive3d_ros.upload.uploader import PartSource, Uploader


def make_uploader(
    *,
    gateway: str,
    key: KeySource,
    spool: PartSource,
    ledger: Ledger,
    log: Log,
    timeout_s: float = 10.0,
    max_bytes_per_s: float = 0.0,
    require_ack: bool = True,
) -> Uploader:
    """Return an uploader that sends over the network; the parameters are those of ``upload.*``."""
    interrupt = threading.Event()
    transport = RequestsTransport(
        timeout_s=timeout_s, max_bytes_per_s=max_bytes_per_s, interrupt=interrupt
    )
    return Uploader(
        gateway=gateway,
        spool=spool,
        transport=transport,
        key=key,
        ledger=ledger,
        log=log,
        require_ack=require_ack,
        interrupt=interrupt,
        on_end=transport.close,
    )
