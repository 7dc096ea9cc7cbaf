# A thin front to CMake; everything is built in build/. `make help` lists the targets.
BUILD ?= build
CMAKE ?= cmake
PREFIX ?= /usr/local
JOBS := $(shell tools/jobs.sh)

.PHONY: all demo check check-large check-fuzz check-sanitizers check-coverage check-independent check-python check-wheels accuracy bench dist install clean help

all: ## the libraries, the program lnorm and the examples
	$(CMAKE) -S . -B $(BUILD)
	$(CMAKE) --build $(BUILD) --parallel $(JOBS)

demo: ## gets what the program needs (jansson, MPFR), builds it and shows it at work
	@tools/setup.sh demo
	$(CMAKE) -S . -B $(BUILD)
	$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target lnorm_cli
	examples/demo.sh $(BUILD)/lnorm

# The tests' build is a directory of its own, so that a missing test library can never spoil the demo.
check: ## gets what the tests need, builds, runs every test, those of the Python package, too
	@tools/setup.sh check
	$(CMAKE) -S . -B $(BUILD)/check -DLNORM_TESTS=ON $(CHECK_OPTIONS)
	$(CMAKE) --build $(BUILD)/check --parallel $(JOBS)
	cd $(BUILD)/check && ctest --output-on-failure --timeout 3600 --parallel $(JOBS)
	tools/check_python.sh $(BUILD)

check-large: ## the test cases of up to 300 MB, through Python too; more than 2^32 elements in a mapped file
	@tools/setup.sh check
	$(CMAKE) -S . -B $(BUILD)/check -DLNORM_TESTS=ON $(CHECK_OPTIONS)
	$(CMAKE) --build $(BUILD)/check --parallel $(JOBS)
	cd $(BUILD)/check && ctest --output-on-failure -C Large -R _large
	LNORM_CASES=large tools/check_python.sh $(BUILD) -k test_cases

# Arguments: make accuracy ACCURACY="--results=1e6 --hunt=10"
ACCURACY ?= --results=1e8 --hunt=300
accuracy: ## a hundred million results against MPFR, and a search for the worst: ten minutes
	@tools/setup.sh check
	$(CMAKE) -S . -B $(BUILD)/check -DLNORM_TESTS=ON $(CHECK_OPTIONS)
	$(CMAKE) --build $(BUILD)/check --parallel $(JOBS) --target accuracy
	$(BUILD)/check/tests/accuracy $(ACCURACY) --json=$(BUILD)/accuracy.json

# Seconds for each fuzz target; one target: make check-fuzz FUZZ="600 calls".
FUZZ ?= 60
check-fuzz: ## the fuzz targets under libFuzzer and sanitizers, a minute each (clang)
	tests/fuzz/fuzz.sh $(BUILD)/fuzz $(FUZZ)

check-sanitizers: ## the tests under AddressSanitizer, UBSan, MemorySanitizer, ThreadSanitizer
	tests/sanitizers.sh $(BUILD)/sanitizers $(SANITIZERS)

check-coverage: ## lines and branches of src/ that the tests reach (gcc, gcovr)
	tests/coverage.sh $(BUILD)/coverage

check-independent: ## all test vectors against the implementation in Python (some minutes; nothing is built)
	python3 tests/independent/check_vectors.py all

check-python: ## the Python package: builds its wheel, installs it below build/ and runs tests/python
	tools/check_python.sh $(BUILD)

check-wheels: ## the wheel, once, in every Python from 3.11 on that is found, with its oldest NumPy and the newest
	tools/check_wheels.sh $(BUILD)

# Arguments for the benchmark: make bench BENCH="--quick --cases dram". For oneDNN: BENCH_OPTIONS=-DLNORM_ONEDNN=PREFIX.
PYTHON ?= python3
bench: ## lnorm beside memcpy and what else is installed: one table
	$(CMAKE) -S . -B $(BUILD)/bench -DLNORM_BENCH=ON -DLNORM_EXAMPLES=OFF $(BENCH_OPTIONS)
	$(CMAKE) --build $(BUILD)/bench --parallel $(JOBS)
	$(PYTHON) bench/lnorm-bench --build $(BUILD)/bench $(BENCH)

dist: ## the library as two files: build/dist/lnorm.c and lnorm.h
	python3 tools/amalgamate.py $(BUILD)/dist

install: all ## into PREFIX (default /usr/local), below DESTDIR
	$(CMAKE) --install $(BUILD) --prefix $(PREFIX)

clean: ## removes build/
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile
