# SPDX-License-Identifier: Apache-2.0
# An index of commands; the build itself is meson.build. `make help` lists them.

PREFIX ?= /usr/local
BUILD ?= build
FUZZ_SECONDS ?= 60

# Real photos and bad files (photos/, corpus/). Tests that need them are skipped if they are missing.
STOKER_TEST_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(STOKER_TEST_DATA),)
export STOKER_TEST_DATA
endif
# Tools and Python in .venv, where setup.sh may have installed them, take precedence.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

all: ## build the library and the command into build/; V=1 shows the compiler's lines
	@tools/build.sh $(BUILD)

setup: ## install what building and testing need (Debian, Ubuntu); with frameworks: tools/setup.sh frameworks
	@tools/setup.sh

demo: setup ## see it work: make photos, load them, compare with a plain loop, train on them
	@tools/build.sh $(BUILD) all examples benchmarks
	@tools/demo.sh $(BUILD)

wheel: ## build the Python package and install it into .venv
	@tools/wheel.sh $(BUILD)

check: ## the inner loop: build, lint, unit tests
	@tools/build.sh $(BUILD) all tests
	@tools/check.sh $(BUILD)
	@tools/test.sh $(BUILD) --suite unit

test: ## set up, build and run every test; the last line counts them
	@tools/setup.sh frameworks
	@tools/build.sh $(BUILD) all tests
	@tools/wheel.sh $(BUILD)
	@tools/test.sh $(BUILD)

bench: benchmarks ## time every stage and the whole path, and check the figures of docs/performance.md
	@tools/bench.sh $(BUILD)

bench-peers: wheel ## compare with other loaders, which are installed into build/peers; DATA=folder ARGS="--rounds 5"
	@python3 bench/peers/run.py $(BUILD) $(if $(DATA),--data $(DATA)) $(ARGS)

bench-containers: benchmarks wheel ## compare containers with a folder, and with the usual readers of their formats; ARGS="--only records"
	@python3 bench/containers.py $(BUILD) $(if $(DATA),--data $(DATA)) $(ARGS)

bench-ops: benchmarks ## compare every op with torchvision and albumentations: CPU time of one thread
	@.venv/bin/python bench/ops.py $(BUILD) $(if $(DATA),--data $(DATA)) $(ARGS)

bench-recipes: wheel ## compare whole recipes with torch's DataLoader
	@.venv/bin/python bench/recipes.py $(or $(DATA),$(STOKER_TEST_DATA)/photos) $(ARGS)

bench-cold: benchmarks ## compare reading from cold storage with fio
	@python3 bench/cold.py $(BUILD)

bench-doctor: wheel ## run the doctor on scripts that are slow on purpose, and on healthy ones; ARGS="--only decode"
	@.venv/bin/python bench/doctor/run.py $(BUILD) $(ARGS)

benchmarks: ## build the benchmark programs
	@tools/build.sh $(BUILD) all benchmarks

fuzz: ## fuzz every parser for FUZZ_SECONDS (60) each
	@tools/setup.sh fuzz
	@tools/fuzz.sh $(FUZZ_SECONDS)

lint: ## check formatting, layering, exported symbols, banned functions
	@tools/setup.sh lint
	@tools/check.sh $(BUILD)

install: all ## install under PREFIX (/usr/local); DESTDIR is honoured
	@meson configure $(BUILD) -Dprefix=$(PREFIX) && ninja -C $(BUILD) --quiet >/dev/null
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild --quiet
	@echo "installed under $(DESTDIR)$(PREFIX)"
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true
	@case "$(PREFIX)" in /usr | /usr/local) ;; *) pc=$$(find "$(DESTDIR)$(PREFIX)" -name stoker.pc -printf '%h\n' | head -n 1); \
	  echo "programs that use it need: export PKG_CONFIG_PATH=$$pc LD_LIBRARY_PATH=$${pc%/pkgconfig}" ;; esac
	@[ -z "$$SUDO_UID" ] || chown -R "$$SUDO_UID:$$SUDO_GID" $(BUILD)

clean: ## remove everything that was built
	rm -rf $(BUILD) build-*

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: all setup demo wheel check test bench bench-cold bench-containers bench-doctor bench-ops bench-peers bench-recipes benchmarks fuzz lint install clean help
