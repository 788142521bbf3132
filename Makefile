# Everything from a fresh clone: each target makes what it needs. Python >= 3.11; a C compiler makes searches fast.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
BUILT := pyproject.toml setup.py $(wildcard quorumhash/_native/*.[ch])

.PHONY: demo test test-all lint docs release-check clean

demo: $(STAMPS)/core
	$(BIN)/quorumhash demo

test: $(STAMPS)/test lint
	$(BIN)/python -m pytest -m "not extra"

# every extra; torch first and pinned, so that no other package pulls in another build of it
test-all: $(STAMPS)/all lint docs
	$(BIN)/python -m pytest

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# wheel and sdist, built and installed into an empty environment, with a compiler and without; then every extra resolved
release-check: $(STAMPS)/all
	$(BIN)/python -m pytest tests/test_release.py

$(STAMPS)/venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "quorumhash needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/core: $(STAMPS)/venv $(BUILT)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(STAMPS)/test: $(STAMPS)/venv $(BUILT)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(STAMPS)/core $@

$(STAMPS)/docs: $(STAMPS)/test
	$(BIN)/python -m pip install --quiet --editable '.[test,docs]'
	touch $@

# a browser for the page's tests, where this user may install one; without it those tests are skipped and say so
$(STAMPS)/browser: $(STAMPS)/venv
	command -v chromium chromium-browser google-chrome >/dev/null || \
		(apt-get update -qq && apt-get install -qq -y chromium) >/dev/null 2>&1 || true
	touch $@

# a compiler and an emulator for the kernels of ARM processors: the same; after the browser, as apt-get runs once at a time
$(STAMPS)/emulator: $(STAMPS)/browser
	(command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64) >/dev/null || \
		(apt-get update -qq && apt-get install -qq -y gcc-aarch64-linux-gnu qemu-user) >/dev/null 2>&1 || true
	touch $@

$(STAMPS)/all: $(STAMPS)/test $(STAMPS)/emulator
	$(BIN)/python -m pip install --quiet 'torch==2.13.0'
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $(STAMPS)/docs $@

clean:
	rm -rf $(VENV) site build dist quorumhash/_native/*.so report.html .mypy_cache .ruff_cache .pytest_cache .hypothesis
