#!/usr/bin/env bash
# Runs all tests on Kilted with the newest numpy, then a shorter job on Jazzy with the numpy of its robots: neither ROS
# nor numpy reaches the rooms that it leaves out.
# usage: tools/test.sh [PYTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/env.sh
tools/setup.sh kilted
tools/setup.sh jazzy

status=0
echo '== tests on Kilted'
ROS_DISTRO=kilted .venv/bin/python -m pytest --durations 10 "$@" || status=$?
echo '== tests on Jazzy'
ROS_DISTRO=jazzy .venv-jazzy/bin/python -m pytest -m 'not slow' \
    --ignore-glob 'test/test_gateway*' --ignore-glob 'test/test_spool*' --ignore-glob 'test/test_upload*' "$@" || status=$?
exit "$status"
