"""Write the lock files of the test environments: ``python tools/lock.py kilted jazzy``.

Each ``test/requirements/<distro>.in`` is resolved by pip under every Python that the ROS wheels are
built for (``python3.10`` to ``python3.13``, all on PATH), and ``<distro>.txt`` holds the union, with a
marker where the Pythons differ.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PYTHONS = ('3.10', '3.11', '3.12', '3.13')
FOLDER = Path(__file__).parent.parent / 'test' / 'requirements'

# Plugins of pytest that colcon-core asks for and nothing here uses.
UNUSED = {'coverage', 'pytest-cov', 'pytest-repeat'}
# Packages without content that only name the versions of a distribution.
EMPTY_PREFIX = 'ros-jazzy-'


def resolve(source: Path, python: str) -> dict[str, str]:
    """Return the version of each package that pip would install, by name."""
    command = [f'python{python}', '-m', 'pip', 'install', '--quiet', '--dry-run']
    command += ['--ignore-installed', '--report', '-', '-r', str(source)]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = (each['metadata'] for each in report['install'])
    found = {each['name'].lower().replace('_', '-'): each['version'] for each in packages}
    return {
        name: version
        for name, version in found.items()
        if name not in UNUSED and not name.startswith(EMPTY_PREFIX)
    }


def marker(pythons: list[str]) -> str:
    """Return the environment marker of a run of Pythons; the newest stands for those after it."""
    first, last = PYTHONS.index(pythons[0]), PYTHONS.index(pythons[-1])
    bounds = [f'python_version >= "{PYTHONS[first]}"'] if first > 0 else []
    bounds += [f'python_version < "{PYTHONS[last + 1]}"'] if last + 1 < len(PYTHONS) else []
    return ' ; ' + ' and '.join(bounds) if bounds else ''


def merge(by_python: dict[str, dict[str, str]]) -> list[str]:
    """Return the lines of the lock: one for each version of each package."""
    pythons: dict[tuple[str, str], list[str]] = {}
    for python, versions in by_python.items():
        for package in versions.items():
            pythons.setdefault(package, []).append(python)
    return [
        f'{name}=={version}{marker(where)}' for (name, version), where in sorted(pythons.items())
    ]


def main(distros: list[str]) -> None:
    """Lock the distributions named."""
    for distro in distros:
        source = FOLDER / f'{distro}.in'
        lines = merge({python: resolve(source, python) for python in PYTHONS})
        head = (
            f'# Made by tools/lock.py from {source.name}: complete, so installed with --no-deps.'
        )
        (FOLDER / f'{distro}.txt').write_text('\n'.join([head, *lines]) + '\n')
        print(f'{distro}: {len(lines)} lines')


if __name__ == '__main__':
    main(sys.argv[1:])
