// SPDX-License-Identifier: GPL-2.0
/*
 * Connections to kfi_pair_server.ko (../../pair/), in this kernel or in another one: module
 * parameters provider, peer and port. "killed" and "cut" need tools/vm/pair, which does to the
 * server's kernel and to the wire what they ask for in the log.
 */
#include "../suites.h"
#include "pair.h"

static const struct kfi_case pair_cases[] = {
	{ "data", pair_data_case },
	{ "reject", pair_reject_case },
	{ "nobody", pair_nobody_case },
	{ "messages", pair_messages_case },
	{ "reads", pair_reads_case },
	{ "writes", pair_writes_case },
	{ "atomics", pair_atomics_case },
	{ "pulled", pair_pulled_case },
	{ "pushed", pair_pushed_case },
	{ "refused", pair_refused_case },
	{ "dropped", pair_dropped_case },
	{ "many", pair_many_case },
	{ "shared", pair_shared_case },
};

const struct kfi_suite suite_pair = {
	.name = "pair",
	.cases = pair_cases,
	.count = ARRAY_SIZE(pair_cases),
	.bare = true,
	.connects = true,
	.served = true,
};

static const struct kfi_case killed_cases[] = {
	{ "killed", pair_killed_case },
};

const struct kfi_suite suite_killed = {
	.name = "killed",
	.cases = killed_cases,
	.count = ARRAY_SIZE(killed_cases),
	.bare = true,
	.connects = true,
	.served = true,
};

static const struct kfi_case cut_cases[] = {
	{ "cut", pair_cut_case },
};

const struct kfi_suite suite_cut = {
	.name = "cut",
	.cases = cut_cases,
	.count = ARRAY_SIZE(cut_cases),
	.bare = true,
	.connects = true,
	.served = true,
};
