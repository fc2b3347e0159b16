// SPDX-License-Identifier: GPL-2.0
/*
 * The parts that kfi_selftest.ko has as well: compiled once more here, since an object can't be
 * part of two modules that are built in different directories.
 */
#include "../../test/frame/ktap.c"

/* Cases here commit violations on purpose. */
void model_before(const struct kfi_test *t, struct model_counts *counts)
{
	*counts = (struct model_counts) {};
}

void model_expect(struct kfi_test *t, const struct model_counts *before)
{
}

/* Suites here have no kfabric domain in common: all are bare. */
struct kfi_env *env_open(void)
{
	return NULL;
}

int env_close(struct kfi_env *env)
{
	return 0;
}
