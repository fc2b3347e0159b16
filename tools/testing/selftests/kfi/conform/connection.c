// SPDX-License-Identifier: GPL-2.0
/* How the suites of kfi_selftest.ko connect endpoints: compiled once more here, see shared.c. */
#include "../test/ep/memory.c"
#include "../test/ep/pair.c"
