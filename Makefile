# Two commands: `make run` trains the toy GPT under instruments, `make test` checks everything.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
REQUIREMENTS := .ci/requirements.txt
READY := $(VENV)/.ready
ARGS ?=

.PHONY: run test build setup prerequisites bench device-bundle clean

# The build without libtorch has a folder of its own: both feature sets write a file of the same name.
CORE := --no-default-features --target-dir target/core

run: build
	@target/release/stepledger run $(ARGS)

build: setup
	@cargo build --release

test: setup
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy $(CORE) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
	cargo test $(CORE)
	cargo test

# Ratios to the bare step and to PyTorch; wants a quiet machine.
bench: build
	cargo bench --bench overhead
	$(VENV)/bin/python benches/compare_pytorch.py --bin target/release/stepledger

# What tests/device.sh needs on a machine with a GPU and a torch of the same version, but without Rust. The glibc that it
# must have is that of the newest symbol in the binaries.
BUNDLE := target/device-bundle
BUNDLE_MIB := 60

device-bundle: build
	@cargo build --release --example device_checks
	@rm -rf $(BUNDLE)
	@mkdir -p $(BUNDLE)
	@cp target/release/stepledger target/release/libstepledger.so target/release/examples/device_checks tests/device.sh $(BUNDLE)/
	@strip $(BUNDLE)/stepledger $(BUNDLE)/libstepledger.so $(BUNDLE)/device_checks
	@objdump -T $(BUNDLE)/stepledger $(BUNDLE)/libstepledger.so $(BUNDLE)/device_checks | \
		sed -n 's/.*GLIBC_\([0-9]*\.[0-9]*\).*/\1/p' | sort -Vu | tail -n 1 > $(BUNDLE)/glibc
	@echo "$(BUNDLE): for glibc $$(cat $(BUNDLE)/glibc) and newer"; test -s $(BUNDLE)/glibc
	@size=$$(du -sm $(BUNDLE) | cut -f1); echo "$(BUNDLE): $$size MiB (at most $(BUNDLE_MIB))"; test $$size -le $(BUNDLE_MIB)

clean:
	rm -rf target $(VENV)

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
		ln -sfn "$$(cc -print-file-name=include)/stddef.h" $(VENV)/include/stddef.h; \
	fi
	@cp $(REQUIREMENTS) $(READY)
