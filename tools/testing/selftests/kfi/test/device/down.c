// SPDX-License-Identifier: GPL-2.0
/*
 * No port of the device is active: removal.sh has put the netdev down. A domain is offered all the
 * same, since ports come and go, and opening it says why it can't be.
 */
#include "env.h"
#include "suites.h"

static void domain_case(struct kfi_test *t)
{
	struct kfid_domain *domain = (void *)0x5a5a;
	struct kfid_fabric *fabric;
	struct kfi_info *info;

	if (!EXPECT_EQ(t, env_getinfo(&info), 0))
		return;
	if (EXPECT_EQ(t, kfi_fabric(info->fabric_attr, &fabric, NULL), 0)) {
		EXPECT_EQ(t, kfi_domain(fabric, info, &domain, NULL), -KFI_ENETDOWN);
		EXPECT(t, !domain, "*domain is not NULL");
		EXPECT_EQ(t, kfi_close(&fabric->fid), 0);
	}
	kfi_freeinfo(info);
}

static const struct kfi_case cases[] = { { "domain", domain_case } };

const struct kfi_suite suite_down = {
	.name = "down",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
