// SPDX-License-Identifier: GPL-2.0
/*
 * The events that nic.sh causes by the files of debugfs. The suite nic_events waits for one event
 * of a port, which the parameter event=N names, as enum ib_event_type. The suites nic_unmappable
 * and nic_mappable map a page, which fails or succeeds.
 */
#include <linux/module.h>

#include "nic_test.h"

static int event_type = -1;
module_param_named(event, event_type, int, 0444);
MODULE_PARM_DESC(event, "what the suite nic_events waits for, an enum ib_event_type");

struct waiter {
	struct ib_event_handler handler;
	struct completion done;
};

static void handle(struct ib_event_handler *handler, struct ib_event *event)
{
	struct waiter *w = container_of(handler, struct waiter, handler);

	if (event->event == event_type && event->element.port_num == nic_env.port)
		complete(&w->done);
}

static void case_comes(struct kfi_test *t)
{
	struct waiter w;

	init_completion(&w.done);
	INIT_IB_EVENT_HANDLER(&w.handler, nic_env.dev, handle);
	ib_register_event_handler(&w.handler);
	/* nic.sh waits for this line. */
	pr_info("kfi_nic_test: waits for event %d\n", event_type);
	EXPECT(t, wait_for_completion_timeout(&w.done, msecs_to_jiffies(PATIENCE_MS)),
	       "no event %d", event_type);
	ib_unregister_event_handler(&w.handler);
}

static const struct kfi_case cases[] = {
	NIC_CASE_ANY(comes),
};

const struct kfi_suite nic_suite_events = {
	.name = "nic_events",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};

/* Maps a page. The mapping fails or succeeds, as expected. */
static void map_page(struct kfi_test *t, bool fails)
{
	struct page *page = alloc_page(GFP_KERNEL);
	dma_addr_t dma;
	bool failed;

	if (!EXPECT(t, page, "no memory"))
		return;
	dma = ib_dma_map_page(nic_env.dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	failed = ib_dma_mapping_error(nic_env.dev, dma);
	EXPECT(t, failed == fails, "mapped at %pad", &dma);
	if (!failed)
		ib_dma_unmap_page(nic_env.dev, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	__free_page(page);
}

static void case_fails(struct kfi_test *t)
{
	map_page(t, true);
}

static void case_succeeds(struct kfi_test *t)
{
	map_page(t, false);
}

static const struct kfi_case unmappable_cases[] = {
	NIC_CASE_ANY(fails),
};

static const struct kfi_case mappable_cases[] = {
	NIC_CASE_ANY(succeeds),
};

const struct kfi_suite nic_suite_unmappable = {
	.name = "nic_unmappable",
	.cases = unmappable_cases,
	.count = ARRAY_SIZE(unmappable_cases),
	.bare = true,
};

const struct kfi_suite nic_suite_mappable = {
	.name = "nic_mappable",
	.cases = mappable_cases,
	.count = ARRAY_SIZE(mappable_cases),
	.bare = true,
};
