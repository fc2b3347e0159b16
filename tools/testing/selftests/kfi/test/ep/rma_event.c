// SPDX-License-Identifier: GPL-2.0
/*
 * The features of the provider loop for regions that verbs lacks, by transfers of an endpoint: the
 * region is at 0, has the key that was asked for, and counts the peers' writes.
 */
#include <linux/slab.h>

#include <kfi_atomic.h>

#include "ep.h"

#define SIZE	256
#define KEY	77
/* Where the word is that atomic operations go to: away from what is written. */
#define WORD	64
#define WRITTEN	(KFI_RMA | KFI_WRITE)
#define FETCHED	(KFI_RMA | KFI_READ)

static void *ctx(unsigned long n)
{
	return (void *)(0x17a0e500 + n);
}

static const struct ep_wants wants = {
	.mr_mode = KFI_MR_RMA_EVENT,
	.caps = KFI_MSG | KFI_RMA | KFI_RMA_EVENT | KFI_ATOMIC,
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

/*
 * An atomic operation counts if it modifies the word: not if it only reads it, or compares in vain.
 * The fetched value goes to @was. Returns how many have counted.
 */
static unsigned int atomics_count(struct kfi_test *t, struct ep_pair *p, struct kfid_cntr *cntr, u64 *was)
{
	static const struct {
		enum kfi_op op;
		bool fetches;
		u64 operand;
		u64 compare;
		unsigned int counts;
	} ops[] = {
		{ KFI_ATOMIC_WRITE, false, 6, 0, 1 },
		{ KFI_SUM, false, 1, 0, 1 },
		{ KFI_SUM, true, 1, 0, 1 },
		{ KFI_ATOMIC_READ, true, 0, 0, 0 },
		{ KFI_CSWAP, true, 9, 8, 1 },
		{ KFI_CSWAP, true, 9, 8, 0 },
	};
	struct kfid_ep *ep = p->side[0].ep;
	u64 before = kfi_cntr_read(cntr);
	unsigned int i, counted = 0;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		const u64 *operand = &ops[i].operand;
		ssize_t ret;

		if (!ops[i].fetches)
			ret = kfi_atomic(ep, operand, 1, NULL, 0, WORD, KEY, KFI_UINT64, ops[i].op,
					 ctx(4));
		else if (ops[i].op != KFI_CSWAP)
			ret = kfi_fetch_atomic(ep, operand, 1, NULL, was, NULL, 0, WORD, KEY,
					       KFI_UINT64, ops[i].op, ctx(4));
		else
			ret = kfi_compare_atomic(ep, operand, 1, NULL, &ops[i].compare, NULL, was,
						 NULL, 0, WORD, KEY, KFI_UINT64, KFI_CSWAP, ctx(4));
		EXPECT_EQ(t, ret, 0);
		ep_completed(t, p->side[0].tx, ctx(4),
			     KFI_ATOMIC | (ops[i].fetches ? KFI_READ : KFI_WRITE), NULL);
		counted += ops[i].counts;
		EXPECT(t, kfi_cntr_read(cntr) == before + counted, "operation %u: %llu, not %llu", i,
		       kfi_cntr_read(cntr), before + counted);
	}
	EXPECT_EQ(t, *was, 9);
	EXPECT_EQ(t, kfi_inject_atomic(ep, &ops[0].operand, 1, 0, WORD, KEY, KFI_UINT64, KFI_SUM), 0);
	EXPECT_EQ(t, kfi_cntr_wait(cntr, before + ++counted, EP_WAIT_MS), 0);
	return counted;
}

static void counts(struct kfi_test *t, struct ep_pair *p, struct kfid_cntr *cntr, u8 *mem, u8 *from)
{
	struct kfid_ep *ep = p->side[0].ep;
	struct kfid_cq *tx = p->side[0].tx;
	unsigned int counted = 2;

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
	counted += atomics_count(t, p, cntr, (u64 *)from);
	/* A write of no bytes isn't counted; what is refused isn't, either, and writes nothing. */
	EXPECT_EQ(t, kfi_write(ep, from, 0, NULL, 0, 0, KEY, ctx(5)), 0);
	ep_completed(t, tx, ctx(5), WRITTEN, NULL);
	memcpy(from, mem + SIZE - 8, 8);
	EXPECT_EQ(t, kfi_write(ep, from + 8, 8, NULL, 0, SIZE - 7, KEY, ctx(3)), 0);
	ep_failed_op(t, tx, ctx(3), KFI_EACCES, NULL);
	EXPECT(t, !memcmp(mem + SIZE - 8, from, 8), "other bytes");
	EXPECT_EQ(t, kfi_cntr_read(cntr), counted);
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
