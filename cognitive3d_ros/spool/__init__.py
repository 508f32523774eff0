"""What is recorded and not delivered yet, on disk, so that nothing is lost."""

from cognitive3d_ros.spool.fs import REAL_FS, Fs
from cognitive3d_ros.spool.index import PartRef
from cognitive3d_ros.spool.session import Assemble, SessionSpool
from cognitive3d_ros.spool.spool import Spool, SpoolLimits, Usage

__all__ = [
    'REAL_FS',
    'Assemble',
    'Fs',
    'PartRef',
    'SessionSpool',
    'Spool',
    'SpoolLimits',
    'Usage',
]
