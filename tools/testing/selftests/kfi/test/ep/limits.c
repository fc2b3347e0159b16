// SPDX-License-Identifier: GPL-2.0
/* The limits that an offer tells are those that there are: as much as that goes, and no more. */
#include "ep.h"

#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define SEGMENTS	16

static void *ctx(unsigned long n)
{
	return (void *)(0x11371700 + n);
}

/* Memory in several segments. */
struct segments {
	struct kvec kv[SEGMENTS + 1];
	unsigned int n;
};

static void segments_free(struct segments *g)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		kfree(g->kv[i].iov_base);
}

/* Each has a gap behind it, so that none goes on in the next one. */
static bool segments_alloc(struct kfi_test *t, struct segments *g, unsigned int n, size_t len)
{
	for (g->n = 0; g->n < n; g->n++) {
		void *mem = kzalloc(len + PAGE_SIZE, GFP_KERNEL);

		if (!EXPECT(t, mem, "no memory for %zu bytes", len))
			return false;
		g->kv[g->n] = (struct kvec){ mem, len };
	}
	return true;
}

/* A message of as many segments and bytes as there may be, to as many; one more is refused. */
static void largest(struct kfi_test *t, struct ep_pair *p, unsigned int n, size_t len)
{
	struct kfid_ep *from = p->side[0].ep, *to = p->side[1].ep;
	struct segments a = {}, b = {};
	struct kfi_cq_data_entry entry;
	unsigned int i;

	if (!segments_alloc(t, &a, n, len) || !segments_alloc(t, &b, n, len))
		goto out;
	for (i = 0; i < n; i++)
		pattern(a.kv[i].iov_base, len, i);
	a.kv[n] = a.kv[0];
	EXPECT_EQ(t, kfi_sendv(from, a.kv, NULL, n + 1, 0, NULL), -KFI_EINVAL);
	EXPECT_EQ(t, kfi_recvv(to, b.kv, NULL, n, 0, ctx(1)), 0);
	EXPECT_EQ(t, kfi_sendv(from, a.kv, NULL, n, 0, ctx(2)), 0);
	if (ep_completed(t, p->side[1].rx, ctx(1), RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, n * len);
	ep_completed(t, p->side[0].tx, ctx(2), SENT, NULL);
	for (i = 0; i < n; i++)
		EXPECT(t, pattern_is(b.kv[i].iov_base, len, i), "segment %u: other bytes", i);
out:
	segments_free(&a);
	segments_free(&b);
}

/* One byte more than max_msg_size is too long. Without that byte only the memory is wrong: it ends before. */
static void too_long(struct kfi_test *t, struct ep_pair *p)
{
	struct kfid_ep *from = p->side[0].ep, *to = p->side[1].ep;
	size_t most = p->info->ep_attr->max_msg_size;
	u8 *mem = vmalloc(PAGE_SIZE);
	struct kvec kv[2] = { { mem, most - 1 }, { mem, 2 } };

	if (!EXPECT(t, mem, "no memory"))
		return;
	EXPECT_EQ(t, kfi_send(from, mem, most + 1, NULL, 0, NULL), -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_recv(to, mem, most + 1, NULL, 0, NULL), -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_sendv(from, kv, NULL, 2, 0, NULL), -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_recvv(to, kv, NULL, 2, 0, NULL), -KFI_EMSGSIZE);
	EXPECT_EQ(t, kfi_send(from, mem, most, NULL, 0, NULL), -KFI_EFAULT);
	EXPECT_EQ(t, kfi_recv(to, mem, most, NULL, 0, NULL), -KFI_EFAULT);
	kv[1].iov_len--;
	EXPECT_EQ(t, kfi_sendv(from, kv, NULL, 2, 0, NULL), -KFI_EFAULT);
	vfree(mem);
}

/* As many receives as were told, and then messages for them. */
static void queues(struct kfi_test *t, struct ep_pair *p)
{
	size_t sends = p->info->tx_attr->size, receives = p->info->rx_attr->size;
	size_t n = min3(sends, receives, (size_t)scaled(1024)), i;
	struct kfid_ep *from = p->side[0].ep, *to = p->side[1].ep;
	u8 *mem = kzalloc(64, GFP_KERNEL);

	if (!EXPECT(t, mem, "no memory"))
		return;
	EXPECT_EQ(t, kfi_tx_size_left(from), sends);
	EXPECT_EQ(t, kfi_rx_size_left(to), receives);
	for (i = 0; i < receives && !t->failures; i++)
		EXPECT_EQ(t, kfi_recv(to, mem, 8, NULL, 0, ctx(i)), 0);
	EXPECT_EQ(t, kfi_recv(to, mem, 8, NULL, 0, ctx(i)), -KFI_EAGAIN);
	for (i = 0; i < n && !t->failures; i++)
		EXPECT_EQ(t, kfi_send(from, mem + 32, 8, NULL, 0, ctx(i)), 0);
	for (i = 0; i < n && !t->failures; i++) {
		ep_completed(t, p->side[0].tx, ctx(i), SENT, NULL);
		ep_completed(t, p->side[1].rx, ctx(i), RECEIVED, NULL);
	}
	ep_nothing(t, p->side[0].tx);
	kfree(mem);
}

void ep_limits_case(struct kfi_test *t)
{
	struct sockaddr_in address = ep_address();
	struct ep_wants wants = { .cq_size = 4096 };
	struct kfi_info *info = ep_info(t, &address, KFI_SOURCE, 0);
	struct ep_pair *p;
	size_t n, len;

	if (!info)
		return;
	wants.tx_size = info->tx_attr->size;
	wants.rx_size = info->rx_attr->size;
	n = info->tx_attr->iov_limit;
	/* Each has to be one piece of memory; and no kernel is kept busy with a gigabyte. */
	len = min_t(size_t, info->ep_attr->max_msg_size / n, SZ_512K);
	len = scaled(100) == 100 ? len : PAGE_SIZE;
	kfi_freeinfo(info);
	p = ep_connected(t, &wants);
	if (p && EXPECT(t, n <= SEGMENTS, "%zu segments", n)) {
		largest(t, p, n, len);
		too_long(t, p);
		queues(t, p);
	}
	if (p)
		ep_pair_close(t, p);
}
