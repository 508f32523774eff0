#!/usr/bin/env bash
# Builds into a virtual environment what no package index has: the message packages and tf2.
# usage: test/ros_env/build.sh VENV
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$(cd "${1:?usage: build.sh VENV}" && pwd)
python=$venv/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly() { # NAME COMMAND...: shows the log only when the command fails
    local log=$work/$1.log
    shift
    "$@" >>"$log" 2>&1 || { tail -n 40 "$log" >&2; return 1; }
}

read -r include numpy_include site < <("$python" -c '
import numpy, sysconfig
print(sysconfig.get_path("include"), numpy.get_include(), sysconfig.get_path("purelib"))')

# The exported CMake targets of the wheels name folders of the machine that built them.
grep -rlE '/opt/python/cp[0-9]' "$venv"/share/*/cmake | xargs -r sed -i -E \
    -e "s#/opt/python/[^;\"]*/site-packages/numpy/(_core|core)/include#$numpy_include#g" \
    -e "s#/opt/python/[^;\"]*/include/python3\.[0-9]+#$include#g" || true

build_messages() { # SOURCE
    local name build
    name=$(basename "$1")
    build=$work/$name
    echo "  building $name"
    # rosidl finds its generators through AMENT_PREFIX_PATH, and runs those of the venv's own Python.
    AMENT_PREFIX_PATH=$venv PATH=$venv/bin:$PATH quietly "$name" cmake -S "$1" -B "$build" -Wno-dev \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$venv" -DCMAKE_PREFIX_PATH="$venv" \
        -DPython3_EXECUTABLE="$python" -DPYTHON_INSTALL_DIR="${site#"$venv"/}" -DBUILD_TESTING=OFF
    AMENT_PREFIX_PATH=$venv PATH=$venv/bin:$PATH quietly "$name" cmake --build "$build" -j "$(nproc)"
    quietly "$name" cmake --install "$build"
}

build_messages "$here/tf2_msgs"
build_messages "$here/c3d_test_msgs"
build_messages "$here/../../interfaces/cognitive3d_msgs"

echo '  building the tf2 stand-in'
quietly tf2_core g++ -std=c++17 -O2 -Wall -shared -fPIC -o "$venv/lib/libc3d_tf2_core.so" \
    "$here/tf2_core/buffer_core.cpp" -ltf2 -lconsole_bridge -lrostime
# A .pth entry goes to the end of sys.path: a tf2_ros that is there already comes first.
echo "$here/standin" >"$site/c3d_ros_env.pth"
