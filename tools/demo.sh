#!/usr/bin/env bash
# Runs the demo: a simulated robot, or the bag given, for half a minute.
# usage: tools/demo.sh [BAG]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/env.sh
exec .venv/bin/python demo/demo.py ${1:+--bag "$1"}
