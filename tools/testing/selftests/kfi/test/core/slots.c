// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that the provider doesn't have: each inline of the API returns -KFI_ENOSYS, or another
 * harmless value where it returns no errno, and none jumps through a NULL pointer.
 */
#include <kfi_atomic.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>
#include <kfi_rma.h>

#include "refusal/errors.h"
#include "slots.h"
#include "suites.h"

/* The call gives -KFI_ENOSYS, and NULL through its output pointer. */
#define NOSYS_OPEN(t, out, call)						\
({										\
	struct kfi_test *__t = (t);						\
	typeof(out) *__out = &(out);						\
										\
	*__out = (void *)0x5a5a;						\
	NOSYS(__t, call);							\
	EXPECT(__t, !*__out, "%s is not NULL", #out);				\
})

/* An object of some kind, as something to bind. */
static struct kfid thing = { .fclass = KFI_CLASS_EQ };

static void fabric_case(struct kfi_test *t)
{
	struct kfid_fabric *fabric = t->env->fabric;
	struct kfi_wait_attr wait_attr = {};
	struct kfid_wait *wait;
	void *ops;

	NOSYS_OPEN(t, wait, kfi_wait_open(fabric, &wait_attr, &wait));
	NOSYS_OPEN(t, ops, kfi_open_ops(&fabric->fid, "no such ops", 0, &ops, NULL));
	NOSYS(t, kfi_control(&fabric->fid, KFI_GETFIDFLAG, NULL));
	NOSYS(t, kfi_control(&fabric->fid, -1, NULL));
}

static void domain_case(struct kfi_test *t)
{
	struct kfid_domain *domain = t->env->domain;
	struct kfi_info *info = t->env->info;
	struct kfi_poll_attr poll_attr = {};
	struct kfi_av_attr av_attr = {};
	struct kfi_atomic_attr atomic_attr = {};
	struct kfi_tx_attr tx_attr = {};
	struct kfi_rx_attr rx_attr = {};
	struct kfid_ep *ep, *sep, *srx;
	struct kfid_poll *poll;
	struct kfid_stx *stx;
	struct kfid_av *av;
	void *ops;

	NOSYS_OPEN(t, poll, kfi_poll_open(domain, &poll_attr, &poll));
	NOSYS_OPEN(t, av, kfi_av_open(domain, &av_attr, &av, NULL));
	/* The info is that of an offer without endpoints. */
	NOSYS_OPEN(t, ep, kfi_endpoint(domain, info, &ep, NULL));
	NOSYS_OPEN(t, sep, kfi_scalable_ep(domain, info, &sep, NULL));
	NOSYS_OPEN(t, stx, kfi_stx_context(domain, &tx_attr, &stx, NULL));
	/* Which endpoints by another info may share. */
	if (EXPECT_EQ(t, kfi_srx_context(domain, &rx_attr, &srx, NULL), 0))
		EXPECT_EQ(t, kfi_close(&srx->fid), 0);
	NOSYS_OPEN(t, ops, kfi_open_ops(&domain->fid, "no such ops", 0, &ops, NULL));
	EXPECT_EQ(t, kfi_domain_bind(domain, &thing, KFI_REG_MR), -KFI_EINVAL);
	/* The domain was opened without KFI_ATOMIC. */
	EXPECT_EQ(t, kfi_query_atomic(domain, KFI_UINT64, KFI_SUM, &atomic_attr, 0),
		  -KFI_EOPNOTSUPP);
	NOSYS(t, kfi_control(&domain->fid, KFI_ENABLE, NULL));
	NOSYS(t, kfi_control(&domain->fid, -1, NULL));
}

static void mr_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_KMALLOC, 0);
	struct kfid *alias;
	struct kfid_mr *mr;
	void *ops;

	if (!EXPECT_EQ(t, kfi_mr_reg(t->env->domain, mem, PAGE_SIZE, KFI_REMOTE, 0, 0, 0, &mr,
				     NULL), 0))
		return;
	NOSYS(t, kfi_mr_bind(mr, &thing, KFI_REMOTE_WRITE));
	EXPECT_EQ(t, kfi_mr_enable(mr), -KFI_EOPBADSTATE);
	NOSYS(t, kfi_alias(&mr->fid, &alias, 0));
	NOSYS(t, kfi_control(&mr->fid, -1, NULL));
	NOSYS_OPEN(t, ops, kfi_open_ops(&mr->fid, KFI_DMA_OPS_1, 0, &ops, NULL));
	/* None of it did anything. */
	check_region(t, mr, mem, PAGE_SIZE);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
}

/* NULL and error pointers instead of objects. */
static void no_object_case(struct kfi_test *t)
{
	struct kfid *fids[] = { NULL, ERR_PTR(-ENODEV) };
	struct kfid_domain *domain;
	struct kfid_mr *mr;
	void *ops;
	int i;

	for (i = 0; i < ARRAY_SIZE(fids); i++) {
		struct kfid *fid = fids[i];

		mr = (struct kfid_mr *)fid;
		domain = (struct kfid_domain *)fid;
		INVAL(t, kfi_close(fid));
		INVAL(t, kfi_control(fid, KFI_ENABLE, NULL));
		INVAL(t, kfi_open_ops(fid, KFI_DMA_OPS_1, 0, &ops, NULL));
		INVAL(t, kfi_domain_bind(domain, &thing, 0));
		INVAL(t, kfi_mr_bind(mr, &thing, 0));
		INVAL(t, kfi_mr_enable(mr));
		INVAL(t, kfi_mr_refresh(mr, NULL, 0, 0));
		INVAL(t, kfi_mr_unmap_key(domain, 0));
		EXPECT(t, kfi_mr_key(mr) == KFI_KEY_NOTAVAIL, "a key of no region");
		EXPECT(t, !kfi_mr_desc(mr), "a descriptor of no region");
		EXPECT_EQ(t, t->env->verbs->get_lkey(NULL), 0);
	}
	INVAL(t, kfi_open_ops(&t->env->domain->fid, KFI_DMA_OPS_1, 0, NULL, NULL));
	ops = (void *)0x5a5a;
	INVAL(t, kfi_open_ops(&t->env->domain->fid, NULL, 0, &ops, NULL));
	EXPECT(t, !ops, "ops of no name");
}

/* The DMA extension's own arguments. */
/*
 * A mapping has all bytes of the list, in no more entries than the list; a region of it leads to
 * them, in the directions that it was mapped for.
 */
static void mapped(struct kfi_test *t, struct scatterlist *sg, int nents,
		   enum dma_data_direction dir, u64 access)
{
	struct kfid *fid = &t->env->domain->fid;
	struct kfi_dma_ops *dma = t->env->dma;
	u8 *scratch = t->env->scratch;
	struct scatterlist *entry;
	struct kfid_mr *mr;
	size_t bytes = 0;
	int i, n;

	n = dma->map_sg(fid, sg, nents, dir);
	if (!EXPECT(t, n > 0 && n <= nents, "map_sg() gives %d", n))
		return;
	for_each_sg(sg, entry, n, i)
		bytes += sg_dma_len(entry);
	EXPECT_EQ(t, bytes, nents * PAGE_SIZE);
	if (EXPECT_EQ(t, kfi_mr_regsgl(t->env->domain, sg, n, access, 0, 0, 0, &mr, NULL), 0)) {
		for (i = 0; i < nents; i++)
			pattern(sg_virt(&sg[i]), PAGE_SIZE, 1 + i * PAGE_SIZE);
		dma->sync_sg_for_device(fid, sg, nents, dir);
		EXPECT_EQ(t, kfi_peer_read(t->env->peer, mr->iova, mr->key, scratch, bytes),
			  access & KFI_REMOTE_READ ? 0 : -EACCES);
		if (access & KFI_REMOTE_READ)
			EXPECT(t, pattern_is(scratch, bytes, 1), "other bytes were read");
		pattern(scratch, bytes, 2);
		EXPECT_EQ(t, kfi_peer_write(t->env->peer, mr->iova, mr->key, scratch, bytes),
			  access & KFI_REMOTE_WRITE ? 0 : -EACCES);
		dma->sync_sg_for_cpu(fid, sg, nents, dir);
		for (i = 0; i < nents; i++)
			EXPECT(t, pattern_is(sg_virt(&sg[i]), PAGE_SIZE, i * PAGE_SIZE +
					     (access & KFI_REMOTE_WRITE ? 2 : 1)),
			       "entry %d has other bytes", i);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	dma->unmap_sg(fid, sg, nents, dir);
}

static void dma_case(struct kfi_test *t)
{
	struct kfid *fid = &t->env->domain->fid;
	u8 *mem = arena_at(t->env, MEM_PAGES, 0);
	struct kfi_dma_ops *dma = t->env->dma;
	struct scatterlist sg[2];

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], mem, PAGE_SIZE);
	sg_set_buf(&sg[1], mem + 2 * PAGE_SIZE, PAGE_SIZE);
	EXPECT(t, dma->size >= sizeof(*dma), "size %zu", dma->size);
	INVAL(t, dma->map_sg(NULL, sg, 2, DMA_BIDIRECTIONAL));
	INVAL(t, dma->map_sg(&t->env->fabric->fid, sg, 2, DMA_BIDIRECTIONAL));
	INVAL(t, dma->map_sg(fid, NULL, 2, DMA_BIDIRECTIONAL));
	INVAL(t, dma->map_sg(fid, sg, 0, DMA_BIDIRECTIONAL));
	INVAL(t, dma->map_sg(fid, sg, -1, DMA_BIDIRECTIONAL));
	INVAL(t, dma->map_sg(fid, sg, 2, DMA_NONE));
	INVAL(t, dma->map_sg(fid, sg, 2, 77));
	mapped(t, sg, 2, DMA_BIDIRECTIONAL, KFI_REMOTE);
	mapped(t, sg, 2, DMA_TO_DEVICE, KFI_REMOTE_READ);
	mapped(t, sg, 2, DMA_FROM_DEVICE, KFI_REMOTE_WRITE);
	mapped(t, sg, 1, DMA_BIDIRECTIONAL, KFI_REMOTE);
}

static const struct kfi_case cases[] = {
	{ "fabric", fabric_case },
	{ "domain", domain_case },
	{ "mr", mr_case },
	{ "no_object", no_object_case },
	{ "dma", dma_case },
	{ "queues", bare_queues_case, BARE_TABLES },
	{ "endpoints", bare_endpoints_case, BARE_TABLES },
	{ "messages", bare_messages_case, BARE_TABLES },
	{ "rma", bare_rma_case, BARE_TABLES },
	{ "tagged", bare_tagged_case, BARE_TABLES },
	{ "atomic", bare_atomic_case, BARE_TABLES },
};

const struct kfi_suite suite_slots = {
	.name = "slots",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = bare_table_name,
	.end = end_refusals,
};
