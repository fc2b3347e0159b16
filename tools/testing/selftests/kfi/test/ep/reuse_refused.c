// SPDX-License-Identifier: GPL-2.0
/* Wrong use of regions that are filled again and again, full queues, and endpoints that end. */
#include <linux/delay.h>

#include "driver.h"
#include "failing.h"
#include "reuse.h"
#include "suites.h"

static void *ctx(unsigned long n)
{
	return (void *)(0x4e060000 + n);
}

static int fill(struct reuse *r, unsigned int count)
{
	return reuse_fill_locked(r, count, KFI_REMOTE_READ, 0);
}

/* Fills the region as @r->bv says, which is refused; and then as it was. */
static void refused(struct kfi_test *t, struct reuse *r, unsigned int count, int err)
{
	EXPECT_EQ(t, fill(r, count), err);
	EXPECT_EQ(t, reuse_empty_locked(r), 0);
	bvec_set_page(&r->bv[0], r->pages[0], PAGE_SIZE - REUSE_OFFSET, REUSE_OFFSET);
	bvec_set_page(&r->bv[1], r->pages[1], PAGE_SIZE, 0);
}

static void memory(struct kfi_test *t, struct reuse *r)
{
	struct bio_vec *longer;

	EXPECT_EQ(t, r->ops->fill(r->mr, NULL, 1, KFI_REMOTE_READ, 0), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, 0, KFI_REMOTE_READ, 0), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->fill(NULL, r->bv, 1, KFI_REMOTE_READ, 0), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, 1, BIT_ULL(60), 0), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, 1, KFI_REMOTE_READ, KFI_FENCE), -KFI_EBADFLAGS);
	/* Gaps: behind the first one, and before the second one. */
	r->bv[0].bv_len -= 8;
	refused(t, r, 2, -KFI_EINVAL);
	r->bv[1].bv_offset = 8;
	r->bv[1].bv_len -= 8;
	refused(t, r, 2, -KFI_EINVAL);
	r->bv[0].bv_len = 0;
	refused(t, r, 1, -KFI_EINVAL);
	r->bv[1].bv_page = (void *)r;
	refused(t, r, 2, -KFI_EFAULT);
	r->bv[1].bv_page = ZERO_PAGE(0);
	EXPECT_EQ(t, r->ops->fill(r->mr, r->bv, 2, KFI_REMOTE_WRITE, 0), -KFI_EFAULT);
	refused(t, r, 0, -KFI_EINVAL);
	/* One page more. */
	longer = kmalloc_array(REUSE_PAGES + 1, sizeof(*longer), GFP_KERNEL);
	if (EXPECT(t, longer, "no memory")) {
		memcpy(longer, r->bv, sizeof(r->bv));
		longer[REUSE_PAGES] = r->bv[REUSE_PAGES - 1];
		EXPECT_EQ(t, r->ops->fill(r->mr, longer, REUSE_PAGES + 1, KFI_REMOTE_READ, 0),
			  -KFI_E2BIG);
	}
	kfree(longer);
	EXPECT_EQ(t, kfi_mr_key(r->mr), KFI_KEY_NOTAVAIL);
}

static void opening(struct kfi_test *t, struct reuse *r)
{
	struct ep_side *s = r->p->side;
	struct kfid_mr *mr = (void *)1;
	struct kfid *domain = &s[1].domain->fid;

	EXPECT_EQ(t, r->ops->open(domain, s[1].ep, 0, &mr, NULL), -KFI_EINVAL);
	EXPECT(t, !mr, "a region in spite of an error");
	EXPECT_EQ(t, r->ops->open(domain, s[1].ep, SIZE_MAX, &mr, NULL), -KFI_E2BIG);
	EXPECT_EQ(t, r->ops->open(domain, s[1].ep, 1, NULL, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->open(domain, NULL, 1, &mr, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->open(NULL, s[1].ep, 1, &mr, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, r->ops->open(domain, s[0].ep, 1, &mr, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_close(domain), -KFI_EBUSY);
	EXPECT_EQ(t, kfi_mr_bind(r->mr, &s[1].ep->fid, 0), -KFI_ENOSYS);
	EXPECT_EQ(t, kfi_mr_enable(r->mr), -KFI_ENOSYS);
}

void ep_reuse_refused_case(struct kfi_test *t)
{
	struct reuse *r = reuse_open(t, NULL);
	struct kfid_mr *other;
	struct ep_side *s;

	if (!r)
		return;
	s = &r->p->side[1];
	opening(t, r);
	memory(t, r);
	/* Other regions are none of this kind. */
	if (EXPECT_EQ(t, kfi_mr_reg(s->domain, r->here, 64, KFI_REMOTE_READ, 0, 0, 0, &other, NULL), 0)) {
		EXPECT_EQ(t, r->ops->fill(other, r->bv, 1, KFI_REMOTE_READ, 0), -KFI_EINVAL);
		EXPECT_EQ(t, r->ops->empty_now(other), -KFI_EINVAL);
		EXPECT_EQ(t, r->ops->empty(other), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_close(&other->fid), 0);
	}
	EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	EXPECT_EQ(t, fill(r, REUSE_PAGES), 0);
	EXPECT_EQ(t, fill(r, 1), -KFI_EOPBADSTATE);
	EXPECT_EQ(t, reuse_empty_locked(r), -KFI_EAGAIN);
	EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	/* Closing one empties it. */
	EXPECT_EQ(t, fill(r, 1), 0);
	EXPECT_EQ(t, kfi_close(&r->mr->fid), 0);
	r->mr = NULL;
	reuse_close(t, r);
}

/* If the send queue has no place, nothing has changed. */
void ep_reuse_full_case(struct kfi_test *t)
{
	struct ep_wants wants = { .tx_size = 8 };
	struct reuse *r = reuse_open(t, &wants);
	struct kvec kv;
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &kv, .iov_count = 1, .context = ctx(1) };
	ssize_t count = 0, i, ret;
	struct ep_side *s;

	if (!r)
		return;
	s = r->p->side;
	kv = (struct kvec){ &r->out, 8 };
	for (;; count++) {
		EXPECT_EQ(t, kfi_recv(s[0].ep, r->here, 8, NULL, 0, ctx(2)), 0);
		ret = kfi_tx_size_left(s[1].ep);
		if (ret <= 0 || t->failures)
			break;
		EXPECT_EQ(t, kfi_sendmsg(s[1].ep, &msg, KFI_COMPLETION | KFI_MORE), 0);
	}
	EXPECT_EQ(t, ret, 0);
	EXPECT_EQ(t, fill(r, 1), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_mr_key(r->mr), KFI_KEY_NOTAVAIL);
	EXPECT_EQ(t, reuse_empty_locked(r), 0);
	for (i = 0; i < count && !t->failures; i++) {
		ep_completed(t, s[1].tx, ctx(1), KFI_MSG | KFI_SEND, NULL);
		ep_completed(t, s[0].rx, ctx(2), KFI_MSG | KFI_RECV, NULL);
	}
	EXPECT_EQ(t, kfi_tx_size_left(s[1].ep), count);
	EXPECT_EQ(t, fill(r, 1), 0);
	EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	reuse_close(t, r);
}

/* The state of the region when its endpoint ends. */
enum state { EMPTY, WAITING, POSTED, INVALIDATED, STATES };

static bool get_to(struct kfi_test *t, struct reuse *r, enum state state)
{
	if (state == EMPTY)
		return true;
	if (!EXPECT_EQ(t, kfi_recv(r->p->side[0].ep, &r->in, sizeof(r->in), NULL, 0,
				   (void *)0x4e050002), 0) ||
	    !EXPECT_EQ(t, reuse_fill_locked(r, REUSE_PAGES, KFI_REMOTE, KFI_MORE), 0))
		return false;
	if (state == WAITING)
		return true;
	if (!EXPECT_EQ(t, reuse_send(r), 0) || !reuse_arrives(t, r))
		return false;
	return state == POSTED || reuse_invalidated(t, r);
}

void ep_reuse_closed_case(struct kfi_test *t)
{
	unsigned int i;

	for (i = 0; i < 2 * STATES && !t->failures; i++) {
		struct reuse *r = reuse_open(t, NULL);
		struct ep_side *s;

		if (!r)
			return;
		s = &r->p->side[1];
		if (get_to(t, r, i / 2)) {
			if (i % 2) {
				EXPECT_EQ(t, kfi_close(&s->ep->fid), 0);
				s->ep = NULL;
			} else {
				EXPECT_EQ(t, kfi_shutdown(s->ep, 0), 0);
			}
			if (i / 2 == EMPTY)
				EXPECT_EQ(t, reuse_empty_locked(r), 0);
			else
				reuse_empty(t, r);
			EXPECT_EQ(t, fill(r, 1), -KFI_ENOTCONN);
			EXPECT_EQ(t, reuse_empty_locked(r), 0);
		}
		/* Or it is filled, and closed with the endpoint. */
		reuse_close(t, r);
	}
}

/* After the end of the connection, no invalidation is posted: a silent device would not report it. */
void driver_reuse_ended_case(struct kfi_test *t)
{
	struct reuse *r = reuse_open(t, NULL);
	struct ib_device *dev = NULL;

	if (!r)
		return;
	if (get_to(t, r, POSTED))
		dev = driver_wrap(t, &r->p->side[1]);
	if (dev) {
		EXPECT_EQ(t, kfi_shutdown(r->p->side[1].ep, 0), 0);
		EXPECT_EQ(t, r->ops->empty(r->mr), 0);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_POST_INV), 0);
		EXPECT_EQ(t, kfi_inject_calls(KFI_INJECT_DEREG_MR), 1);
		kfi_inject_stop(dev);
	}
	reuse_close(t, r);
}

/* Closed while the peer has the key, and the key is used afterwards. */
void ep_reuse_key_case(struct kfi_test *t)
{
	struct reuse *r = reuse_open(t, NULL);
	struct ep_side *s;

	if (!r)
		return;
	s = r->p->side;
	reuse_set(r, 1);
	if (get_to(t, r, POSTED)) {
		EXPECT_EQ(t, r->ops->empty(r->mr), 0);
		/* Other memory has another key. */
		EXPECT_EQ(t, fill(r, 1), 0);
		EXPECT(t, kfi_mr_key(r->mr) != r->in.key, "the key came again");
		memset(r->here, 0x77, REUSE_LEN);
		EXPECT_EQ(t, kfi_write(s[0].ep, r->here, REUSE_LEN, NULL, 0, r->in.addr, r->in.key,
				       ctx(3)), 0);
		ep_refused(t, &s[0], s[0].ep, ctx(3));
		EXPECT(t, reuse_is(r, 1), "the memory was written to");
	}
	reuse_close(t, r);
}

#ifdef CONFIG_FAULT_INJECTION
/* Neither filling a region nor emptying it allocates anything. */
void ep_reuse_faults_case(struct kfi_test *t)
{
	struct reuse *r = reuse_open(t, NULL);
	unsigned int i;

	for (i = 0; r && i < 300 && !t->failures; i++) {
		int filled, emptied;

		if (!EXPECT_EQ(t, kfi_recv(r->p->side[0].ep, &r->in, sizeof(r->in), NULL, 0,
					   (void *)0x4e050002), 0))
			break;
		arm(1);
		filled = reuse_fill_locked(r, REUSE_PAGES, KFI_REMOTE_READ, KFI_MORE);
		EXPECT(t, !disarm(), "filling the region allocates");
		if (!EXPECT_EQ(t, filled, 0) || !EXPECT_EQ(t, reuse_send(r), 0) || !reuse_arrives(t, r) ||
		    !reuse_invalidated(t, r))
			break;
		arm(1);
		emptied = reuse_empty_locked(r);
		EXPECT(t, !disarm(), "emptying the region allocates");
		if (emptied)
			EXPECT_EQ(t, r->ops->empty(r->mr), 0);
	}
	reuse_close(t, r);
}
#endif
