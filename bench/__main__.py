"""Print the table of benchmarks; names of modules choose some of its rows."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

from bench.table import HEAD, run


def main(argv: list[str]) -> int:
    """Run the modules named, or all of them."""
    own = {'__main__', 'day', 'table', 'live_peer', 'live_robot'}
    names = [
        m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if m.name not in own
    ]
    if unknown := set(argv) - set(names):
        print(f'no such benchmark: {", ".join(sorted(unknown))}; there are {", ".join(names)}')
        return 2
    print(HEAD, flush=True)
    for name in argv or names:
        for row in importlib.import_module(f'bench.{name}').rows():
            print(run(row), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
