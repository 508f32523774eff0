#!/usr/bin/env bash
# Runs all tests on Kilted with the newest numpy, then all but the slow ones on Jazzy with the numpy of its robots.
# usage: tools/test.sh [PYTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/env.sh
tools/setup.sh kilted
tools/setup.sh jazzy

status=0
echo '== tests on Kilted'
ROS_DISTRO=kilted .venv/bin/python -m pytest "$@" || status=$?
echo '== tests on Jazzy'
ROS_DISTRO=jazzy .venv-jazzy/bin/python -m pytest -m 'not slow' "$@" || status=$?
exit "$status"
