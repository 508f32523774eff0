# Two commands do all the set-up themselves, on x86_64 Debian or Ubuntu: make demo, make test.
.PHONY: setup demo test check bench rules
SHELL := /bin/bash

setup: ## install what is missing, nothing else
	@tools/setup.sh

demo: setup ## record, deliver and show a session; BAG=path plays a bag instead of the simulated robot
	@tools/demo.sh $(if $(BAG),"$(BAG)")

test: ## all tests, on Kilted and on Jazzy
	@tools/test.sh

check: setup ## style, types and tests
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	@tools/test.sh

bench: setup ## the table of benchmarks
	@. tools/env.sh && .venv/bin/python -m bench

rules: setup ## which tests hold which rule of the data format
	@. tools/env.sh && .venv/bin/python tools/rules.py
