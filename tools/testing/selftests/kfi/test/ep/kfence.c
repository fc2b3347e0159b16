// SPDX-License-Identifier: GPL-2.0
/* Memory that kmalloc() has from KFENCE: its pages are reserved, but the slab allocator's all the same. */
#include <linux/jiffies.h>
#include <linux/kfence.h>

#include <kfi_dma_ext.h>

#include "ep.h"
#include "request.h"

#ifdef CONFIG_KFENCE

#define LEN		200
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define WRITTEN		(KFI_RMA | KFI_WRITE)

static void *ctx(unsigned long n)
{
	return (void *)(0xfe9ce000 + n);
}

/* Allocates by one of some twenty stacks. */
static noinline u8 *allocate(unsigned int which)
{
	size_t len = LEN;
	u8 *mem;

	OPTIMIZER_HIDE_VAR(len);
	if (which >= 3)
		mem = allocate(which - 3);
	else if (which == 2)
		mem = kmalloc_node(LEN, GFP_KERNEL, NUMA_NO_NODE);
	else
		mem = kmalloc(which ? len : LEN, GFP_KERNEL);
	/* No tail call. */
	OPTIMIZER_HIDE_VAR(mem);
	return mem;
}

/*
 * Allocates until it is KFENCE's turn, which comes once in an interval. When most of its memory is in use, KFENCE
 * skips stacks whose hash it takes for that of one that it has served. NULL is a failure that was reported.
 */
static u8 *guarded(struct kfi_test *t)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);
	unsigned int which = 0;
	u8 *mem;

	do {
		mem = allocate(which++ % 18);
		if (!mem || is_kfence_address(mem))
			break;
		kfree(mem);
		mem = NULL;
		cond_resched();
	} while (time_before(jiffies, end));
	EXPECT(t, mem, "kmalloc() has had nothing from KFENCE");
	return mem;
}

/* Registers @mem by a call; @sg is where it is mapped, if it is. */
static int guarded_reg(struct kfid_domain *domain, enum reg_call call, u8 *mem, struct scatterlist *sg,
		       struct kfid_mr **mr)
{
	struct kvec kv = { mem, LEN };
	struct bio_vec bv;
	struct reg_req req = {
		.call = call,
		.domain = domain,
		.buf = mem,
		.len = LEN,
		.kv = &kv,
		.bv = &bv,
		.sg = sg,
		.count = 1,
		.type = reg_call_in(call, KVEC_CALLS) ? KFI_KVEC :
			reg_call_in(call, BVEC_CALLS) ? KFI_BVEC : KFI_SGL,
		.access = KFI_REMOTE,
		.key = call + 1,
	};

	bvec_set_virt(&bv, mem, LEN);
	return reg_submit(&req, mr);
}

/* The peer writes @from to @mem, when that is registered by the call. */
static void registered(struct kfi_test *t, struct ep_pair *p, enum reg_call call, u8 *from, u8 *mem)
{
	struct kfid *domain = &p->side[1].domain->fid;
	struct kfi_dma_ops *dma = NULL;
	struct scatterlist sg;
	struct kfid_mr *mr;
	void *ops;

	sg_init_one(&sg, mem, LEN);
	if (reg_call_in(call, SGL_CALLS)) {
		if (!EXPECT_EQ(t, kfi_open_ops(domain, KFI_DMA_OPS_1, 0, &ops, NULL), 0))
			return;
		dma = ops;
		if (!EXPECT_EQ(t, dma->map_sg(domain, &sg, 1, DMA_BIDIRECTIONAL), 1))
			return;
	}
	pattern(from, LEN, call);
	memset(mem, 0, LEN);
	if (EXPECT_EQ(t, guarded_reg(p->side[1].domain, call, mem, &sg, &mr), 0)) {
		EXPECT_EQ(t, kfi_write(p->side[0].ep, from, LEN, NULL, 0, mr->iova, kfi_mr_key(mr),
				       ctx(call)), 0);
		ep_completed(t, p->side[0].tx, ctx(call), WRITTEN, NULL);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		EXPECT(t, pattern_is(mem, LEN, call), "other bytes were written");
	}
	if (dma)
		dma->unmap_sg(domain, &sg, 1, DMA_BIDIRECTIONAL);
	if (t->failures)
		ktap_note("above: by kfi_mr_%s()", reg_call_name(call));
}

static void received(struct kfi_test *t, struct ep_pair *p, u8 *mem, size_t len, unsigned int shift)
{
	struct kfi_cq_data_entry entry;

	if (ep_completed(t, p->side[1].rx, ctx(20), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, len);
	EXPECT(t, pattern_is(mem, len, shift), "other bytes were received");
}

/* KFENCE's objects are registered by each call, sent, received and injected. */
void ep_kfence_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	u8 *from = NULL, *to = NULL;
	struct ep_pair *p;
	unsigned int call;
	size_t most;

	if (!kfence_sample_interval || !__kfence_pool)
		return ktap_skip(t, "KFENCE is off (kfence.sample_interval)");
	p = ep_connected(t, &wants);
	if (!p)
		return;
	from = guarded(t);
	to = guarded(t);
	if (!from || !to)
		goto out;
	for (call = 0; call < REG_CALLS && !t->failures; call++)
		registered(t, p, call, from, to);
	pattern(from, LEN, 20);
	if (!EXPECT_EQ(t, kfi_recv(p->side[1].ep, to, LEN, NULL, 0, ctx(20)), 0) ||
	    !EXPECT_EQ(t, kfi_send(p->side[0].ep, from, LEN, NULL, 0, ctx(21)), 0))
		goto out;
	ep_completed(t, p->side[0].tx, ctx(21), KFI_MSG | KFI_SEND, NULL);
	received(t, p, to, LEN, 20);
	most = p->info->tx_attr->inject_size;
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, to, LEN, NULL, 0, ctx(20)), 0);
	EXPECT_EQ(t, kfi_inject(p->side[0].ep, from + LEN - most, most, 0), 0);
	received(t, p, to, most, 20 + LEN - most);
out:
	ep_pair_close(t, p);
	kfree(from);
	kfree(to);
}

#else

void ep_kfence_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no KFENCE");
}

#endif
