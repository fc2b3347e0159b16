// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_selftest.ko: runs one suite of tests when it is loaded.
 *
 *	insmod kfi_selftest.ko suite=matrix [seed=N] [scale=PERCENT] [domain=NAME]
 *
 * The results are in the kernel's log, see ktap.h. The module can be removed at once.
 */
#include <linux/module.h>
#include <linux/random.h>

#include "env.h"
#include "pair/pair.h"
#include "suites.h"

unsigned long kfi_seed;
module_param_named(seed, kfi_seed, ulong, 0444);
MODULE_PARM_DESC(seed, "what random choices are made from (default: a random one)");

unsigned int kfi_scale = 100;
module_param_named(scale, kfi_scale, uint, 0444);
MODULE_PARM_DESC(scale, "how many rounds long tests do, in percent (default: 100)");

char *kfi_provider_name = "verbs";
module_param_named(provider, kfi_provider_name, charp, 0444);
MODULE_PARM_DESC(provider, "which provider to test (default: verbs)");

char *kfi_address = "192.0.2.1";
module_param_named(address, kfi_address, charp, 0444);
MODULE_PARM_DESC(address, "an IPv4 address that this provider has (default: 192.0.2.1)");

char *kfi_peer_address = "192.0.2.1";
module_param_named(peer, kfi_peer_address, charp, 0444);
MODULE_PARM_DESC(peer, "where kfi_pair_server.ko listens: IPv4 or IPv6 (default: 192.0.2.1)");

char *kfi_port = "18515";
module_param_named(port, kfi_port, charp, 0444);
MODULE_PARM_DESC(port, "its port (default: 18515)");

bool kfi_iwarp;
module_param_named(iwarp, kfi_iwarp, bool, 0444);
MODULE_PARM_DESC(iwarp, "whether it is an iWARP device (default: no)");

static char *token = "";
module_param(token, charp, 0444);
MODULE_PARM_DESC(token, "tells the results of this run from others in the log");

bool kfi_go;
module_param_named(go, kfi_go, bool, 0644);
MODULE_PARM_DESC(go, "set by who has done what a suite waits for");

atomic_t kfi_failures;

static char *suite;
module_param(suite, charp, 0444);
MODULE_PARM_DESC(suite, "which suite to run");

static const struct kfi_suite *const suites[] = {
	&suite_oracle,
	&suite_ep,
	&suite_ep_gone,
	&suite_siw,
	&suite_pair,
	&suite_killed,
	&suite_cut,
	&suite_ep_faults,
	&suite_ep_errors,
	&suite_ep_driver,
	&suite_ep_unload,
	&suite_ep_observed,
	&suite_ep_observed_reuse,
	&suite_ep_fence,
	&suite_inject,
	&suite_negotiate,
	&suite_core,
	&suite_slots,
	&suite_states,
	&suite_eq,
	&suite_cntr,
	&suite_cq,
	&suite_matrix,
	&suite_contiguous,
	&suite_rights,
	&suite_lifetime,
	&suite_async,
	&suite_errors,
	&suite_segments,
	&suite_badmem,
	&suite_goodmem,
	&suite_badruns,
	&suite_scattered,
	&suite_badpages,
	&suite_noio,
	&suite_order,
	&suite_random,
	&suite_raw,
	&suite_stress,
	&suite_hammer,
	&suite_recovery,
	&suite_queue,
	&suite_stuck,
	&suite_stuck_close,
	&suite_refresh,
	&suite_pieces,
	&suite_local,
	&suite_held,
	&suite_down,
	&suite_gone_async,
	&suite_gone_close,
	&suite_faults,
	&suite_hardware,
	&suite_pool_line,
	&suite_pool_idle,
	&suite_pool_ahead,
	&suite_pool_large,
	&suite_pool_none,
	&suite_reserve,
	&suite_batch,
	&suite_later,
	&suite_loop,
};

static const struct kfi_suite *find_suite(void)
{
	int i;

	for (i = 0; suite && i < ARRAY_SIZE(suites); i++)
		if (!strcmp(suites[i]->name, suite))
			return suites[i];
	return NULL;
}

static int __init selftest_init(void)
{
	const struct kfi_suite *s = find_suite();

	if (!s) {
		pr_err("kfi_selftest: no suite '%s'\n", suite ?: "");
		return -EINVAL;
	}
	if (!kfi_seed)
		kfi_seed = get_random_u32();
	pattern_init();
	feature_column(kfi_provider_name, kfi_iwarp, NULL);
	pr_info("kfi-ktap: begin %s\n", token);
	ktap_note("seed %lu", kfi_seed);
	ktap_run(s);
	if (atomic_read(&kfi_failures))
		ktap_note("%u allocations or driver calls were made to fail",
			  atomic_read(&kfi_failures));
	pr_info("kfi-ktap: end %s\n", token);
	return 0;
}

static void __exit selftest_exit(void)
{
}

module_init(selftest_init);
module_exit(selftest_exit);
MODULE_DESCRIPTION("kfabric selftests");
MODULE_LICENSE("GPL");
