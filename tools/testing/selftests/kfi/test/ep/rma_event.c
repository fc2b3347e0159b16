// SPDX-License-Identifier: GPL-2.0
/*
 * What the provider loop can do for regions and verbs can't, by transfers of an endpoint: the region
 * is at 0, has the key that was asked for, and counts what peers write.
 */
#include <linux/slab.h>

#include "ep.h"

#define SIZE	256
#define KEY	77
#define WRITTEN	(KFI_RMA | KFI_WRITE)
#define FETCHED	(KFI_RMA | KFI_READ)

static void *ctx(unsigned long n)
{
	return (void *)(0x17a0e500 + n);
}

static const struct ep_wants wants = {
	.mr_mode = KFI_MR_RMA_EVENT,
	.caps = KFI_MSG | KFI_RMA | KFI_RMA_EVENT,
};

/* Nobody else offers that. */
static void not_offered(struct kfi_test *t)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;

	if (!EXPECT(t, hints, "no memory"))
		return;
	hints->fabric_attr->prov_name = kstrdup(kfi_provider_name, GFP_KERNEL);
	hints->ep_attr->type = KFI_EP_MSG;
	hints->caps = wants.caps;
	hints->domain_attr->mr_mode = wants.mr_mode;
	EXPECT_EQ(t, kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &info), -KFI_ENODATA);
	EXPECT(t, !info, "an info with an error");
	kfi_freeinfo(hints);
}

static void counts(struct kfi_test *t, struct ep_pair *p, struct kfid_cntr *cntr, u8 *mem, u8 *from)
{
	struct kfid_ep *ep = p->side[0].ep;
	struct kfid_cq *tx = p->side[0].tx;

	EXPECT_EQ(t, kfi_write(ep, from, 8, NULL, 0, 5, KEY, ctx(1)), 0);
	ep_completed(t, tx, ctx(1), WRITTEN, NULL);
	EXPECT(t, !memcmp(mem + 5, from, 8) && !memchr_inv(mem, 0, 5) &&
		       !memchr_inv(mem + 13, 0, SIZE - 13), "other bytes");
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 1, EP_WAIT_MS), 0);
	/* A read isn't one, nor a message. */
	EXPECT_EQ(t, kfi_read(ep, from + 8, 13, NULL, 0, 0, KEY, ctx(2)), 0);
	ep_completed(t, tx, ctx(2), FETCHED, NULL);
	EXPECT(t, !memcmp(from + 8, mem, 13), "other bytes");
	EXPECT_EQ(t, kfi_inject_write(ep, from, 8, 0, SIZE - 8, KEY), 0);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, 2, EP_WAIT_MS), 0);
	EXPECT(t, !memcmp(mem + SIZE - 8, from, 8), "other bytes");
	/* What is refused isn't counted, and writes nothing. */
	EXPECT_EQ(t, kfi_write(ep, from + 8, 8, NULL, 0, SIZE - 7, KEY, ctx(3)), 0);
	ep_failed_op(t, tx, ctx(3), KFI_EACCES, NULL);
	EXPECT(t, !memcmp(mem + SIZE - 8, from, 8), "other bytes");
	EXPECT_EQ(t, kfi_cntr_read(cntr), 2);
	EXPECT_EQ(t, kfi_cntr_readerr(cntr), 0);
}

void ep_rma_event_case(struct kfi_test *t)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	u8 *mem = kzalloc(SIZE, GFP_KERNEL), *from = kmalloc(SIZE, GFP_KERNEL);
	struct kfid_cntr *cntr = NULL;
	struct kfid_mr *mr = NULL;
	struct ep_pair *p = NULL;

	if (!has_feature(F_RMA_EVENTS))
		not_offered(t);
	else
		p = ep_connected(t, &wants);
	if (p && EXPECT(t, mem && from, "no memory") &&
	    EXPECT_EQ(t, kfi_cntr_open(p->side[1].domain, &attr, &cntr, NULL), 0) &&
	    EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, mem, SIZE, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
				    0, KEY, KFI_RMA_EVENT, &mr, NULL), 0) &&
	    EXPECT_EQ(t, kfi_mr_bind(mr, &cntr->fid, KFI_REMOTE_WRITE), 0) &&
	    EXPECT_EQ(t, kfi_mr_enable(mr), 0) && EXPECT_EQ(t, kfi_mr_key(mr), KEY)) {
		pattern(from, SIZE, 3);
		counts(t, p, cntr, mem, from);
	}
	if (cntr)
		EXPECT_EQ(t, kfi_close(&cntr->fid), 0);
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
	kfree(from);
}
