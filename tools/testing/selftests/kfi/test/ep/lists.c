// SPDX-License-Identifier: GPL-2.0
/*
 * Memory at this side in every form that the calls take: vectors of pages, scatterlists that the
 * consumer has mapped, parts of registered regions.
 */
#include <linux/scatterlist.h>

#include <kfi_dma_ext.h>

#include "ep.h"

#define PARTS	3
#define PART	1500
#define LEN	(PARTS * PART)
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define FETCHED		(KFI_RMA | KFI_READ)
#define WRITTEN		(KFI_RMA | KFI_WRITE)

static void *ctx(unsigned long n)
{
	return (void *)(0x11570000 + n);
}

/* Memory of one side: LEN bytes behind each other, as lists of PARTS entries. */
struct listed {
	u8 *all;
	u8 *mem;
	struct bio_vec bv[PARTS];
	struct scatterlist sg[PARTS];
	int mapped;
	struct kfi_dma_ops *dma;
	struct kfid *domain;
};

static bool listed_open(struct kfi_test *t, struct listed *l, struct ep_side *s)
{
	void *ops;
	int i;

	l->domain = &s->domain->fid;
	l->all = kzalloc(LEN + 2 * GUARD, GFP_KERNEL);
	if (!EXPECT(t, l->all, "no memory") ||
	    !EXPECT_EQ(t, kfi_open_ops(l->domain, KFI_DMA_OPS_1, 0, &ops, NULL), 0))
		return false;
	l->dma = ops;
	l->mem = l->all + GUARD;
	sg_init_table(l->sg, PARTS);
	for (i = 0; i < PARTS; i++) {
		u8 *at = l->mem + i * PART;

		bvec_set_page(&l->bv[i], virt_to_page(at), PART, offset_in_page(at));
		sg_set_buf(&l->sg[i], at, PART);
	}
	l->mapped = l->dma->map_sg(l->domain, l->sg, PARTS, DMA_BIDIRECTIONAL);
	return EXPECT(t, l->mapped > 0, "mapping the list is %d", l->mapped);
}

static void listed_close(struct listed *l)
{
	if (l->mapped > 0)
		l->dma->unmap_sg(l->domain, l->sg, PARTS, DMA_BIDIRECTIONAL);
	kfree(l->all);
}

/* Bytes of @from have come to @to, and nothing else has changed there. */
static void came(struct kfi_test *t, struct listed *to, unsigned int shift, const char *how)
{
	EXPECT(t, pattern_is(to->mem, LEN, shift), "%s: other bytes have come", how);
	EXPECT(t, !memchr_inv(to->all, 0, GUARD) && !memchr_inv(to->mem + LEN, 0, GUARD),
	       "%s: bytes around have changed", how);
}

static void message(struct kfi_test *t, struct ep_pair *p, struct listed *from, struct listed *to,
		    bool sgl)
{
	struct kfid_ep *tx = p->side[0].ep, *rx = p->side[1].ep;
	struct kfi_cq_data_entry entry;

	pattern(from->mem, LEN, sgl);
	memset(to->all, 0, LEN + 2 * GUARD);
	if (sgl) {
		EXPECT_EQ(t, kfi_recvsgl(rx, to->sg, NULL, to->mapped, 0, ctx(1)), 0);
		EXPECT_EQ(t, kfi_sendsgl(tx, from->sg, NULL, from->mapped, 0, ctx(2)), 0);
	} else {
		EXPECT_EQ(t, kfi_recvbv(rx, to->bv, NULL, PARTS, 0, ctx(1)), 0);
		EXPECT_EQ(t, kfi_sendbv(tx, from->bv, NULL, PARTS, 0, ctx(2)), 0);
	}
	if (ep_completed(t, p->side[1].rx, ctx(1), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, LEN);
	ep_completed(t, p->side[0].tx, ctx(2), SENT, NULL);
	came(t, to, sgl, sgl ? "a scatterlist is sent" : "pages are sent");
}

static void access(struct kfi_test *t, struct ep_pair *p, struct listed *here, struct listed *there,
		   struct kfid_mr *mr, unsigned int call)
{
	struct listed *from = call & 1 ? here : there, *to = call & 1 ? there : here;
	u64 addr = mr->iova, key = kfi_mr_key(mr);
	struct kfid_ep *ep = p->side[0].ep;
	ssize_t ret;

	pattern(from->mem, LEN, call);
	memset(to->all, 0, LEN + 2 * GUARD);
	switch (call) {
	case 0:
		ret = kfi_readbv(ep, here->bv, NULL, PARTS, 0, addr, key, ctx(3));
		break;
	case 1:
		ret = kfi_writebv(ep, here->bv, NULL, PARTS, 0, addr, key, ctx(3));
		break;
	case 2:
		ret = kfi_readsgl(ep, here->sg, NULL, here->mapped, 0, addr, key, ctx(3));
		break;
	default:
		ret = kfi_writesgl(ep, here->sg, NULL, here->mapped, 0, addr, key, ctx(3));
	}
	EXPECT_EQ(t, ret, 0);
	ep_completed(t, p->side[0].tx, ctx(3), call & 1 ? WRITTEN : FETCHED, NULL);
	came(t, to, call, call & 1 ? "a list is written" : "a list is read to");
}

/* Vectors of pages and mapped scatterlists, each way. */
void ep_lists_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct listed a = {}, b = {};
	struct kfid_mr *mr = NULL;
	unsigned int i;

	if (!p)
		return;
	if (!listed_open(t, &a, &p->side[0]) || !listed_open(t, &b, &p->side[1]) ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, b.mem, LEN,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 5, 0, &mr, NULL), 0))
		goto out;
	for (i = 0; i < 2; i++)
		message(t, p, &a, &b, i);
	for (i = 0; i < 4; i++)
		access(t, p, &a, &b, mr, i);
	EXPECT_EQ(t, kfi_sendsgl(p->side[0].ep, NULL, NULL, 1, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_sendbv(p->side[0].ep, NULL, NULL, 1, 0, NULL), -KFI_EINVAL);
	ep_nothing(t, p->side[0].tx);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	listed_close(&a);
	listed_close(&b);
	ep_pair_close(t, p);
}

#define PAGES	6
#define TAIL	700
#define FAR_LEN	(2 * PAGE_SIZE + TAIL)

/* Copies what is in the pieces of @mem, which are not next to each other, to @all. */
static void far_copy(u8 *all, const u8 *mem, const struct bio_vec *bv)
{
	int i;

	for (i = 0; i < PARTS; all += bv[i++].bv_len)
		memcpy(all, mem + bv[i].bv_offset, bv[i].bv_len);
}

/*
 * bio_vecs that name one page, and start in later ones, as those of large folios do: registered, sent,
 * received, written from and injected.
 */
void ep_far_offsets_case(struct kfi_test *t)
{
	u8 *mem = alloc_pages_exact(PAGES * PAGE_SIZE, GFP_KERNEL | __GFP_ZERO);
	u8 *all = kmalloc(FAR_LEN, GFP_KERNEL);
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_msg msg = { .type = KFI_BVEC, .iov_count = 2 };
	struct bio_vec bv[PARTS], few[2];
	struct kfid_mr *mr = NULL;
	struct kfid_ep *tx, *rx;
	int i;

	if (!p || !EXPECT(t, mem && all, "no memory"))
		goto out;
	tx = p->side[0].ep;
	rx = p->side[1].ep;
	for (i = 0; i < PARTS; i++)
		bvec_set_page(&bv[i], virt_to_page(mem), i < 2 ? PAGE_SIZE : TAIL,
			      (2 * i + 1) * PAGE_SIZE);
	for (i = 0; i < 2; i++)
		bvec_set_page(&few[i], virt_to_page(mem), 20, (2 * i + 1) * PAGE_SIZE + 30);
	if (!EXPECT_EQ(t, kfi_mr_regbv(p->side[1].domain, bv, PARTS, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
				       0, 7, 0, &mr, NULL), 0))
		goto out;
	/* To the region, and back. */
	pattern(all, FAR_LEN, 1);
	EXPECT_EQ(t, kfi_write(tx, all, FAR_LEN, NULL, 0, mr->iova, kfi_mr_key(mr), ctx(1)), 0);
	ep_completed(t, p->side[0].tx, ctx(1), WRITTEN, NULL);
	memset(all, 0, FAR_LEN);
	far_copy(all, mem, bv);
	EXPECT(t, pattern_is(all, FAR_LEN, 1), "other bytes of the region were written");
	EXPECT(t, !memchr_inv(mem, 0, PAGE_SIZE), "the page that is named was written");
	/* From the pieces; and to them. */
	EXPECT_EQ(t, kfi_recv(rx, all, FAR_LEN, NULL, 0, ctx(2)), 0);
	memset(all, 0, FAR_LEN);
	EXPECT_EQ(t, kfi_sendbv(tx, bv, NULL, PARTS, 0, ctx(3)), 0);
	ep_completed(t, p->side[0].tx, ctx(3), SENT, NULL);
	ep_completed(t, p->side[1].rx, ctx(2), RECEIVED, NULL);
	EXPECT(t, pattern_is(all, FAR_LEN, 1), "other bytes were sent");
	pattern(all, FAR_LEN, 4);
	EXPECT_EQ(t, kfi_recvbv(rx, bv, NULL, PARTS, 0, ctx(4)), 0);
	EXPECT_EQ(t, kfi_send(tx, all, FAR_LEN, NULL, 0, ctx(5)), 0);
	ep_completed(t, p->side[0].tx, ctx(5), SENT, NULL);
	ep_completed(t, p->side[1].rx, ctx(4), RECEIVED, NULL);
	memset(all, 0, FAR_LEN);
	far_copy(all, mem, bv);
	EXPECT(t, pattern_is(all, FAR_LEN, 4), "the pieces have received other bytes");
	/* A few of them. */
	EXPECT_EQ(t, kfi_recv(rx, all, FAR_LEN, NULL, 0, ctx(6)), 0);
	msg.msg_biov = few;
	EXPECT_EQ(t, kfi_sendmsg(tx, &msg, KFI_INJECT | KFI_COMPLETION), 0);
	ep_completed(t, p->side[0].tx, NULL, SENT, NULL);
	ep_completed(t, p->side[1].rx, ctx(6), RECEIVED, NULL);
	for (i = 0; i < 2; i++)
		EXPECT(t, pattern_is(all + 20 * i, 20, 4 + i * PAGE_SIZE + 30),
		       "other bytes of piece %d were injected", i);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	if (mem)
		free_pages_exact(mem, PAGES * PAGE_SIZE);
	kfree(all);
}

/* A region of @access over all of @l. */
static struct kfid_mr *region(struct kfi_test *t, struct ep_side *s, struct listed *l, u64 access)
{
	struct kfid_mr *mr = NULL;

	EXPECT_EQ(t, kfi_mr_reg(s->domain, l->mem, LEN, access, 0, access & 0xff, 0, &mr, NULL), 0);
	return mr;
}

/*
 * A region of these rights, by its descriptor: nothing is needed for what goes out, a right to be written to
 * for what comes in.
 */
static void right(struct kfi_test *t, struct ep_pair *p, struct listed *own, struct listed *peer, u64 access)
{
	bool may = access & (KFI_RECV | KFI_READ | KFI_REMOTE_WRITE);
	struct kfid_mr *mr = region(t, &p->side[0], own, access);
	struct kfid_mr *there = region(t, &p->side[1], peer, KFI_REMOTE_READ | KFI_REMOTE_WRITE);
	struct kfid_ep *ep = p->side[0].ep, *other = p->side[1].ep;
	u64 addr, key;
	void *desc;

	if (!mr || !there)
		goto out;
	desc = kfi_mr_desc(mr);
	addr = there->iova;
	key = kfi_mr_key(there);
	pattern(own->mem, LEN, 5);
	memset(peer->mem, 0, LEN);
	EXPECT_EQ(t, kfi_recv(other, peer->mem, LEN, NULL, 0, ctx(1)), 0);
	EXPECT_EQ(t, kfi_send(ep, own->mem, LEN, desc, 0, ctx(2)), 0);
	ep_completed(t, p->side[0].tx, ctx(2), SENT, NULL);
	ep_completed(t, p->side[1].rx, ctx(1), RECEIVED, NULL);
	EXPECT(t, pattern_is(peer->mem, LEN, 5), "access %#llx: other bytes are sent", access);
	memset(peer->mem, 0, LEN);
	EXPECT_EQ(t, kfi_write(ep, own->mem, LEN, desc, 0, addr, key, ctx(3)), 0);
	ep_completed(t, p->side[0].tx, ctx(3), WRITTEN, NULL);
	EXPECT(t, pattern_is(peer->mem, LEN, 5), "access %#llx: other bytes are written", access);
	pattern(peer->mem, LEN, 6);
	EXPECT_EQ(t, kfi_read(ep, own->mem, LEN, desc, 0, addr, key, ctx(4)), may ? 0 : -KFI_EACCES);
	if (may)
		ep_completed(t, p->side[0].tx, ctx(4), FETCHED, NULL);
	EXPECT(t, pattern_is(own->mem, LEN, may ? 6 : 5), "access %#llx: other bytes are read", access);
	pattern(peer->mem, LEN, 7);
	EXPECT_EQ(t, kfi_recv(ep, own->mem, LEN, desc, 0, ctx(5)), may ? 0 : -KFI_EACCES);
	if (may && !t->failures) {
		EXPECT_EQ(t, kfi_send(other, peer->mem, LEN, NULL, 0, ctx(6)), 0);
		ep_completed(t, p->side[1].tx, ctx(6), SENT, NULL);
		ep_completed(t, p->side[0].rx, ctx(5), RECEIVED, NULL);
	}
	EXPECT(t, pattern_is(own->mem, LEN, may ? 7 : 5), "access %#llx: other bytes are received",
	       access);
out:
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (there)
		EXPECT_EQ(t, kfi_close(&there->fid), 0);
}

/* Any part of a region by its descriptor, as far as its rights go, in a domain of this mode. */
static void descs(struct kfi_test *t, int mode)
{
	static const u64 rights[] = {
		KFI_SEND, KFI_RECV, KFI_READ, KFI_WRITE, KFI_REMOTE_READ, KFI_REMOTE_WRITE,
	};
	struct ep_wants wants = { .mr_mode = mode };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfid_mr *from = NULL, *to = NULL;
	struct listed a = {}, b = {};
	void *descs[2], *desc, *wrong;
	struct kvec kv[2];
	struct kfid_ep *tx, *rx;
	int i;

	if (!p)
		return;
	tx = p->side[0].ep;
	rx = p->side[1].ep;
	if (!listed_open(t, &a, &p->side[0]) || !listed_open(t, &b, &p->side[1]))
		goto out;
	from = region(t, &p->side[0], &a, KFI_SEND);
	to = region(t, &p->side[1], &b, KFI_RECV);
	if (!from || !to)
		goto out;
	desc = kfi_mr_desc(from);
	wrong = kfi_mr_desc(to);
	/* Two parts of a region, not in order, to one somewhere in another. */
	pattern(a.mem, 300, 4);
	kv[0] = (struct kvec){ a.mem + 200, 100 };
	kv[1] = (struct kvec){ a.mem, 200 };
	descs[0] = desc;
	descs[1] = desc;
	EXPECT_EQ(t, kfi_recv(rx, b.mem + LEN - 300, 300, wrong, 0, ctx(1)), 0);
	EXPECT_EQ(t, kfi_sendv(tx, kv, descs, 2, 0, ctx(2)), 0);
	ep_completed(t, p->side[1].rx, ctx(1), RECEIVED, NULL);
	ep_completed(t, p->side[0].tx, ctx(2), SENT, NULL);
	EXPECT(t, !memcmp(b.mem + LEN - 300, a.mem + 200, 100) &&
		  !memcmp(b.mem + LEN - 200, a.mem, 200), "other bytes have come");
	EXPECT(t, !memchr_inv(b.mem, 0, LEN - 300), "bytes before have changed");
	/* One part with a descriptor, and one without. */
	descs[1] = NULL;
	EXPECT_EQ(t, kfi_recv(rx, b.mem, 300, wrong, 0, ctx(1)), 0);
	EXPECT_EQ(t, kfi_sendv(tx, kv, descs, 2, 0, ctx(2)), 0);
	ep_completed(t, p->side[1].rx, ctx(1), RECEIVED, NULL);
	ep_completed(t, p->side[0].tx, ctx(2), SENT, NULL);
	EXPECT(t, !memcmp(b.mem, a.mem + 200, 100), "other bytes have come");
	EXPECT_EQ(t, !!desc, has_feature(F_DESC) || mode & KFI_MR_LOCAL);
	if (!desc)
		goto out;
	for (i = 0; i < ARRAY_SIZE(rights) && !t->failures; i++)
		right(t, p, &a, &b, rights[i]);
	/* Not for that; not there; one byte beyond. */
	EXPECT_EQ(t, kfi_recv(tx, a.mem, 8, desc, 0, NULL), -KFI_EACCES);
	EXPECT_EQ(t, kfi_send(tx, b.mem, 8, desc, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_send(tx, a.mem + LEN - 7, 8, desc, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_close(&from->fid), 0);
	from = NULL;
	EXPECT_EQ(t, kfi_send(tx, a.mem, 8, desc, 0, NULL), -KFI_EINVAL);
	ep_nothing(t, p->side[0].tx);
	ep_nothing(t, p->side[0].rx);
out:
	if (from)
		EXPECT_EQ(t, kfi_close(&from->fid), 0);
	if (to)
		EXPECT_EQ(t, kfi_close(&to->fid), 0);
	listed_close(&a);
	listed_close(&b);
	ep_pair_close(t, p);
}

/* In a domain without KFI_MR_LOCAL, and in one with it, which needs no descriptor for that, either. */
void ep_descs_case(struct kfi_test *t)
{
	descs(t, EP_MODE);
	descs(t, EP_MODE | KFI_MR_LOCAL);
}

/* Regions without rights for peers, registered with access 0, are for everything at this side. */
void ep_local_only_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfid_mr *here = NULL, *there = NULL, *remote = NULL;
	struct listed a = {}, b = {};
	struct kfid_ep *tx, *rx;
	u64 addr, key;

	if (!p)
		return;
	tx = p->side[0].ep;
	rx = p->side[1].ep;
	if (!listed_open(t, &a, &p->side[0]) || !listed_open(t, &b, &p->side[1]))
		goto out;
	here = region(t, &p->side[0], &a, 0);
	there = region(t, &p->side[1], &b, 0);
	if (!here || !there ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[1].domain, b.mem, LEN,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, 5, 0, &remote, NULL), 0))
		goto out;
	addr = remote->iova;
	key = kfi_mr_key(remote);
	pattern(a.mem, LEN, 5);
	EXPECT_EQ(t, kfi_recv(rx, b.mem, LEN, kfi_mr_desc(there), 0, ctx(1)), 0);
	EXPECT_EQ(t, kfi_send(tx, a.mem, LEN, kfi_mr_desc(here), 0, ctx(2)), 0);
	ep_completed(t, p->side[1].rx, ctx(1), RECEIVED, NULL);
	ep_completed(t, p->side[0].tx, ctx(2), SENT, NULL);
	came(t, &b, 5, "a region of access 0 is sent to another");
	pattern(a.mem, LEN, 6);
	EXPECT_EQ(t, kfi_write(tx, a.mem, LEN, kfi_mr_desc(here), 0, addr, key, ctx(3)), 0);
	ep_completed(t, p->side[0].tx, ctx(3), WRITTEN, NULL);
	came(t, &b, 6, "a region of access 0 is written");
	memset(a.all, 0, LEN + 2 * GUARD);
	EXPECT_EQ(t, kfi_read(tx, a.mem, LEN, kfi_mr_desc(here), 0, addr, key, ctx(4)), 0);
	ep_completed(t, p->side[0].tx, ctx(4), FETCHED, NULL);
	came(t, &a, 6, "a region of access 0 is read to");
	/* The peer gets at nothing. */
	EXPECT_EQ(t, kfi_write(tx, a.mem, 8, NULL, 0, there->iova, kfi_mr_key(there), ctx(5)), 0);
	ep_failed_op(t, p->side[0].tx, ctx(5), KFI_EACCES, NULL);
	came(t, &b, 6, "a region of access 0 was a peer's target");
out:
	if (remote)
		EXPECT_EQ(t, kfi_close(&remote->fid), 0);
	if (there)
		EXPECT_EQ(t, kfi_close(&there->fid), 0);
	if (here)
		EXPECT_EQ(t, kfi_close(&here->fid), 0);
	listed_close(&a);
	listed_close(&b);
	ep_pair_close(t, p);
}
