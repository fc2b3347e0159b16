// SPDX-License-Identifier: GPL-2.0
/* Receives that endpoints share: one context, several connections. */
#include "job.h"
#include "shared.h"

#define FEW		4
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)
#define WRITTEN_TO	(KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA)

static unsigned long number(const void *context)
{
	return (unsigned long)context - 0x5a0e0000;
}

/* An endpoint of the second side that is to share its receives, with nothing bound for these. */
struct kfid_ep *sharing_ep(struct kfi_test *t, struct ep_pair *p, struct kfi_info *info)
{
	struct ep_side *s = &p->side[1];
	struct kfid_ep *ep = NULL;

	info->ep_attr->rx_ctx_cnt = KFI_SHARED_CONTEXT;
	if (EXPECT_EQ(t, kfi_endpoint(s->domain, info, &ep, NULL), 0)) {
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->eq->fid, 0), 0);
		EXPECT_EQ(t, kfi_ep_bind(ep, &s->tx->fid, KFI_TRANSMIT), 0);
	}
	return ep;
}

bool sharing_post(struct kfi_test *t, struct sharing *s, int i)
{
	return EXPECT_EQ(t, kfi_recv(s->srx, s->buf + i * LEN, LEN, NULL, 0, ctx(i)), 0);
}

/* To be bound by a thread, when the other is there. */
struct binding {
	struct kfid_ep *ep;
	struct kfid_ep *srx;
	atomic_t *waits;
};

static int bind_at_once(void *data)
{
	struct binding *b = data;
	int patience = 1 << 20;

	atomic_dec(b->waits);
	while (atomic_read(b->waits) && patience--)
		cpu_relax();
	return kfi_ep_bind(b->ep, &b->srx->fid, 0);
}

/* One of the two contexts has it, and the other hasn't. */
static bool bind_to_one(struct kfi_test *t, struct sharing *s, struct kfid_ep *ep)
{
	atomic_t waits = ATOMIC_INIT(2);
	struct binding by[] = { { ep, s->srx, &waits }, { ep, s->other, &waits } };
	struct job job[2] = {};
	int ret[2], i;

	for (i = 0; i < 2; i++)
		job_start(t, &job[i], bind_at_once, &by[i]);
	for (i = 0; i < 2; i++)
		ret[i] = job_end(t, &job[i]);
	if (!ret[1])
		swap(s->srx, s->other);
	return EXPECT(t, (!ret[0] && ret[1] == -KFI_EINVAL) || (!ret[1] && ret[0] == -KFI_EINVAL),
		      "bound at once: %d and %d", ret[0], ret[1]);
}

static bool bind(struct kfi_test *t, struct sharing *s, struct kfid_ep *ep)
{
	if (s->other)
		return bind_to_one(t, s, ep);
	return EXPECT_EQ(t, kfi_ep_bind(ep, &s->srx->fid, 0), 0);
}

/* Another connection to the listener, whose second end shares. */
bool sharing_join(struct kfi_test *t, struct sharing *s, int i)
{
	static const struct ep_wants none;
	struct ep_pair *p = s->p;
	struct ep_side side = p->side[0];
	struct ep_event *e = kzalloc_obj(*e);
	bool done = false;

	if (!EXPECT(t, e, "no memory"))
		return false;
	/* The first one is there. */
	if (i && ep_open(t, &side, p->info, &none))
		s->active[i] = side.ep;
	else if (!i)
		s->active[i] = side.ep;
	if (s->active[i] && EXPECT_EQ(t, kfi_connect(s->active[i], NULL, NULL, 0), 0) &&
	    ep_event(t, p->side[1].eq, KFI_CONNREQ, &p->pep->fid, e)) {
		s->passive[i] = sharing_ep(t, p, e->entry.info);
		kfi_freeinfo(e->entry.info);
	}
	if (s->passive[i])
		done = bind(t, s, s->passive[i]) &&
		       EXPECT_EQ(t, kfi_enable(s->passive[i]), 0) &&
		       EXPECT_EQ(t, kfi_accept(s->passive[i], NULL, 0), 0) &&
		       ep_event(t, p->side[0].eq, KFI_CONNECTED, &s->active[i]->fid, e) &&
		       ep_event(t, p->side[1].eq, KFI_CONNECTED, &s->passive[i]->fid, e);
	kfree(e);
	return done;
}

/* Milliseconds that the provider waits for a device to tell that it takes no more receives. */
#define LAST_WAIT_MS	10000

void sharing_leave(struct kfi_test *t, struct sharing *s, int i)
{
	u64 start;

	if (s->active[i])
		EXPECT_EQ(t, kfi_close(&s->active[i]->fid), 0);
	if (s->passive[i]) {
		start = get_jiffies_64();
		EXPECT_EQ(t, kfi_close(&s->passive[i]->fid), 0);
		/* The device has told, or is known not to tell. */
		EXPECT(t, get_jiffies_64() - start < msecs_to_jiffies(LAST_WAIT_MS),
		       "closing has taken as long as the wait for a device that does not tell");
	}
	if (!i && s->active[i])
		s->p->side[0].ep = NULL;
	s->active[i] = NULL;
	s->passive[i] = NULL;
}

/* A context with a completion queue, and receives; no connection. */
bool sharing_begin(struct kfi_test *t, struct sharing *s, const struct ep_wants *wants,
		   int receives)
{
	int i;

	memset(s, 0, sizeof(*s));
	s->p = ep_listening(t, wants);
	if (!s->p || !EXPECT_EQ(t, s->p->info->domain_attr->max_ep_srx_ctx, kfi_srq))
		return false;
	if (!kfi_srq) {
		EXPECT_EQ(t, kfi_srx_context(s->p->side[1].domain, NULL, &s->srx, s), -KFI_ENOSYS);
		ktap_skip(t, "the device has no shared receive queues");
		return false;
	}
	s->buf = kzalloc(SLOTS * LEN, GFP_KERNEL);
	if (!EXPECT(t, s->buf, "no memory") ||
	    !EXPECT_EQ(t, kfi_srx_context(s->p->side[1].domain, NULL, &s->srx, s), 0))
		return false;
	EXPECT_EQ(t, s->srx->fid.fclass, KFI_CLASS_SRX_CTX);
	EXPECT(t, s->srx->fid.context == s, "another context");
	EXPECT_EQ(t, kfi_recv(s->srx, s->buf, LEN, NULL, 0, ctx(0)), -KFI_ENOCQ);
	EXPECT_EQ(t, kfi_ep_bind(s->srx, &s->p->side[1].rx->fid, KFI_RECV), 0);
	for (i = 0; i < receives; i++)
		if (!sharing_post(t, s, i))
			return false;
	return true;
}

void sharing_end(struct kfi_test *t, struct sharing *s)
{
	int i;

	for (i = 0; i < MOST; i++)
		sharing_leave(t, s, i);
	if (s->srx)
		EXPECT_EQ(t, kfi_close(&s->srx->fid), 0);
	if (s->other)
		EXPECT_EQ(t, kfi_close(&s->other->fid), 0);
	if (s->p)
		ep_pair_close(t, s->p);
	kfree(s->buf);
}

/* Sends from one of the ends, and looks that it comes to a receive that hasn't been used, once. */
static void send_one(struct kfi_test *t, struct sharing *s, struct kfid_ep *ep, int seed,
		     unsigned long *used)
{
	struct kfi_cq_data_entry entry;
	u8 *from = kzalloc(LEN, GFP_KERNEL);
	unsigned long n;

	if (!EXPECT(t, from, "no memory"))
		return;
	pattern(from, LEN - seed, seed);
	EXPECT_EQ(t, kfi_send(ep, from, LEN - seed, NULL, 0, ctx(100)), 0);
	ep_completed(t, s->p->side[0].tx, ctx(100), SENT, NULL);
	if (EXPECT_EQ(t, kfi_cq_sread(s->p->side[1].rx, &entry, 1, NULL, EP_WAIT_MS), 1)) {
		n = number(entry.op_context);
		EXPECT_EQ(t, entry.flags, RECEIVED);
		EXPECT_EQ(t, entry.len, LEN - seed);
		if (EXPECT(t, n < SLOTS && !(*used & BIT(n)), "receive %lu", n)) {
			*used |= BIT(n);
			EXPECT(t, pattern_is(s->buf + n * LEN, LEN - seed, seed), "other bytes");
		}
	}
	kfree(from);
}

/* Each of two connections takes receives; they stay when one ends, and are cancelled at the end. */
void ep_shared_case(struct kfi_test *t)
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct kfi_cq_data_entry entry;
	struct kfi_cq_err_entry err;
	struct kfid_mr *mr = NULL;
	unsigned long used = 0;
	struct sharing s;
	struct kvec kv;
	u8 *word;
	int i;

	if (!sharing_begin(t, &s, &wants, 7))
		goto out;
	word = s.buf + 15 * LEN;
	kv = (struct kvec){ s.buf + 7 * LEN, LEN };
	EXPECT_EQ(t, kfi_recvv(s.srx, &kv, NULL, 1, 0, ctx(7)), 0);
	if (!sharing_join(t, &s, 0) || !sharing_join(t, &s, 1))
		goto out;
	send_one(t, &s, s.active[0], 1, &used);
	send_one(t, &s, s.active[1], 2, &used);
	send_one(t, &s, s.active[0], 3, &used);
	EXPECT_EQ(t, used, 7);
	/* Data, with a message and with a write. */
	if (has_feature(F_REMOTE_DATA)) {
		EXPECT_EQ(t, kfi_injectdata(s.active[1], word, 8, 0x1234, 0), 0);
		if (ep_completed(t, s.p->side[1].rx, ctx(3), RECEIVED | KFI_REMOTE_CQ_DATA, &entry))
			EXPECT_EQ(t, entry.data, 0x1234);
		EXPECT_EQ(t, kfi_mr_reg(s.p->side[1].domain, word, LEN, KFI_REMOTE_WRITE, 0, 3, 0,
					&mr, NULL), 0);
		if (mr) {
			EXPECT_EQ(t, kfi_writedata(s.active[0], s.buf, 8, NULL, 0x77, 0, mr->iova,
						   kfi_mr_key(mr), ctx(101)), 0);
			if (ep_completed(t, s.p->side[1].rx, ctx(4), WRITTEN_TO, &entry))
				EXPECT_EQ(t, entry.data, 0x77);
			/* Else it would be cancelled with its endpoint, if that is closed first. */
			ep_completed(t, s.p->side[0].tx, ctx(101), KFI_RMA | KFI_WRITE, NULL);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
		used |= BIT(3) | BIT(4);
	}
	/* One goes; the other has what there is. */
	sharing_leave(t, &s, 0);
	send_one(t, &s, s.active[1], 4, &used);
	send_one(t, &s, s.active[1], 5, &used);
	/* Each ends once, but the first that is closed takes the context with it. */
	EXPECT_EQ(t, kfi_close(&s.srx->fid), -KFI_EBUSY);
	sharing_leave(t, &s, 1);
	ep_nothing(t, s.p->side[1].rx);
	EXPECT_EQ(t, kfi_close(&s.srx->fid), 0);
	s.srx = NULL;
	for (i = hweight_long(used); i < 8; i++) {
		memset(&err, 0, sizeof(err));
		if (!EXPECT_EQ(t, kfi_cq_sread(s.p->side[1].rx, &entry, 1, NULL, EP_WAIT_MS),
			       -KFI_EAVAIL) ||
		    !EXPECT_EQ(t, kfi_cq_readerr(s.p->side[1].rx, &err, 0), 1))
			break;
		EXPECT_EQ(t, err.err, KFI_ECANCELED);
		EXPECT(t, !(used & BIT(number(err.op_context))), "ended twice");
		used |= BIT(number(err.op_context));
	}
	EXPECT_EQ(t, used, 0xff);
	ep_nothing(t, s.p->side[1].rx);
out:
	sharing_end(t, &s);
}

/* A message for which there is no receive waits for one, whoever it comes to. */
void ep_shared_late_case(struct kfi_test *t)
{
	struct kfi_cq_data_entry entry;
	unsigned long seen = 0;
	struct sharing s;
	int i;

	if (sharing_begin(t, &s, NULL, 0) && sharing_join(t, &s, 0) && sharing_join(t, &s, 1) && sharing_join(t, &s, 2)) {
		for (i = 0; i < 3; i++) {
			s.buf[(8 + i) * LEN] = i + 1;
			EXPECT_EQ(t, kfi_send(s.active[i], s.buf + (8 + i) * LEN, 1, NULL, 0, ctx(i)),
				  0);
		}
		for (i = 0; i < 3; i++) {
			if (!sharing_post(t, &s, 0) ||
			    !ep_completed(t, s.p->side[1].rx, ctx(0), RECEIVED, &entry))
				break;
			EXPECT_EQ(t, entry.len, 1);
			EXPECT(t, !(seen & BIT(s.buf[0])), "%d came twice", s.buf[0]);
			seen |= BIT(s.buf[0]);
		}
		EXPECT_EQ(t, seen, 0xe);
		for (i = 0; i < 3; i++)
			EXPECT_EQ(t, kfi_cq_sread(s.p->side[0].tx, &entry, 1, NULL, EP_WAIT_MS), 1);
	}
	sharing_end(t, &s);
}

/*
 * Many connections, few receives, which are posted again: all come, in the order of their connection.
 * Over iWARP nothing waits for a receive: there are as many as messages are on their way.
 */
void ep_shared_many_case(struct kfi_test *t)
{
	unsigned int sent[MOST] = {}, came[MOST] = {}, out = 0, all = 0, want, at, i;
	unsigned int each = scaled(200);
	struct kfi_cq_data_entry entry;
	struct sharing s;
	u32 *from;

	if (!sharing_begin(t, &s, NULL, FEW))
		goto out;
	for (i = 0; i < MOST; i++)
		if (!sharing_join(t, &s, i))
			goto out;
	from = (u32 *)(s.buf + 15 * LEN);
	want = each * MOST;
	while (all < want) {
		for (i = 0; i < MOST; i++) {
			if (sent[i] == each || sent[i] - came[i] >= 3 ||
			    (!has_feature(F_LATE_RECEIVES) && out - all >= FEW))
				continue;
			from[0] = i;
			from[1] = sent[i];
			if (EXPECT_EQ(t, kfi_inject(s.active[i], from, 8, 0), 0)) {
				sent[i]++;
				out++;
			}
		}
		if (!EXPECT_EQ(t, kfi_cq_sread(s.p->side[1].rx, &entry, 1, NULL, EP_WAIT_MS), 1))
			break;
		at = number(entry.op_context);
		if (!EXPECT(t, at < FEW, "a receive that there isn't"))
			break;
		i = ((u32 *)(s.buf + at * LEN))[0];
		if (!EXPECT(t, i < MOST, "other bytes"))
			break;
		EXPECT_EQ(t, ((u32 *)(s.buf + at * LEN))[1], came[i]);
		came[i]++;
		all++;
		sharing_post(t, &s, at);
	}
	EXPECT_EQ(t, all, want);
	ep_nothing(t, s.p->side[1].rx);
out:
	sharing_end(t, &s);
}
