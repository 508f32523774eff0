#!/usr/bin/env bash
# Runs all tests on Kilted with the newest numpy, and a shorter job on Jazzy with the numpy of its robots: neither ROS
# nor numpy reaches the rooms that it leaves out. What needs no ROS graph runs on both at once, Jazzy's set-up too;
# live nodes have the machine to themselves.
# usage: tools/test.sh [PYTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/env.sh

# Of the tests that were named, a job may have none: pytest's 5. Without names each has some.
none_is_fine=$(($# > 0))

run() { # DISTRO MARKERS PYTEST-ARGUMENT...
    local distro=$1 markers=$2 venv=.venv status=0
    shift 2
    [ "$distro" = kilted ] || venv=.venv-$distro
    echo "== tests on ${distro^}: $markers"
    ROS_DISTRO=$distro "$venv/bin/python" -m pytest -m "$markers" --durations 10 "$@" || status=$?
    ((status == 5 && none_is_fine)) || return "$status"
}

jazzy() { # MARKERS PYTEST-ARGUMENT...
    run jazzy "$1 and not slow" \
        --ignore-glob 'test/test_gateway*' --ignore-glob 'test/test_spool*' --ignore-glob 'test/test_upload*' "${@:2}"
}

tools/setup.sh kilted
beside=$(mktemp)
set -m # a group of its own, which hears interrupts and can be stopped as one
(tools/setup.sh jazzy && jazzy 'not ros' "$@") >"$beside" 2>&1 &
set +m
trap 'rm -f "$beside"; kill -- -$! 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

status=0
run kilted 'not ros' "$@" || status=$?
wait $! || status=$?
cat "$beside"
run kilted ros "$@" || status=$?
jazzy ros "$@" || status=$?
exit "$status"
