#!/usr/bin/env bash
# Runs all tests on Kilted with the newest numpy, and a shorter job on Jazzy with the numpy of its robots: neither ROS
# nor numpy reaches the rooms that it leaves out. Tests of live nodes mostly wait, so three jobs run beside each other;
# those that hold a node to a rate come last, and have the machine to themselves.
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
    local left_out=() room
    for room in cli_spool framing gateway outage power_cut recovery seconds spool upload; do
        left_out+=(--ignore-glob "test/test_$room*")
    done
    tools/setup.sh jazzy && run jazzy "$1 and not slow" "${left_out[@]}" "${@:2}"
}

without_a_graph() { # PYTEST-ARGUMENT...
    local status=0
    run kilted 'not ros' "$@" || status=$?
    jazzy 'not ros' "$@" || status=$?
    return "$status"
}

outputs=$(mktemp -d)
jobs=()
end() {
    for job in "${jobs[@]}"; do kill -- "-$job" 2>/dev/null || true; done
    rm -rf "$outputs"
}
trap end EXIT
trap 'exit 130' INT TERM

beside() { # JOB ARGUMENT...: what it prints is printed when it has ended
    set -m # a group of its own, which hears interrupts and can be stopped as one
    "$@" >"$outputs/${#jobs[@]}" 2>&1 &
    set +m
    jobs+=($!)
}

beside jazzy ros "$@" # with its set-up, which mostly waits too
tools/setup.sh kilted
beside without_a_graph "$@"
status=0
run kilted 'ros and not alone' "$@" || status=$?
for number in "${!jobs[@]}"; do
    wait "${jobs[$number]}" || status=$?
    cat "$outputs/$number"
done
jobs=()
run kilted alone "$@" || status=$?
exit "$status"
