"""``python -m cognitive3d_ros.parameters yaml|table``: print what is made from the declaration."""

from __future__ import annotations

import argparse
import sys

from .documents import table_text, yaml_text


def main(arguments: list[str] | None = None) -> int:
    """Print one of the documents; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog='python -m cognitive3d_ros.parameters', description='Print all parameters.'
    )
    parser.add_argument(
        'document',
        choices=('yaml', 'table'),
        help='yaml: config/cognitive3d.yaml; table: docs/parameters.md',
    )
    document = parser.parse_args(arguments).document
    sys.stdout.write(yaml_text() if document == 'yaml' else table_text())
    return 0


if __name__ == '__main__':
    sys.exit(main())
