// SPDX-License-Identifier: GPL-2.0
/*
 * The helpers that are inlined into Rust, as rust/Makefile.inline says: all of the kernel's, and those of ours that are
 * a few instructions on the way of each registration. They keep nothing between calls, or there would be two of it: the
 * modules have each of them as a function, too.
 */
#include <linux/build_bug.h>
#include <linux/percpu.h>
#include <linux/stringify.h>

#define KFI_HELPER __always_inline

#ifdef CONFIG_X86_64
/* No operand is in an address space of its own, see for_clang.h. */
static_assert(sizeof(__stringify(__percpu_qual)) == 1);
static_assert(sizeof(__stringify(__percpu_seg_override)) == 1);
#endif

#include "helpers.c"

#include "lock.c"
#include "noio.c"
#include "rdma_reg_mr.c"
#include "users.c"
