"""Print each rule of the data format with its tests (``make rules``); exit 1 while one has none."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / 'test'))

from rules import RULES, SECTIONS  # noqa: E402 (its folder is on the path only now)


class Collector:
    """A plugin of pytest that notes which test names which rule."""

    def __init__(self) -> None:
        self.tests: dict[int, list[str]] = defaultdict(list)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Read the markers of all tests; the cases of a parametrised test count as one."""
        for item in session.items:
            name = item.nodeid.partition('[')[0].removeprefix('test/')
            for marker in item.iter_markers('rule'):
                for number in marker.args:
                    if name not in self.tests[number]:
                        self.tests[number].append(name)


def main() -> int:
    """Collect, print, and return the exit code."""
    os.chdir(ROOT)
    collector = Collector()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = pytest.main(['--collect-only', '-q', 'test'], plugins=[collector])
    if status != pytest.ExitCode.OK:
        print(output.getvalue())
        return 1
    for section, rules in SECTIONS.items():
        print(section)
        for number, text in rules.items():
            print(f'  {number:2} {text}')
            for test in collector.tests[number] or ['no test']:
                print(f'       {test}')
    without = [number for number in RULES if not collector.tests[number]]
    print(f'\n{len(RULES) - len(without)} of {len(RULES)} rules are held by a test')
    if without:
        print('without: ' + ' '.join(map(str, without)))
    return 1 if without else 0


if __name__ == '__main__':
    sys.exit(main())
