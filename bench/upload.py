"""Parts of 100 KB to a gateway: the uploader from a spool, against a plain requests session.

Both send the same bytes over one kept connection to a gateway in another process; round by round, each with
sessions of its own. Ours also lists, reads and checks the part files, and deletes them.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import requests

from bench.table import Row
from cognitive3d_ros.counters import Ledger
from cognitive3d_ros.spool import Spool
from cognitive3d_ros.upload.endpoint import part_url
from cognitive3d_ros.upload.transport import RequestsTransport
from cognitive3d_ros.upload.uploader import Uploader
from cognitive3d_ros.wire.framing import PartHeader, frame, part_name
from cognitive3d_ros.wire.identity import SessionIdentity

PARTS = 100
PART_BYTES = 100_000
KEY = 'bench'
SCENE = '5b2a1f4e-0c9d-4e8a-9a53-0f6d1c2b3a4d'


class _Silent:
    def info(self, text: str) -> None: ...
    def warning(self, text: str) -> None: ...
    def error(self, text: str) -> None: ...


def _body(session_id: str, number: int) -> bytes:
    """Return a sensors body of 100 KB."""
    samples = [
        [1767225600 + index / 100, round(index * 0.37 + number, 5)] for index in range(4000)
    ]
    text = json.dumps(
        {
            'name': 'bench',
            'sessionid': session_id,
            'timestamp': int(session_id.split('_')[0]),
            'part': number,
            'formatversion': '2.0',
            'data': [{'name': 'battery.voltage', 'data': samples}],
        },
        separators=(',', ':'),
    )
    return (
        text.encode().ljust(PART_BYTES)[:PART_BYTES] if len(text) <= PART_BYTES else text.encode()
    )


def parts_of_session(second: int) -> list[tuple[PartHeader, bytes]]:
    session_id = f'{second}_bench'
    identity = SessionIdentity(session_id, 'bench', SCENE, 3, '1.0.0', second * 10**9, 0.1)
    return [
        (
            PartHeader(identity, 'sensors', number, 'series', number, 'application/json'),
            _body(session_id, number),
        )
        for number in range(1, PARTS + 1)
    ]


@contextlib.contextmanager
def gateway(store: Path) -> Iterator[str]:
    """Run a gateway in another process; give its address."""
    command = [sys.executable, '-m', 'cognitive3d_ros.cli.main', 'gateway', '--store', str(store)]
    with subprocess.Popen(
        [*command, '--port', '0', '--key', KEY], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if match := re.search(rb'http://127\.0\.0\.1:\d+', line):
                    yield match.group().decode()
                    break
        finally:
            process.terminate()


def plain(url: str, parts: list[tuple[PartHeader, bytes]]) -> float:
    """Post parts with a requests session; return the seconds it took."""
    with requests.Session() as session:
        start_s = time.perf_counter()
        for header, body in parts:
            answer = session.post(
                part_url(url, header.stream, SCENE, 3),
                data=body,
                headers={
                    'Authorization': f'APIKEY:DATA {KEY}',
                    'Content-Type': header.content_type,
                    'Idempotency-Key': f'{header.identity.session_id}/sensors/{header.number}',
                },
                timeout=10,
            )
            assert 'cvr-request-time' in answer.headers, answer.text
        return time.perf_counter() - start_s


def ours(url: str, parts: list[tuple[PartHeader, bytes]]) -> float:
    """Deliver the same from a spool; return the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        session = Path(folder) / 'sessions' / parts[0][0].identity.session_id
        session.mkdir(parents=True)
        for header, body in parts:
            name = part_name(header.stream, header.number, header.klass)
            (session / name).write_bytes(b''.join(frame(header, body)))
        ledger, transport = Ledger(), RequestsTransport()
        spool = Spool.open(folder, ledger=ledger)
        uploader = Uploader(
            gateway=url,
            spool=spool,
            transport=transport,
            key=lambda: KEY,
            ledger=ledger,
            log=_Silent(),
        )
        start_s = time.perf_counter()
        assert uploader.drain(60)
        took_s = time.perf_counter() - start_s
        transport.close()
        spool.close()
        return took_s


def measure(rounds: int = 11) -> list[tuple[float, float]]:
    """Return (ours, plain) in seconds for each round."""
    found: list[tuple[float, float]] = []
    store = Path(tempfile.mkdtemp())
    try:
        with gateway(store) as url:
            for turn in range(rounds + 1):
                pair = [plain, ours] if turn % 2 else [ours, plain]
                took_s = {
                    way: way(url, parts_of_session(1_767_225_600 + 2 * turn + index))
                    for index, way in enumerate(pair)
                }
                if turn:  # the first one warms up
                    found.append((took_s[ours], took_s[plain]))
    finally:
        shutil.rmtree(store)
    return found


def rows() -> list[Row]:
    """Return the upload row."""
    return [Row('upload: 100 parts of 100 KB', 'a plain requests session', 1.10, measure)]
