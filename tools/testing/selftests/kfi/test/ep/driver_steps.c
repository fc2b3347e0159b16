// SPDX-License-Identifier: GPL-2.0
/* The driver of an endpoint's device fails single steps. */
#include "driver.h"

struct ib_device *driver_wrap(struct kfi_test *t, struct ep_side *s)
{
	struct kfi_verbs_dom_ops *verbs;
	struct ib_device *dev;
	void *ops;

	if (!EXPECT_EQ(t, kfi_open_ops(&s->domain->fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL), 0))
		return NULL;
	verbs = ops;
	dev = verbs->get_ib_device(&s->domain->fid);
	return EXPECT_EQ(t, kfi_inject_start(dev), 0) ? dev : NULL;
}

struct driver_step driver_fails(enum kfi_inject_op op, unsigned int skip)
{
	struct driver_step step = { op, kfi_inject_calls(op), skip };

	kfi_inject_fail(op, DRIVER_SAYS, skip, 1);
	return step;
}

bool driver_failed(const struct driver_step *step)
{
	bool failed;

	kfi_inject_fail(step->op, 0, 0, 0);
	failed = kfi_inject_calls(step->op) - step->before > step->skip;
	atomic_add(failed, &kfi_failures);
	return failed;
}
