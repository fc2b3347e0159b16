// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_conform.ko: runs the conformance suite over one provider when it is loaded.
 *
 *	insmod kfi_conform.ko provider=verbs|loop address=A.B.C.D [seed=N] [scale=PERCENT]
 *
 * Results are in the kernel's log, as those of kfi_selftest.ko are (test/frame/ktap.h). Before the last one
 * comes a line "# feature NAME: yes" for each feature, or "no, ERRNO", or "FAILED".
 */
#include <linux/module.h>
#include <linux/random.h>

#include "conform.h"

unsigned long kfi_seed;
module_param_named(seed, kfi_seed, ulong, 0444);
MODULE_PARM_DESC(seed, "what random choices are made from (default: a random one)");

unsigned int kfi_scale = 100;
module_param_named(scale, kfi_scale, uint, 0444);
MODULE_PARM_DESC(scale, "how many rounds long tests do, in percent (default: 100)");

static char *token = "";
module_param(token, charp, 0444);
MODULE_PARM_DESC(token, "tells the results of this run from others in the log");

char *kfi_provider_name = "verbs";
module_param_named(provider, kfi_provider_name, charp, 0444);
MODULE_PARM_DESC(provider, "which provider to test");

char *kfi_address = "192.0.2.1";
module_param_named(address, kfi_address, charp, 0444);
MODULE_PARM_DESC(address, "an IPv4 address that this provider has (default: 192.0.2.1)");

/* The suite doesn't run over iWARP, whose column of features.def says so. */
bool kfi_iwarp;
bool kfi_transfers;

bool kfi_hardware;
module_param_named(hardware, kfi_hardware, bool, 0444);
MODULE_PARM_DESC(hardware, "the device is the model NIC");

bool kfi_weak;
module_param_named(weak, kfi_weak, bool, 0444);
MODULE_PARM_DESC(weak, "kfi_verbs was loaded with weak_fence=1");

const struct provider *under_test;

static const struct provider *const providers[] = {
	&provider_verbs,
	&provider_loop,
};

/* The outcome of the cases of each feature. */
static struct {
	unsigned int cases;
	unsigned int failures;
} outcome[LAST_REGION_FEATURE + 1];

void run_check(struct kfi_test *t)
{
	const struct check *check = t->c->data;
	unsigned int i = check->feature;

	if (has_feature(check->feature))
		check->run(t);
	else if (check->refused)
		check->refused(t);
	else
		EXPECT(t, false, "no provider may lack it");
	outcome[i].cases++;
	outcome[i].failures += t->failures;
}

/* The last case: no row of the table is there without a case. */
static void table_case(struct kfi_test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(outcome); i++)
		EXPECT(t, outcome[i].cases, "no case for: %s", feature_text(i));
}

static const struct kfi_case last[] = {
	{ "table", table_case },
};

static const struct section section_last = { .cases = last, .count = ARRAY_SIZE(last) };

static const struct section *const sections[] = {
	&section_regions,
	&section_refusals,
	&section_modes,
	&section_combine,
	&section_keys,
	&section_async,
	&section_bind,
	&section_endpoints,
	&section_connected,
	&section_enable,
	&section_raw,
	&section_gaps,
	&section_refresh,
	&section_absent,
	&section_last,
};

/* The errnos that features are refused with. */
static const char *errno_name(int errno)
{
	switch (errno) {
	case -KFI_ENODATA:
		return "-KFI_ENODATA";
	case -KFI_ENOSYS:
		return "-KFI_ENOSYS";
	case -KFI_EOPNOTSUPP:
		return "-KFI_EOPNOTSUPP";
	case -KFI_EBADFLAGS:
		return "-KFI_EBADFLAGS";
	default:
		return "?";
	}
}

/* Called before the fabric is closed, and that is a result of its own. */
static void print_table(struct kfi_test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(outcome); i++) {
		if (!outcome[i].cases || outcome[i].failures)
			ktap_note("feature %s: FAILED", feature_text(i));
		else if (has_feature(i))
			ktap_note("feature %s: yes", feature_text(i));
		else
			ktap_note("feature %s: no, %s", feature_text(i),
				  errno_name(feature_errno(i)));
	}
}

static int run(const char *name)
{
	struct kfi_suite suite = {
		.name = name,
		.variant_name = reg_call_name,
		.connects = true,
		.end = print_table,
	};
	struct kfi_case *cases;
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(sections); i++)
		n += sections[i]->count;
	cases = kvcalloc(n, sizeof(*cases), GFP_KERNEL);
	if (!cases)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(sections); i++) {
		memcpy(cases + suite.count, sections[i]->cases,
		       sections[i]->count * sizeof(*cases));
		suite.count += sections[i]->count;
	}
	suite.cases = cases;
	ktap_run(&suite);
	kvfree(cases);
	return 0;
}

static int __init conform_init(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(providers); i++)
		if (!strcmp(providers[i]->name, kfi_provider_name))
			under_test = providers[i];
	if (!under_test) {
		pr_err("kfi_conform: no provider '%s'\n", kfi_provider_name);
		return -EINVAL;
	}
	if (!kfi_seed)
		kfi_seed = get_random_u32();
	pattern_init();
	pr_info("kfi-ktap: begin %s\n", token);
	ktap_note("seed %lu", kfi_seed);
	ret = run(under_test->name);
	pr_info("kfi-ktap: end %s\n", token);
	return ret;
}

static void __exit conform_exit(void)
{
}

module_init(conform_init);
module_exit(conform_exit);
MODULE_DESCRIPTION("Conformance of kfabric providers");
MODULE_LICENSE("GPL");
