// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers that can't be posted, by the tables of kfi_msg(3) and kfi_rma(3): refused by the errno
 * that is documented, at no cost. trace.sh compares the number of refusals with the events that say
 * why.
 */
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>

#include "kinds.h"
#include "suites.h"

#define LEN	PAGE_SIZE
#define PIECES	20
#define UNKNOWN	BIT_ULL(59)

/* How many were refused with each errno. */
static unsigned int refused[KFI_ERRNO_MAX];

/**
 * struct subject - what is posted on, and what is posted
 * @t: The case.
 * @ep: The endpoint.
 * @tx: Where completions of sends would be told.
 * @rx: Where those of receives would be.
 * @mem: Memory that may be used.
 * @scattered: PIECES pages. None of them follows the one before it.
 * @at: The peer's memory.
 * @key: Its key.
 * @readable: A region of @mem that may not be written to.
 */
struct subject {
	struct kfi_test *t;
	struct kfid_ep *ep;
	struct kfid_cq *tx;
	struct kfid_cq *rx;
	u8 *mem;
	u8 *scattered;
	u64 at;
	u64 key;
	struct kfid_mr *readable;
};

static void expect_refused(struct subject *s, const char *call, ssize_t ret, int want, ssize_t room)
{
	ssize_t now = kfi_tx_size_left(s->ep) + kfi_rx_size_left(s->ep);

	if (EXPECT(s->t, ret == want, "%s is %zd, expected %d", call, ret, want))
		refused[-want]++;
	EXPECT(s->t, now == room, "%s: room for %zd, there was for %zd", call, now, room);
	ep_nothing(s->t, s->tx);
	ep_nothing(s->t, s->rx);
}

/* A call is refused, and has cost nothing. */
#define REFUSED(s, want, call)						\
do {									\
	ssize_t __room = kfi_tx_size_left((s)->ep) + kfi_rx_size_left((s)->ep);	\
									\
	expect_refused(s, #call, call, want, __room);			\
} while (0)

static void note_refused(void)
{
	int i;

	for (i = 0; i < KFI_ERRNO_MAX; i++)
		if (refused[i])
			ktap_note("refused %d %u", -i, refused[i]);
}

/* All kinds of transfers from @first on are refused; those of both sides are the endpoint's. */
static void refuses_all(struct kfi_test *t, const struct ep_pair *p, struct kfid_ep *ep, u8 *mem,
			unsigned int first, int want)
{
	struct ep_pair one = *p;
	struct kfid_mr peer = { .iova = 4096, .key = 1 };
	unsigned int kind;

	one.side[0].ep = one.side[1].ep = ep;
	for (kind = first; kind < EP_KINDS; kind++) {
		ssize_t ret = ep_kind_post(&one, mem, &peer, kind);

		if (EXPECT(t, ret == want, "kind %u is %zd, expected %d", kind, ret, want))
			refused[-want]++;
	}
	ep_nothing(t, p->side[0].tx);
	ep_nothing(t, p->side[0].rx);
}

/* In each state in which nothing can be transferred. */
static void states_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .caps = KFI_MSG | KFI_RMA | KFI_ATOMIC };
	struct ep_pair *waits = ep_listening(t, &wants), *p = ep_connected(t, &wants);
	u8 *mem = kzalloc(EP_KINDS_LEN, GFP_KERNEL);
	struct kfid_ep *ep;
	struct ep_event e;

	if (!waits || !p || !EXPECT(t, mem, "no memory"))
		goto out;
	if (EXPECT_EQ(t, kfi_endpoint(waits->side[0].domain, waits->info, &ep, NULL), 0)) {
		refuses_all(t, waits, ep, mem, 0, -KFI_EOPBADSTATE);
		EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	}
	/* An endpoint that never has a peer. */
	waits->info->ep_attr->type = KFI_EP_RDM;
	if (EXPECT_EQ(t, kfi_endpoint(waits->side[0].domain, waits->info, &ep, NULL),
		      feature_errno(F_UNCONNECTED)) && has_feature(F_UNCONNECTED)) {
		refuses_all(t, waits, ep, mem, 0, -KFI_ENOSYS);
		EXPECT_EQ(t, kfi_close(&ep->fid), 0);
	}
	waits->info->ep_attr->type = KFI_EP_MSG;
	/* Enabled; only receives are taken. */
	refuses_all(t, waits, waits->side[0].ep, mem, 1, -KFI_ENOTCONN);
	EXPECT_EQ(t, kfi_connect(waits->side[0].ep, NULL, NULL, 0), 0);
	refuses_all(t, waits, waits->side[0].ep, mem, 1, -KFI_ENOTCONN);
	EXPECT_EQ(t, kfi_shutdown(p->side[0].ep, 0), 0);
	ep_event(t, p->side[1].eq, KFI_SHUTDOWN, &p->side[1].ep->fid, &e);
	refuses_all(t, p, p->side[0].ep, mem, 0, -KFI_ENOTCONN);
	refuses_all(t, p, p->side[1].ep, mem, 0, -KFI_ENOTCONN);
	note_refused();
out:
	if (waits)
		ep_pair_close(t, waits);
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

/* The same page again and again. */
static u8 *scattered(void)
{
	struct page *page = alloc_page(GFP_KERNEL), *pages[PIECES];
	u8 *map = NULL;
	int i;

	for (i = 0; page && i < PIECES; i++)
		pages[i] = page;
	if (page)
		map = vmap(pages, PIECES, VM_MAP, PAGE_KERNEL);
	/* It is the mapping's, or nobody's. */
	if (page && !map)
		__free_page(page);
	return map;
}

static void unscattered(u8 *map)
{
	struct page *page = map ? vmalloc_to_page(map) : NULL;

	vunmap(map);
	if (page)
		__free_page(page);
}

static void errors_run(struct kfi_test *t, void (*run)(struct subject *s, struct ep_pair *p))
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .caps = KFI_MSG | KFI_RMA | KFI_ATOMIC };
	struct ep_pair *p = ep_connected(t, &wants);
	struct kfid_mr *mr = NULL;
	struct subject s = { .t = t };
	unsigned int kind;

	s.mem = kzalloc(LEN, GFP_KERNEL);
	s.scattered = scattered();
	if (!p || !EXPECT(t, s.mem && s.scattered, "no memory") ||
	    !EXPECT_EQ(t, ep_kinds_region(p, s.mem, &mr), 0) ||
	    !EXPECT_EQ(t, kfi_mr_reg(p->side[0].domain, s.mem, LEN / 2, KFI_REMOTE_READ, 0, 8, 0,
				     &s.readable, NULL), 0))
		goto out;
	s.ep = p->side[0].ep;
	s.tx = p->side[0].tx;
	s.rx = p->side[0].rx;
	s.at = mr->iova;
	s.key = kfi_mr_key(mr);
	run(&s, p);
	/* It is as good as before. */
	for (kind = 0; kind < EP_KINDS && !t->failures; kind++) {
		if (ep_kind_needs_receive(kind))
			EXPECT_EQ(t, ep_kind_post(p, s.mem, mr, 0), 0);
		EXPECT_EQ(t, ep_kind_post(p, s.mem, mr, kind), 0);
		ep_kind_ends(t, p, s.mem, mr, kind);
	}
	note_refused();
out:
	if (s.readable)
		EXPECT_EQ(t, kfi_close(&s.readable->fid), 0);
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	if (p)
		ep_pair_close(t, p);
	unscattered(s.scattered);
	kfree(s.mem);
}

static void messages(struct subject *s, struct ep_pair *p)
{
	size_t limit = p->info->tx_attr->iov_limit, data = p->info->domain_attr->cq_data_size;
	size_t most = p->info->tx_attr->inject_size;
	void *desc = kfi_mr_desc(s->readable);
	struct kfi_msg msg = { .type = KFI_KVEC };
	struct kvec kv[40], bad[2];
	struct scatterlist sg[2];
	u8 on_stack[16];
	int i;

	for (i = 0; i < ARRAY_SIZE(kv); i++)
		kv[i] = (struct kvec) { s->mem + 8 * i, 8 };
	REFUSED(s, -KFI_EINVAL, kfi_send(NULL, s->mem, 8, NULL, 0, s));
	REFUSED(s, -KFI_EINVAL, kfi_recv(ERR_PTR(-EIO), s->mem, 8, NULL, 0, s));
	REFUSED(s, -KFI_EINVAL, kfi_recv(s->ep, NULL, 8, NULL, 0, s));
	REFUSED(s, -KFI_EINVAL, kfi_sendmsg(s->ep, NULL, 0));
	REFUSED(s, -KFI_EINVAL, kfi_recvmsg(s->ep, NULL, 0));
	msg.msg_iov = kv;
	msg.iov_count = 1;
	REFUSED(s, -KFI_EBADFLAGS, kfi_sendmsg(s->ep, &msg, UNKNOWN));
	REFUSED(s, -KFI_EBADFLAGS, kfi_recvmsg(s->ep, &msg, UNKNOWN));
	msg.type = 77;
	REFUSED(s, -KFI_EINVAL, kfi_sendmsg(s->ep, &msg, 0));
	REFUSED(s, -KFI_EINVAL, kfi_recvmsg(s->ep, &msg, 0));
	if (data < sizeof(u64))
		REFUSED(s, -KFI_EINVAL, kfi_senddata(s->ep, s->mem, 8, NULL, BIT_ULL(8 * data), 0, s));
	if (limit < ARRAY_SIZE(kv)) {
		REFUSED(s, -KFI_EINVAL, kfi_sendv(s->ep, kv, NULL, limit + 1, 0, s));
		REFUSED(s, -KFI_EINVAL, kfi_recvv(s->ep, kv, NULL, limit + 1, 0, s));
	}
	bad[0] = (struct kvec) { s->mem, 8 };
	bad[1] = (struct kvec) { s->mem, 0 };
	REFUSED(s, -KFI_EINVAL, kfi_sendv(s->ep, bad, NULL, 2, 0, s));
	bad[1].iov_len = SIZE_MAX - 4;
	REFUSED(s, -KFI_EINVAL, kfi_sendv(s->ep, bad, NULL, 2, 0, s));
	/* Not mapped; and shorter than it is said to be. */
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], s->mem, 8);
	sg_set_buf(&sg[1], s->mem, 8);
	REFUSED(s, -KFI_EINVAL, kfi_sendsgl(s->ep, sg, NULL, 2, 0, s));
	sg_init_table(sg, 1);
	sg_set_buf(&sg[0], s->mem, 8);
	REFUSED(s, -KFI_EINVAL, kfi_recvsgl(s->ep, sg, NULL, 2, 0, s));
	REFUSED(s, -KFI_EINVAL, kfi_send(s->ep, s->mem, 8, s->ep, 0, s));
	/* Over loop there are none. */
	if (desc) {
		REFUSED(s, -KFI_EACCES, kfi_recv(s->ep, s->mem, 8, desc, 0, s));
		REFUSED(s, -KFI_EINVAL, kfi_send(s->ep, s->mem + LEN / 2 - 4, 8, desc, 0, s));
	}
	REFUSED(s, -KFI_EMSGSIZE, kfi_send(s->ep, s->mem, SIZE_MAX, NULL, 0, s));
	REFUSED(s, -KFI_EMSGSIZE, kfi_recv(s->ep, s->mem, SIZE_MAX, NULL, 0, s));
	REFUSED(s, -KFI_EFAULT, kfi_send(s->ep, on_stack, 8, NULL, 0, s));
	REFUSED(s, -KFI_EFAULT, kfi_recv(s->ep, (void *)messages, 8, NULL, 0, s));
	REFUSED(s, -KFI_EFAULT, kfi_recv(s->ep, (void *)16, 8, NULL, 0, s));
	REFUSED(s, -KFI_E2BIG, kfi_send(s->ep, s->scattered, PIECES * PAGE_SIZE, NULL, 0, s));
	REFUSED(s, -KFI_EMSGSIZE, kfi_inject(s->ep, s->mem, most + 1, 0));
	REFUSED(s, -KFI_EMSGSIZE, kfi_injectdata(s->ep, s->mem, most + 1, 1, 0));
}

static void messages_case(struct kfi_test *t)
{
	errors_run(t, messages);
}

static void rma(struct subject *s, struct ep_pair *p)
{
	size_t limit = p->info->tx_attr->rma_iov_limit, data = p->info->domain_attr->cq_data_size;
	size_t most = p->info->tx_attr->inject_size;
	void *desc = kfi_mr_desc(s->readable);
	struct kvec kv = { s->mem, 8 };
	struct kfi_rma_iov iov[40];
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = &kv,
		.iov_count = 1,
		.rma_iov = iov,
		.rma_iov_count = 1,
	};
	u64 at = s->at, key = s->key;
	u8 on_stack[16];
	int i;

	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = (struct kfi_rma_iov) { at, 8, key };
	REFUSED(s, -KFI_EINVAL, kfi_write(NULL, s->mem, 8, NULL, 0, at, key, s));
	REFUSED(s, -KFI_EINVAL, kfi_read(s->ep, NULL, 8, NULL, 0, at, key, s));
	REFUSED(s, -KFI_EINVAL, kfi_writemsg(s->ep, NULL, 0));
	REFUSED(s, -KFI_EBADFLAGS, kfi_readmsg(s->ep, &msg, UNKNOWN));
	REFUSED(s, -KFI_EBADFLAGS, kfi_writemsg(s->ep, &msg, UNKNOWN));
	/* These are for what is sent. */
	REFUSED(s, -KFI_EBADFLAGS, kfi_readmsg(s->ep, &msg, KFI_INJECT));
	REFUSED(s, -KFI_EBADFLAGS, kfi_readmsg(s->ep, &msg, KFI_REMOTE_CQ_DATA));
	msg.rma_iov_count = 0;
	REFUSED(s, -KFI_EINVAL, kfi_readmsg(s->ep, &msg, 0));
	msg.rma_iov_count = limit + 1;
	if (limit < ARRAY_SIZE(iov))
		REFUSED(s, -KFI_EINVAL, kfi_writemsg(s->ep, &msg, 0));
	msg.rma_iov_count = 2;
	REFUSED(s, -KFI_EINVAL, kfi_writemsg(s->ep, &msg, 0));
	msg.rma_iov = NULL;
	REFUSED(s, -KFI_EINVAL, kfi_readmsg(s->ep, &msg, 0));
	msg.rma_iov = iov;
	msg.rma_iov_count = 1;
	msg.type = 77;
	REFUSED(s, -KFI_EINVAL, kfi_writemsg(s->ep, &msg, 0));
	if (data < sizeof(u64))
		REFUSED(s, -KFI_EINVAL,
			kfi_writedata(s->ep, s->mem, 8, NULL, BIT_ULL(8 * data), 0, at, key, s));
	REFUSED(s, -KFI_EINVAL, kfi_write(s->ep, s->mem, 8, s->ep, 0, at, key, s));
	if (desc) {
		REFUSED(s, -KFI_EACCES, kfi_read(s->ep, s->mem, 8, desc, 0, at, key, s));
		REFUSED(s, -KFI_EINVAL, kfi_write(s->ep, s->mem + LEN / 2, 8, desc, 0, at, key, s));
	}
	REFUSED(s, -KFI_EMSGSIZE, kfi_write(s->ep, s->mem, SIZE_MAX, NULL, 0, at, key, s));
	REFUSED(s, -KFI_EMSGSIZE, kfi_read(s->ep, s->mem, SIZE_MAX, NULL, 0, at, key, s));
	REFUSED(s, -KFI_EFAULT, kfi_write(s->ep, on_stack, 8, NULL, 0, at, key, s));
	REFUSED(s, -KFI_EFAULT, kfi_read(s->ep, (void *)rma, 8, NULL, 0, at, key, s));
	REFUSED(s, -KFI_E2BIG,
		kfi_read(s->ep, s->scattered, PIECES * PAGE_SIZE, NULL, 0, at, key, s));
	REFUSED(s, -KFI_EMSGSIZE, kfi_inject_write(s->ep, s->mem, most + 1, 0, at, key));
	REFUSED(s, -KFI_EINVAL, kfi_write(s->ep, s->mem, 8, NULL, 0, U64_MAX - 4, key, s));
	REFUSED(s, -KFI_ENOKEY, kfi_read(s->ep, s->mem, 8, NULL, 0, at, key | BIT_ULL(63), s));
	REFUSED(s, -KFI_ENOKEY, kfi_inject_write(s->ep, s->mem, 8, 0, at, key | BIT_ULL(63)));
}

static void rma_case(struct kfi_test *t)
{
	errors_run(t, rma);
}

static const struct kfi_case cases[] = {
	{ "states", states_case },
	{ "messages", messages_case },
	{ "rma", rma_case },
};

const struct kfi_suite suite_ep_errors = {
	.name = "ep_errors",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
	.connects = true,
};
