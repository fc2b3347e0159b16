// SPDX-License-Identifier: GPL-2.0
/* What is measured, and how cheap it shall be. */
#include "bench.h"

const struct bench_work bench_works[] = {
	{ "reg.kmalloc.1", LINEAR, 1, false, 70, 55 },
	{ "regv.kmalloc.1", KVEC, 1, false, 70, 55 },
	{ "regbv.one.1", BVEC_ONE, 1, false, 70, 55 },
	{ "regsgl.one.1", SGL_ONE, 1, false, 70, 55 },
	{ "reg.kmalloc.64", LINEAR, 64, false, 75 },
	{ "reg.kmalloc.512", LINEAR, 512, false, 75 },
	{ "reg.vmalloc.64", VMALLOC, 64, false, 70 },
	{ "reg.vmalloc.512", VMALLOC, 512, false, 70 },
	{ "reg.vmap.64", VMAP, 64, false, 80 },
	{ "reg.vmap.512", VMAP, 512, false, 85 },
	{ "regbv.one.64", BVEC_ONE, 64, false, 75 },
	{ "regbv.one.512", BVEC_ONE, 512, false, 75 },
	{ "regbv.scattered.64", BVEC_SCATTERED, 64, false, 85 },
	{ "regbv.scattered.512", BVEC_SCATTERED, 512, false, 95 },
	{ "regsgl.one.512", SGL_ONE, 512, false, 75 },
	{ "regsgl.scattered.64", SGL_SCATTERED, 64, false, 85 },
	{ "regsgl.scattered.512", SGL_SCATTERED, 512, false, 100 },
	{ "batch.1", LINEAR, 1, true, 100, 100 },
	{ "batch.64", LINEAR, 64, true, 100, 100 },
	{ "batch.512", LINEAR, 512, true, 100, 100 },
};

const unsigned int bench_works_count = ARRAY_SIZE(bench_works);
