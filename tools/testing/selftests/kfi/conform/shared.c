// SPDX-License-Identifier: GPL-2.0
/*
 * The parts that kfi_selftest.ko has as well: compiled once more here, since an object can't be
 * part of two modules that are built in different directories.
 */
#include "../test/frame/debugfs.c"
#include "../test/frame/feature.c"
#include "../test/frame/ktap.c"
#include "../test/frame/memory.c"
#include "../test/frame/model.c"
#include "../test/frame/request.c"
#include "../test/frame/swap.c"
