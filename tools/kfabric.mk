# SPDX-License-Identifier: GPL-2.0
#
# For modules that use kfabric, in C or in Rust.  Installed by `make install-dev` as
# PREFIX/lib/kfabric/KERNEL-RELEASE/kfabric.mk; in a module's Kbuild:
#
#	include /usr/local/lib/kfabric/$(KERNELRELEASE)/kfabric.mk
#	obj-m := my_module.o
#
# Then C says #include <kfabric.h>, and Rust says use kfabric::...  A Rust module must
# be compiled by the very compiler that compiled kfabric, for the same kernel tree.

kfabric-dir := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))

ccflags-y += -I$(abspath $(kfabric-dir)/../../../include/kfabric)
# As in kfabric's own sources: `kernel_7_3` is set from 7.3 on.
rustflags-y += $(shell [ $$(( $(VERSION) * 1000 + $(PATCHLEVEL) )) -ge 7003 ] && echo --cfg kernel_7_3)
rustflags-y += -L $(kfabric-dir) --extern kfabric=$(kfabric-dir)/libkfabric.rmeta
KBUILD_EXTRA_SYMBOLS += $(kfabric-dir)/Module.symvers
