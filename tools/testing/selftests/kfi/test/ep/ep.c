// SPDX-License-Identifier: GPL-2.0
/*
 * Connected endpoints: the same over every provider that has some (module parameters provider and
 * address).
 */
#include "ep.h"
#include "suites.h"

static const struct kfi_case cases[] = {
	{ "data", ep_data_case },
	{ "reject", ep_reject_case },
	{ "nobody", ep_nobody_case },
	{ "shutdown", ep_shutdown_case },
	{ "closing", ep_closing_case },
	{ "states", ep_states_case },
	{ "handle", ep_handle_case },
	{ "names", ep_names_case },
	{ "sizes", ep_sizes_case },
	{ "calls", ep_calls_case },
	{ "inject", ep_inject_case },
	{ "remote_data", ep_remote_data_case },
	{ "order", ep_order_case },
	{ "truncated", ep_truncated_case },
	{ "selective", ep_selective_case },
	{ "full", ep_full_case },
	{ "flushed", ep_flushed_case },
	{ "bad_memory", ep_bad_memory_case },
	{ "rma", ep_rma_case },
	{ "rma_refused", ep_rma_refused_case },
	{ "rma_data", ep_rma_data_case },
	{ "atomics", ep_atomics_case },
	{ "atomics_refused", ep_atomics_refused_case },
	{ "atomics_absent", ep_atomics_absent_case },
	{ "atomics_both", ep_atomics_both_case },
	{ "pieces", ep_pieces_case },
	{ "pieces_refused", ep_pieces_refused_case },
	{ "pieces_full", ep_pieces_full_case },
	{ "raw", ep_raw_case },
	{ "fence", ep_fence_case },
	{ "inject_lists", ep_inject_lists_case },
	{ "complete", ep_complete_case },
	{ "size_left", ep_size_left_case },
	{ "lists", ep_lists_case },
	{ "descs", ep_descs_case },
	{ "injects", ep_injects_case },
	{ "counters", ep_counters_case },
	{ "cancel", ep_cancel_case },
	{ "atomic_context", ep_atomic_context_case },
	{ "sendmore", ep_sendmore_case },
	{ "backlog", ep_backlog_case },
	{ "named", ep_named_case },
	{ "options", ep_options_case },
	{ "stall", ep_stall_case },
	{ "regions", ep_regions_case },
	{ "regions_refused", ep_regions_refused_case },
	{ "regions_ends", ep_regions_ends_case },
	{ "regions_many", ep_regions_many_case },
	{ "regions_down", ep_regions_down_case },
	{ "regions_falling", ep_regions_falling_case },
	{ "soak", ep_soak_case },
};

const struct kfi_suite suite_ep = {
	.name = "ep",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
