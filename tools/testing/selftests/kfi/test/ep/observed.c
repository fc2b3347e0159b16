// SPDX-License-Identifier: GPL-2.0
/*
 * A fixed number of registrations, refusals and transfers, which observe.sh finds in events and counters. The objects
 * stay open until observe.sh has looked.
 */
#include <linux/delay.h>

#include "ep.h"
#include "suites.h"

#define REGIONS		5
#define CLOSED		2
#define REFUSED		2
#define SENDS		3
#define SENT		1000
#define WRITES		2
#define WRITTEN		500
#define FETCHED		700

static void *ctx(unsigned long n)
{
	return (void *)(0x0b5e0000 + n);
}

/* Registers regions of a page at the first side, closes some, and has others refused. */
static bool regions(struct kfi_test *t, struct kfid_domain *domain, void *mem, struct kfid_mr **mrs)
{
	struct kfid_mr *none;
	int i;

	for (i = 0; i < REGIONS; i++)
		if (!EXPECT_EQ(t, kfi_mr_reg(domain, mem, PAGE_SIZE, KFI_REMOTE_READ, 0, i, 0, &mrs[i], NULL), 0))
			return false;
	for (i = 0; i < CLOSED; i++) {
		EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
		mrs[i] = NULL;
	}
	for (i = 0; i < REFUSED; i++)
		EXPECT_EQ(t, kfi_mr_reg(domain, mem, 0, KFI_REMOTE_READ, 0, 0, 0, &none, NULL), -KFI_EINVAL);
	return true;
}

/* The first side sends, writes and reads. */
static void transfers(struct kfi_test *t, struct ep_memory *m)
{
	struct ep_side *s = m->p->side;
	struct kfi_cq_data_entry entry;
	u64 key = kfi_mr_key(m->mr);
	int i;

	for (i = 0; i < SENDS; i++)
		EXPECT_EQ(t, kfi_recv(s[1].ep, m->there + PAGE_SIZE, PAGE_SIZE, NULL, 0, ctx(10 + i)), 0);
	for (i = 0; i < SENDS; i++)
		EXPECT_EQ(t, kfi_send(s[0].ep, m->here, SENT, NULL, 0, ctx(i)), 0);
	for (i = 0; i < SENDS; i++)
		if (!ep_completed(t, s[0].tx, ctx(i), KFI_MSG | KFI_SEND, NULL) ||
		    !ep_completed(t, s[1].rx, ctx(10 + i), KFI_MSG | KFI_RECV, &entry) ||
		    !EXPECT_EQ(t, entry.len, SENT))
			return;
	for (i = 0; i < WRITES; i++)
		if (!EXPECT_EQ(t, kfi_write(s[0].ep, m->here, WRITTEN, NULL, 0, m->mr->iova, key, ctx(20)), 0) ||
		    !ep_completed(t, s[0].tx, ctx(20), KFI_RMA | KFI_WRITE, NULL))
			return;
	if (EXPECT_EQ(t, kfi_read(s[0].ep, m->here, FETCHED, NULL, 0, m->mr->iova, key, ctx(30)), 0))
		ep_completed(t, s[0].tx, ctx(30), KFI_RMA | KFI_READ, NULL);
}

static void all_case(struct kfi_test *t)
{
	static const struct ep_wants wants = {};
	struct kfid_mr *mrs[REGIONS] = {};
	struct ep_memory m = {};
	int i;

	if (!ep_memory_open(t, &m, &wants, 2 * PAGE_SIZE) ||
	    !EXPECT_EQ(t, kfi_mr_reg(m.p->side[1].domain, m.there, PAGE_SIZE, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
				     0, 99, 0, &m.mr, NULL), 0) ||
	    !regions(t, m.p->side[0].domain, m.here, mrs))
		goto out;
	transfers(t, &m);
	ktap_note("ready to be observed");
	for (i = 0; i < EP_WAIT_MS / 20 && !READ_ONCE(kfi_go); i++)
		msleep(20);
	EXPECT(t, READ_ONCE(kfi_go), "nobody has looked");
	EXPECT_EQ(t, kfi_shutdown(m.p->side[0].ep, 0), 0);
out:
	for (i = 0; i < REGIONS; i++)
		if (mrs[i])
			EXPECT_EQ(t, kfi_close(&mrs[i]->fid), 0);
	ep_memory_close(t, &m);
}

static const struct kfi_case cases[] = {
	{ "all", all_case },
};

const struct kfi_suite suite_ep_observed = {
	.name = "ep_observed",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
