// SPDX-License-Identifier: GPL-2.0
/* Messages: their bytes, their completions, and what is refused. */
#include "ep.h"

#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define MOST		(256 * 1024)

static void *ctx(unsigned long n)
{
	return (void *)(0xc0ffee00 + n);
}

/* Two buffers of @len bytes, each with guards; NULL is a failure that has been reported. */
struct buffers {
	u8 *from;
	u8 *to;
	u8 *mem[2];
	size_t len;
};

static bool buffers_alloc(struct kfi_test *t, struct buffers *b, size_t len)
{
	int i;

	b->len = len;
	for (i = 0; i < 2; i++)
		b->mem[i] = kzalloc(len + 2 * GUARD, GFP_KERNEL);
	b->from = b->mem[0] ? b->mem[0] + GUARD : NULL;
	b->to = b->mem[1] ? b->mem[1] + GUARD : NULL;
	return EXPECT(t, b->from && b->to, "no memory");
}

static void buffers_free(struct buffers *b)
{
	kfree(b->mem[0]);
	kfree(b->mem[1]);
}

static void fill(struct buffers *b, unsigned int shift)
{
	pattern(b->from, b->len, shift);
	memset(b->mem[1], 0xa5, b->len + 2 * GUARD);
}

/* @len bytes have come, and nothing else has changed. */
static void check(struct kfi_test *t, struct buffers *b, size_t len, unsigned int shift)
{
	EXPECT(t, pattern_is(b->to, len, shift), "%zu bytes: others have come", len);
	EXPECT(t, !memchr_inv(b->to + len, 0xa5, b->len + GUARD - len), "bytes behind have changed");
	EXPECT(t, !memchr_inv(b->mem[1], 0xa5, GUARD), "bytes before have changed");
}

/* Both completions of a message of @len bytes. */
static bool both(struct kfi_test *t, struct ep_pair *p, size_t len, u64 more, u64 data)
{
	struct kfi_cq_data_entry entry;

	if (!ep_completed(t, p->side[1].rx, ctx(2), RECEIVED | more, &entry))
		return false;
	EXPECT_EQ(t, entry.len, len);
	EXPECT_EQ(t, entry.data, data);
	return ep_completed(t, p->side[0].tx, ctx(1), SENT, NULL);
}

void ep_sizes_case(struct kfi_test *t)
{
	static const size_t sizes[] = { 0, 1, 7, 64, 65, 4095, 4096, 4097, 100000, MOST };
	struct ep_pair *p = ep_connected(t, NULL);
	struct buffers b = {};
	unsigned int i;

	if (p && buffers_alloc(t, &b, MOST)) {
		for (i = 0; i < ARRAY_SIZE(sizes) && !t->failures; i++) {
			fill(&b, i);
			EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, MOST, NULL, 0, ctx(2)), 0);
			EXPECT_EQ(t, kfi_send(p->side[0].ep, b.from, sizes[i], NULL, 0, ctx(1)), 0);
			if (!both(t, p, sizes[i], 0, 0))
				break;
			check(t, &b, sizes[i], i);
		}
	}
	buffers_free(&b);
	if (p)
		ep_pair_close(t, p);
}

/* The elements of a list. */
struct lists {
	struct kvec kv[2];
	struct bio_vec bv[2];
};

static void lists_of(struct lists *l, u8 *mem, size_t len)
{
	size_t half = len / 2;
	int i;

	for (i = 0; i < 2; i++) {
		u8 *at = mem + i * half;
		size_t n = i ? len - half : half;

		l->kv[i] = (struct kvec){ .iov_base = at, .iov_len = n };
		bvec_set_page(&l->bv[i], virt_to_page(at), n, offset_in_page(at));
	}
}

/* Every call of each direction, against kfi_recv() and kfi_send(). */
void ep_calls_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	const size_t len = 3000;
	struct buffers b = {};
	struct kfi_msg msg;
	struct lists l;
	unsigned int i;
	ssize_t ret;

	if (!p || !buffers_alloc(t, &b, len))
		goto out;
	for (i = 0; i < 8 && !t->failures; i++) {
		struct kfid_ep *to = p->side[1].ep, *from = p->side[0].ep;

		fill(&b, i);
		lists_of(&l, i < 4 ? b.to : b.from, len);
		msg = (struct kfi_msg){
			.type = i & 1 ? KFI_BVEC : KFI_KVEC,
			.iov_count = 2,
			.context = i < 4 ? ctx(2) : ctx(1),
		};
		if (i & 1)
			msg.msg_biov = l.bv;
		else
			msg.msg_iov = l.kv;
		switch (i) {
		case 0:
			ret = kfi_recvv(to, l.kv, NULL, 2, 0, ctx(2));
			break;
		case 1:
			ret = kfi_recvbv(to, l.bv, NULL, 2, 0, ctx(2));
			break;
		case 2:
		case 3:
			ret = kfi_recvmsg(to, &msg, KFI_COMPLETION);
			break;
		default:
			ret = kfi_recv(to, b.to, len, NULL, 0, ctx(2));
		}
		EXPECT_EQ(t, ret, 0);
		switch (i) {
		case 4:
			ret = kfi_sendv(from, l.kv, NULL, 2, 0, ctx(1));
			break;
		case 5:
			ret = kfi_sendbv(from, l.bv, NULL, 2, 0, ctx(1));
			break;
		case 6:
		case 7:
			ret = kfi_sendmsg(from, &msg, KFI_COMPLETION);
			break;
		default:
			ret = kfi_send(from, b.from, len, NULL, 0, ctx(1));
		}
		EXPECT_EQ(t, ret, 0);
		if (!both(t, p, len, 0, 0))
			break;
		check(t, &b, len, i);
	}
out:
	buffers_free(&b);
	if (p)
		ep_pair_close(t, p);
}

/* Injected bytes are the caller's again at once, and the request completes without a word. */
void ep_inject_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	size_t most;
	struct buffers b = {};
	struct kfi_cq_data_entry entry;

	if (!p)
		return;
	most = p->info->tx_attr->inject_size;
	if (EXPECT(t, most >= 16, "inject_size is %zu", most) && buffers_alloc(t, &b, 4096)) {
		fill(&b, 1);
		EXPECT_EQ(t, kfi_inject(p->side[0].ep, b.from, most + 1, 0), -KFI_EMSGSIZE);
		/* Over iWARP, no message waits for a receive. */
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, b.len, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, kfi_inject(p->side[0].ep, b.from, most, 0), 0);
		memset(b.from, 0, most);
		if (ep_completed(t, p->side[1].rx, ctx(2), RECEIVED, &entry))
			EXPECT_EQ(t, entry.len, most);
		check(t, &b, most, 1);
		ep_nothing(t, p->side[0].tx);
	}
	buffers_free(&b);
	ep_pair_close(t, p);
}

/* Data for the peer's completion queue. */
void ep_remote_data_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct buffers b = {};

	if (p && buffers_alloc(t, &b, 256)) {
		EXPECT_EQ(t, p->info->domain_attr->cq_data_size, 4);
		fill(&b, 9);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 256, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, kfi_senddata(p->side[0].ep, b.from, 100, NULL, 1ULL << 32, 0, ctx(1)),
			  -KFI_EINVAL);
		EXPECT_EQ(t, kfi_senddata(p->side[0].ep, b.from, 100, NULL, 0xfedcba98, 0, ctx(1)),
			  0);
		both(t, p, 100, KFI_REMOTE_CQ_DATA, 0xfedcba98);
		check(t, &b, 100, 9);
	}
	buffers_free(&b);
	if (p)
		ep_pair_close(t, p);
}

/* Messages go to the receives in their order, also those that were posted before connecting. */
void ep_order_case(struct kfi_test *t)
{
	const unsigned int many = 64;
	struct ep_wants wants = { .tx_size = 64, .rx_size = 64 };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfi_cq_data_entry entry;
	struct buffers b = {};
	unsigned int i;

	if (!p || !buffers_alloc(t, &b, many * 64))
		goto out;
	fill(&b, 0);
	for (i = 0; i < many; i++)
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to + i * 64, 64, NULL, 0, ctx(i)), 0);
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 64, NULL, 0, ctx(99)), -KFI_EAGAIN);
	for (i = 0; i < many; i++)
		EXPECT_EQ(t, kfi_send(p->side[0].ep, b.from + i * 64, i % 64 + 1, NULL, 0, ctx(i)),
			  0);
	for (i = 0; i < many && !t->failures; i++) {
		if (!ep_completed(t, p->side[1].rx, ctx(i), RECEIVED, &entry) ||
		    !ep_completed(t, p->side[0].tx, ctx(i), SENT, NULL))
			break;
		EXPECT_EQ(t, entry.len, i % 64 + 1);
		EXPECT(t, pattern_is(b.to + i * 64, i % 64 + 1, i * 64), "message %u is another", i);
	}
out:
	buffers_free(&b);
	if (p)
		ep_pair_close(t, p);
}

/* A message that is too long fails at both sides, and the connection ends. */
void ep_truncated_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct kfi_cq_err_entry err;
	struct buffers b = {};

	if (p && buffers_alloc(t, &b, 256)) {
		fill(&b, 2);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 100, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, kfi_send(p->side[0].ep, b.from, 101, NULL, 0, ctx(1)), 0);
		if (ep_failed_op(t, p->side[1].rx, ctx(2), KFI_ETRUNC, &err))
			EXPECT_EQ(t, err.olen, has_feature(F_OLEN));
		ep_failed_op(t, p->side[0].tx, ctx(1), KFI_EREMOTEIO, &err);
		EXPECT(t, !memchr_inv(b.to + 100, 0xa5, b.len + GUARD - 100),
		       "bytes behind the buffer have changed");
		ep_lost(t, p);
	}
	buffers_free(&b);
	if (p)
		ep_pair_close(t, p);
}

/* Completions that nobody reads hold up who posts, and nothing is lost. */
void ep_full_case(struct kfi_test *t)
{
	struct ep_wants wants = { .cq_size = 4 };
	struct ep_pair *p = ep_connected(t, &wants);
	struct buffers b = {};
	int i, posted = 0;

	if (p && buffers_alloc(t, &b, 256)) {
		fill(&b, 2);
		for (i = 0; i < 4; i++)
			EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 256, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 256, NULL, 0, ctx(2)), -KFI_EAGAIN);
		for (i = 0; i < 4; i++)
			EXPECT_EQ(t, kfi_send(p->side[0].ep, b.from, 16, NULL, 0, ctx(1)), 0);
		EXPECT_EQ(t, kfi_send(p->side[0].ep, b.from, 16, NULL, 0, ctx(1)), -KFI_EAGAIN);
		for (i = 0; i < 4; i++)
			posted += both(t, p, 16, 0, 0);
		EXPECT_EQ(t, posted, 4);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 256, NULL, 0, ctx(2)), 0);
		EXPECT_EQ(t, kfi_send(p->side[0].ep, b.from, 16, NULL, 0, ctx(1)), 0);
		both(t, p, 16, 0, 0);
	}
	buffers_free(&b);
	if (p)
		ep_pair_close(t, p);
}

/* A request that is under way when the connection goes ends once, as cancelled. */
void ep_flushed_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	struct kfi_cq_err_entry err;
	struct buffers b = {};
	int i;

	if (p && buffers_alloc(t, &b, 256)) {
		for (i = 0; i < 5; i++)
			EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 256, NULL, 0, ctx(i)), 0);
		EXPECT_EQ(t, kfi_recv(p->side[0].ep, b.from, 256, NULL, 0, ctx(7)), 0);
		EXPECT_EQ(t, kfi_shutdown(p->side[0].ep, 0), 0);
		for (i = 0; i < 5; i++)
			ep_failed_op(t, p->side[1].rx, ctx(i), KFI_ECANCELED, &err);
		ep_failed_op(t, p->side[0].rx, ctx(7), KFI_ECANCELED, &err);
		ep_nothing(t, p->side[1].rx);
		ep_nothing(t, p->side[0].rx);
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, b.to, 256, NULL, 0, ctx(1)), -KFI_ENOTCONN);
	}
	buffers_free(&b);
	if (p)
		ep_pair_close(t, p);
}

/* Memory that may not be registered may not be sent either, and nothing is begun. */
void ep_bad_memory_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, NULL);
	u8 on_stack[16];
	struct kvec kv[40] = {};
	struct kfid_ep *ep;

	if (!p)
		return;
	ep = p->side[0].ep;
	EXPECT_EQ(t, kfi_send(ep, NULL, 16, NULL, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_recv(ep, on_stack, 16, NULL, 0, NULL), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_recv(ep, (void *)ep_bad_memory_case, 16, NULL, 0, NULL), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_send(ep, (void *)16, 16, NULL, 0, NULL), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_send(ep, p, 16, ep, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_send(ep, p, SIZE_MAX, NULL, 0, NULL), -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_sendv(ep, NULL, NULL, 1, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_sendv(ep, kv, NULL, 1, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_sendv(ep, kv, NULL, p->info->tx_attr->iov_limit + 1, 0, NULL),
		  -KFI_EINVAL);
	EXPECT_EQ(t, kfi_sendmsg(ep, NULL, 0), -KFI_EINVAL);
	ep_nothing(t, p->side[0].tx);
	ep_nothing(t, p->side[0].rx);
	ep_pair_close(t, p);
}
