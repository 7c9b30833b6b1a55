# SPDX-License-Identifier: Apache-2.0
# An index of commands; the build itself is meson.build. `make help` lists them.

PREFIX ?= /usr/local
BUILD ?= build
FUZZ_SECONDS ?= 60

# Real photos and bad files for tests and benchmarks (photos/, corpus/); what needs them is skipped without.
STOKER_TEST_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(STOKER_TEST_DATA),)
export STOKER_TEST_DATA
endif
# The tools and the Python that setup.sh may have put into .venv come first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

all: ## build the library and the command into build/
	@tools/setup.sh
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD)
	@ninja -C $(BUILD) -n | grep -q 'no work to do' || ninja -C $(BUILD)

demo: all ## see it work: photos made, loaded, compared with a plain loop, trained on
	@tools/demo.sh $(BUILD)

wheel: all ## build the Python package and install it into .venv
	@tools/wheel.sh $(BUILD)

test: all ## run every test; the last line counts them
	@tools/setup.sh frameworks
	@tools/wheel.sh $(BUILD)
	@tools/test.sh $(BUILD)

bench: all ## time every stage and the whole path, and check the figures of docs/performance.md
	@tools/bench.sh $(BUILD)

bench-peers: all ## Stoker beside other loaders, which are installed into build/peers; DATA=folder ARGS="--rounds 5"
	@tools/wheel.sh $(BUILD)
	@python3 bench/peers/run.py $(BUILD) $(if $(DATA),--data $(DATA)) $(ARGS)

bench-containers: all ## containers beside a folder and beside their formats' own readers; ARGS="--only records"
	@tools/wheel.sh $(BUILD)
	@python3 bench/containers.py $(BUILD) $(if $(DATA),--data $(DATA)) $(ARGS)

bench-cold: all ## read from cold storage, beside fio
	@python3 bench/cold.py $(BUILD)

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

clean: ## remove all that was built
	rm -rf $(BUILD) build-*

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: all demo wheel test bench bench-cold bench-containers bench-peers fuzz lint install clean help
