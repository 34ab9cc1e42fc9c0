# Two commands: `make run` trains the toy GPT under instruments, `make test` checks everything.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
REQUIREMENTS := .ci/requirements.txt
READY := $(VENV)/.ready
ARGS ?=

.PHONY: run test build setup prerequisites bench clean

run: build
	@target/release/stepledger run $(ARGS)

build: setup
	@cargo build --release --quiet

setup: prerequisites $(READY)

prerequisites:
	@PYTHON=$(PYTHON) bash .ci/prerequisites.sh

# The stamp is a copy of the requirements, so a change of them, and nothing else, installs again.
# The links give cargo paths without the Python version in them (.cargo/config.toml); libclang's wheel
# lacks the compiler's own stddef.h, which the nvtx crate's bindings need.
$(READY): $(REQUIREMENTS) | prerequisites
	@if ! cmp -s $(REQUIREMENTS) $(READY); then \
		set -e; \
		echo "setting up $(VENV): libtorch 2.11.0 and libclang (about 5 GB installed; once)" >&2; \
		$(PYTHON) -m venv $(VENV); \
		$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(REQUIREMENTS); \
		site=$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
		ln -sfn "$$site/torch" $(VENV)/libtorch; \
		ln -sfn "$$site/clang/native" $(VENV)/libclang; \
		mkdir -p $(VENV)/include; \
		ln -sfn "$$($${CC:-cc} -print-file-name=include)/stddef.h" $(VENV)/include/stddef.h; \
	fi
	@cp $(REQUIREMENTS) $(READY)
