# SPDX-License-Identifier: GPL-2.0
#
# kfabric in Rust.  `make help` lists what can be made.
#
# There are two ways to build:
#
#   make modules KDIR=/path   for a kernel tree of your own, which must be prepared
#                             (make modules_prepare) and have CONFIG_RUST=y; with the
#                             compilers that this machine has
#   make modules              for Debian's stock kernel, in an environment that is made
#                             on first use (tools/env); KERNEL=7.2 names another one
#
# What is compiled is described in Kbuild; this file only says for which tree and
# where to.  Objects never go into the source: several kernels share it, so each has
# its build directory.

# Options of one letter, as the kernel's makefile finds them: `n` is make -n.
short-opts := $(firstword -$(MAKEFLAGS))
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
comma := ,

# The series of Linux that this is built and tested for, oldest first.
SERIES := 7.2 7.3

PREFIX ?= /usr/local
DESTDIR ?=

# What can only be made for a kernel tree.
kernel-targets := modules modules_install install-dev clippy fmt fmt-check checkpatch \
		  rust-analyzer rustdoc

.PHONY: all $(kernel-targets) clean env demo deb test test-all soak stress bench profile doc-check room-check name-check prose-check kfi kfi-check vm shell kselftest help
all: modules

ifneq ($(origin KDIR),undefined)
ifeq ($(KDIR),)
$(error KDIR is set, but empty. For a kernel tree of your own run \
`make KDIR=/path/to/kernel $(or $(MAKECMDGOALS),modules)`, for Debian's kernel run \
`make $(or $(MAKECMDGOALS),modules)` without KDIR)
endif
endif

# These targets ignore KERNEL or ARCH, so make refuses it.
ignores-KERNEL := demo deb test test-all kfi kfi-check
ignores-ARCH := demo deb soak stress bench profile kfi kfi-check
ignored = $(if $(filter-out x86_64 x86,$($(1))),$(filter $(ignores-$(1)),$(MAKECMDGOALS)))
$(foreach i,KERNEL ARCH,$(if $(call ignored,$(i)),$(error make $(call ignored,$(i)) takes no $(i)=$($(i)); leave it out)))

ifeq ($(KDIR),)
# ---------------------------------------------------------------------------------
# In the environment: make it, then come back here with KDIR set.

# KERNEL is a series (7.2, 7.3), newest, or debug.
# For ARCH=arm64 one of pages of 4 KiB, unless KERNEL names another one, as in 7.3-arm64-16k.
kernel = $(if $(filter-out x86_64 x86 arm64,$(ARCH)),$(error ARCH=$(ARCH) is neither x86_64 nor \
arm64))$(or $(KERNEL),newest)$(if $(findstring arm64,$(KERNEL)),,$(filter-out -x86_64 -x86,$(ARCH:%=-%)))

$(kernel-targets):
	@tools/env/make '$(kernel)' $@ $(filter-out KERNEL=% ARCH=%,$(MAKEOVERRIDES))

else
# ---------------------------------------------------------------------------------
# For the tree in KDIR.

KDIR := $(abspath $(KDIR))
refuse = $(error KDIR=$(KDIR) $(1))
ifeq ($(wildcard $(KDIR)/include/config/auto.conf),)
$(call refuse,is no prepared kernel tree; run `make modules_prepare` there)
endif
include $(KDIR)/include/config/auto.conf
RELEASE := $(shell cat $(KDIR)/include/config/kernel.release)
series := $(shell echo '$(RELEASE)' | grep -oE '^[0-9]+\.[0-9]+')

# UNSUPPORTED=y tries it all the same.
ifneq ($(UNSUPPORTED),y)
ifeq ($(filter $(series),$(SERIES)),)
$(call refuse,is Linux $(RELEASE). kfabric is tested with $(SERIES) only; UNSUPPORTED=y tries it)
endif
ifeq ($(CONFIG_X86_64)$(CONFIG_ARM64),)
$(call refuse,is not for x86_64 or arm64$(comma) the architectures that kfabric is tested on; UNSUPPORTED=y tries it)
endif
endif
ifneq ($(CONFIG_RUST),y)
$(call refuse,has no CONFIG_RUST=y (see Documentation/rust/quick-start.rst there))
endif
ifneq ($(and $(CONFIG_INFINIBAND),$(CONFIG_INFINIBAND_ADDR_TRANS)),y)
$(call refuse,lacks CONFIG_INFINIBAND=m or CONFIG_INFINIBAND_ADDR_TRANS=y$(comma) which kfi_verbs.ko needs)
endif
# A tree that was built with O= keeps its source elsewhere.
KSRC := $(firstword $(wildcard $(KDIR)/source) $(KDIR))

BUILD ?= build/$(RELEASE)
build-dir := $(abspath $(BUILD))

# What the kernel's makefile builds for: the machine, unless ARCH= says otherwise.
arch := $(or $(ARCH),$(patsubst aarch64,arm64,$(shell uname -m)))
configured-arch := $(if $(CONFIG_ARM64),arm64,$(if $(CONFIG_X86_64),x86_64 x86))

# The compilers must be those that the tree was configured with; for C, one of the same major version, as the
# kernel only warns of another minor one.  (CC= or LLVM= on the command line names another one for C.)
ifeq ($(CONFIG_CC_IS_CLANG),y)
configured-cc := clang
kernel-cc := LLVM=1
else
configured-cc := $(firstword $(subst ", ,$(CONFIG_CC_VERSION_TEXT)))
kernel-cc := CC=$(configured-cc)
endif
ifneq ($(origin LLVM)$(origin CC),undefineddefault)
configured-cc :=
kernel-cc :=
endif
configured-major = $(shell echo $$((($(CONFIG_GCC_VERSION) + $(CONFIG_CLANG_VERSION)) / 10000)))
cc-major = $(shell $(configured-cc) -dumpversion 2>/dev/null | cut -d. -f1)
cc-is = $(shell $(configured-cc) --version 2>/dev/null | head -n1)
RUSTC ?= rustc
configured-rustc := $(subst ",,$(CONFIG_RUSTC_VERSION_TEXT))
rustc-is = $(shell $(RUSTC) --version 2>/dev/null)

# What compiles nothing needs no compiler.
compiles := $(filter all $(kernel-targets),$(filter-out fmt fmt-check checkpatch,$(or $(MAKECMDGOALS),all)))
ifneq ($(if $(findstring n,$(short-opts)),,$(compiles)),)
ifeq ($(wildcard $(KDIR)/rust/libkernel.rmeta),)
$(call refuse,has no Rust metadata (rust/libkernel.rmeta)$(comma) as packages of kernel headers; prepare the \
kernel's source instead (Documentation/install.md))
endif
ifeq ($(filter $(arch),$(or $(configured-arch),$(arch))),)
$(call refuse,is for $(firstword $(configured-arch))$(comma) but ARCH is $(arch); give \
ARCH=$(firstword $(configured-arch))$(comma) and CROSS_COMPILE= if this machine has another one)
endif
ifneq ($(configured-cc),)
ifneq ($(cc-major),$(configured-major))
$(call refuse,was configured with $(subst ",,$(CONFIG_CC_VERSION_TEXT))$(comma) but $(configured-cc) is $(or $(cc-is),not \
installed); install that one$(comma) or name another one with CC=)
endif
endif
ifneq ($(rustc-is),$(configured-rustc))
$(call refuse,was configured with $(configured-rustc)$(comma) but $(RUSTC) is $(or $(rustc-is),not \
installed); install that one$(comma) or name it with RUSTC=)
endif
ifeq ($(shell command -v $(or $(BINDGEN),bindgen)),)
$(call refuse,needs bindgen$(comma) which is not installed; install it$(comma) or name it with BINDGEN=)
endif
endif

# $(call kbuild,BUILD DIRECTORY) TARGET: with make's jobserver (+), but not under make -n.
kbuild = $(if $(findstring n,$(short-opts)),,+)@mkdir -p $(1) && $(MAKE) -C $(KDIR) M=$(CURDIR) MO=$(1) $(kernel-cc)

# kfi_nvme.ko must have the layouts of the kernel's nvme-core.ko. That module is in the kernel's tree, in the
# environment's package, or on this machine. The check is skipped without pahole, python3, DWARF or BTF.
hosts := $(addsuffix /drivers/nvme/host,$(KDIR) $(KDIR)/../pkg/usr/lib/modules/$(RELEASE)/kernel /lib/modules/$(RELEASE)/kernel)
core-dir := $(firstword $(dir $(wildcard $(addsuffix /nvme-core.ko*,$(hosts)))))
btf-base := $(firstword $(wildcard $(KDIR)/vmlinux $(if $(filter $(RELEASE),$(shell uname -r)),/sys/kernel/btf/vmlinux)))

modules:
	$(call kbuild,$(build-dir)) modules
ifneq ($(and $(CONFIG_DEBUG_INFO),$(core-dir),$(btf-base),$(wildcard tools/check-layouts)),)
	@if [ -e $(build-dir)/kfi_nvme.ko ] && command -v pahole >/dev/null && command -v python3 >/dev/null; then \
		said=$$(tools/check-layouts $(build-dir) $(core-dir) $(btf-base)); \
		case $$? in 0 | 4) ;; *) echo "$$said"; exit 1 ;; esac; \
	fi
endif

# INSTALL_MOD_PATH= as for the kernel's own.  Kbuild installs the modules that it has built last:
# those without tests, unless KFI_TESTS=y.
modules_install: KFI_TESTS ?= n
modules_install:
	$(call kbuild,$(build-dir)) KFI_TESTS=$(KFI_TESTS) modules
	$(call kbuild,$(build-dir)) KFI_TESTS=$(KFI_TESTS) modules_install

# For consumers: the headers, the symbols, and the Rust crates' metadata, with a
# makefile to include (see tools/kfabric.mk).
dev-headers := $(DESTDIR)$(PREFIX)/include/kfabric
dev-kernel := $(DESTDIR)$(PREFIX)/lib/kfabric/$(RELEASE)
install-dev: modules
	install -d $(dev-headers) $(dev-kernel)
	install -m644 include/*.h $(dev-headers)/
	install -m644 $(build-dir)/Module.symvers tools/kfabric.mk $(dev-kernel)/
	install -m644 $(build-dir)/rust/bindings/libkfi_bindings.rmeta \
		$(build-dir)/rust/kfabric/libkfabric.rmeta $(dev-kernel)/

# Clippy is another compiler to kbuild: in a directory of its own it rebuilds nothing.  Nobody
# debugs what it makes, nor runs it: helpers are called there, as where they can't be inlined.
clippy:
	$(call kbuild,$(build-dir)-clippy) CLIPPY=1 W=e KRUSTFLAGS=-Cdebuginfo=0 \
		INLINE_HELPERS=n CONFIG_DEBUG_INFO_BTF_MODULES= modules

rust-files = $(shell find rust samples tools -name '*.rs')
rustfmt = rustfmt --edition 2021 --config-path $(KSRC)/.rustfmt.toml
fmt:
	@$(rustfmt) $(rust-files)
fmt-check:
	@$(rustfmt) --check $(rust-files)

# Not asked for: typedefs, which the API has; -ENOSYS, which it returns; exports next to
# their functions, which are in Rust; naps of some milliseconds, which tests take; and
# words that happen to be a function's name.
c-files = $(shell find include rust samples tools -name '*.[ch]')
checkpatch:
	@perl $(KSRC)/scripts/checkpatch.pl --no-tree --quiet --terse --no-summary --show-types \
		--ignore NEW_TYPEDEFS,ENOSYS,EXPORT_SYMBOL,MSLEEP,EMBEDDED_FUNCTION_NAME \
		-f $(c-files)

# The kernel's generator knows the kernel's crates; ours are added to them.
rust-analyzer: modules
	$(call kbuild,$(build-dir)) rust-analyzer
	@tools/rust-analyzer $(build-dir) >rust-project.json
	@echo "  WROTE   rust-project.json"

rustdoc: modules
	@tools/rustdoc $(build-dir)
	@echo "  WROTE   $(patsubst $(CURDIR)/%,%,$(build-dir))/doc"

endif # KDIR

# ---------------------------------------------------------------------------------
# With or without KDIR

clean:
	rm -rf build rust-project.json

env:
	@tools/env/setup

demo:
	@tools/vm/demo

# In build/deb: kfabric-dkms, kfabric-dev, kfabric-tools and their source package.
deb:
	@tools/package

test:
	@tools/vm/test $(ARCH)

# Most suites on every kernel and over every model of a device.
test-all:
	@tools/vm/test --all $(ARCH)

# What test has in a short form; tools/vm/soak has the rest.
soak:
	@tools/vm/soak $(KERNEL)

# The same for calls, accesses, rounds, removals and points of failure: KERNEL names one kernel, PARTS some parts.
stress:
	@tools/vm/stress $(KERNEL)

# BASE=FILE compares with the figures of an earlier run; tools/bench/run has the rest.
bench:
	@tools/bench/run $(KERNEL)

# WORK says of what, and WAY of whom; see tools/bench/profile/run.
profile:
	@tools/bench/profile/run $(if $(WORK),$(WORK),reg.kmalloc.1) $(KERNEL)

# Does each thing that a document names exist, and does each call return what its table says?
doc-check:
	@tools/env/root
	@tools/env/run tools/check-docs

# Do files use each other in one direction only?
room-check:
	@tools/env/root
	@tools/env/run tools/check-rooms

# Has each public type a name of its own, and one that the field uses?
name-check:
	@tools/env/root
	@tools/env/run tools/check-names

# Are the sentences of comments and documents short and direct?
prose-check:
	@tools/env/root
	@tools/env/run tools/check-prose

# The command, for this machine and for guests: build/kfi.
kfi:
	@tools/env/root
	@tools/env/run tools/kfi/build

# Its unit tests, and clippy.
kfi-check:
	@tools/env/root
	@tools/env/run sh -c 'tools/kfi/build test && tools/kfi/build clippy'

# What KERNEL says, with everything loaded, at a prompt.
vm shell:
	@tools/vm/shell $(kernel)

# On this very machine, whose kernel must have the modules.
kselftest:
	$(MAKE) -C tools/testing/selftests/kfi run_tests

help:
	@echo 'For a kernel tree of your own (KDIR=/path), or for Debian'\''s (no KDIR):'
	@echo '  modules          the modules, samples and selftests, in build/ (default);'
	@echo '                   KFI_TESTS=n leaves the selftests out'
	@echo '  modules_install  the modules and samples into /lib/modules (INSTALL_MOD_PATH='
	@echo '                   for another root); KFI_TESTS=y adds the selftests'
	@echo '  install-dev      headers, symbols, crates for consumers (DESTDIR=, PREFIX=)'
	@echo '  deb              Debian packages in build/deb: modules by DKMS; headers, manual pages; kfi(8)'
	@echo '  clippy           the kernel'\''s lints; a warning is an error'
	@echo '  fmt, fmt-check   the kernel'\''s formatting'
	@echo '  checkpatch       the kernel'\''s style of C'
	@echo '  rustdoc          documentation of all crates, in the build directory'
	@echo '  rust-analyzer    rust-project.json'
	@echo '  doc-check        do links, names, errnos and parameters in documents hold?'
	@echo '  room-check       do files of Rust and C use each other in one direction only?'
	@echo '  name-check       has each public Rust type one name, from the field'\''s vocabulary?'
	@echo '  prose-check      are the sentences of comments and documents short and direct?'
	@echo
	@echo 'The command kfi(8), for any kernel:'
	@echo '  kfi              builds it: build/kfi'
	@echo '  kfi-check        its unit tests, and the lints of clippy'
	@echo
	@echo 'In virtual machines, nothing but root needed:'
	@echo '  demo             everything from scratch, then the samples in a VM'
	@echo '  test             all suites on the newest kernel, some on the others and on models of hardware'
	@echo '  test-all         most suites on all of them, an hour or more'
	@echo '  soak             the long forms of some tests, an hour in all'
	@echo '  stress           random calls and accesses, rounds, removals, failures: hours (SEED=, PARTS=, SCALE=)'
	@echo '  bench            what a registration costs, in instructions (Documentation/performance.md: ONLY=, ROUNDS=, BASE=)'
	@echo '  profile          where they go, function by function (WORK=reg.kmalloc.1)'
	@echo '  shell            a prompt in a VM with the modules loaded'
	@echo '  env              only prepare toolchain and kernels (cached outside of here)'
	@echo
	@echo 'Also: clean; kselftest (on this machine).  Variables: KERNEL=7.2|7.3|debug, ARCH=arm64, V=1, W=1.'
