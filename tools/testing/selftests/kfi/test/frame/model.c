// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of the model NIC before and after a case. The model is the device that lib.sh tests: knic0. Process
 * context.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kstrtox.h>
#include <linux/string.h>

#include "debugfs.h"
#include "env.h"
#include "model.h"

#define STATS		"kfi_nic/knic0/stats"
/* Objects may be destroyed by a work item. */
#define SETTLE_SECONDS	20

/* When a counter of the model may be larger than it was. */
enum growth {
	NEVER,
	DURING_A_CASE,
	/* The provider's pool keeps regions as long as the domain is open. */
	IN_A_DOMAIN,
	/*
	 * The model does not know of a receive buffer before a message uses it. The kernel's agents have hundreds of
	 * them mapped: where they receive, the number tells nothing.
	 */
	WITH_AGENTS,
};

static const struct {
	const char *name;
	enum growth growth;
} counters[] = {
	{ "dma_faults", NEVER },
	{ "freed_accesses", NEVER },
	{ "unmapped_early", NEVER },
	{ "keys_again", NEVER },
	{ "cq_overflows", NEVER },
	{ "pds", DURING_A_CASE },
	{ "cqs", DURING_A_CASE },
	{ "qps", DURING_A_CASE },
	{ "srqs", DURING_A_CASE },
	{ "mrs", IN_A_DOMAIN },
	{ "mapped", WITH_AGENTS },
};

static_assert(ARRAY_SIZE(counters) == ARRAY_SIZE(((struct model_counts *)0)->value));

/* Returns the only number in a file, or -1. */
static long number_in(const char *path)
{
	char text[24] = {};
	long value;

	return debugfs_read(path, text, sizeof(text) - 1) > 0 && !kstrtol(strim(text), 10, &value) ? value : -1;
}

/**
 * model_read() - Read the counters.
 * @counts: Takes them. They are not valid without the model, or while its device is gone.
 */
void model_read(struct model_counts *counts)
{
	char *text;
	int i;

	*counts = (struct model_counts) {};
	if (!kfi_hardware)
		return;
	text = kzalloc(PAGE_SIZE, GFP_KERNEL);
	counts->valid = text && debugfs_read(STATS, text, PAGE_SIZE - 1) > 0;
	for (i = 0; counts->valid && i < ARRAY_SIZE(counters); i++)
		counts->value[i] = figure_of(text, counters[i].name);
	kfree(text);
	/* Both are -1 without DMA-API debugging. */
	counts->dma_entries = number_in("dma-api/nr_total_entries") - number_in("dma-api/num_free_entries");
}

/**
 * model_before() - Read the counters before a case.
 * @t: The case. The peer of its environment connects, if a refused access ended its connection.
 * @counts: As for model_read().
 */
void model_before(const struct kfi_test *t, struct model_counts *counts)
{
	if (kfi_hardware && !IS_ERR_OR_NULL(t->env) && t->env->peer)
		kfi_peer_write(t->env->peer, 0, 0, NULL, 0);
	model_read(counts);
}

/* Do the kernel's agents receive messages: those of the connection manager, or IPoIB? iWARP has none. */
static bool agents_receive(const struct kfi_test *t)
{
	char persona[8] = {};

	if (t->suite->connects || kfi_transfers)
		return !kfi_iwarp;
	return debugfs_read("kfi_nic/knic0/persona", persona, sizeof(persona) - 1) > 0 && !strcmp(persona, "ib\n");
}

/* May objects be there after a case that were not there before? The first case with transfers connects its endpoints. */
static bool leaves_objects(const struct kfi_test *t)
{
	return t->leaves_open || t->suite->served || (kfi_transfers && t->env);
}

/**
 * model_grown() - Look for a counter that has grown and must not have.
 * @t: The case. Its environment is NULL if no domain is open.
 * @before: The counters as they were.
 *
 * Return: Its name; or NULL, also if the device went or came back meanwhile.
 */
const char *model_grown(const struct kfi_test *t, const struct model_counts *before)
{
	struct model_counts after;
	int i;

	model_read(&after);
	if (!before->valid || !after.valid)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if ((counters[i].growth != NEVER && leaves_objects(t)) ||
		    (counters[i].growth == IN_A_DOMAIN && t->env) ||
		    (counters[i].growth == WITH_AGENTS && agents_receive(t)))
			continue;
		if (after.value[i] > before->value[i])
			return counters[i].name;
	}
	return !leaves_objects(t) && after.dma_entries > before->dma_entries ? "entries of DMA-API debugging" : NULL;
}

/**
 * model_expect() - Expect that no counter has grown, as soon as all is settled.
 * @t: The case.
 * @before: The counters as they were.
 */
void model_expect(struct kfi_test *t, const struct model_counts *before)
{
	unsigned long end = jiffies + SETTLE_SECONDS * HZ;
	const char *grown = model_grown(t, before);

	while (grown && time_before(jiffies, end)) {
		msleep(10);
		grown = model_grown(t, before);
	}
	EXPECT(t, !grown, "the model: more %s than before", grown);
}
