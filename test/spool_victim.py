"""A process that records to a spool as fast as it can until it is killed; see test_spool_kill.py.

It prints a line for each flush once that has returned: how many entries are promised.
"""

import sys

from spool_model import assemble, identity

from cognitive3d_ros.spool import Spool, SpoolLimits

S = 1_000_000_000


def main(root: str, second: int) -> None:
    spool = Spool.open(root, limits=SpoolLimits(1 << 40, 0))
    session = spool.start(identity(second), assemble)
    streams = [('gaze', 'pose'), ('events', 'events'), ('sensors', 'series')]
    count = 0
    while True:
        for _ in range(50):
            stream, klass = streams[count % 3]
            count += 1
            session.append(
                stream,
                klass,
                b'%d' % count,
                time_ns=count,
                at_ns=count * S // 20,
                context=b'%d' % count,
            )
        session.append('camera', 'camera', b'c%d' % count, time_ns=count, at_ns=count * S // 20)
        if session.flush():
            print(count, flush=True)


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]))
