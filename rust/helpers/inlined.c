// SPDX-License-Identifier: GPL-2.0
/*
 * The helpers that are inlined into Rust, as rust/Makefile.inline says: all of the kernel's, and those of ours that are
 * a few instructions on the way of each registration. They keep nothing between calls, or there would be two of it: the
 * modules have each of them as a function, too.
 */
#define KFI_HELPER __always_inline

#include "helpers.c"

#include "lock.c"
#include "noio.c"
#include "rdma_one.c"
#include "users.c"
