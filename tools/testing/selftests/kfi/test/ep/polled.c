// SPDX-License-Identifier: GPL-2.0
/* Completion queues that only reads look for completions of (KFI_PROGRESS_MANUAL), and the vector of a queue. */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <rdma/ib_verbs.h>

#include "ep.h"

#define LEN		64
#define SENT		(KFI_MSG | KFI_SEND)
#define RECEIVED	(KFI_MSG | KFI_RECV)

/* How long softirq is given for what it must not do. */
#define A_WHILE_MS	100

static const struct ep_wants polled = {
	.polled = true,
	.mr_mode = EP_MODE | KFI_MR_ENDPOINT,
	.tx_size = 4,
	.rx_size = 4,
	.cq_size = 16,
};

static void *ctx(unsigned long n)
{
	return (void *)(0x90113d00 + n);
}

/* Reads, as a consumer with interrupts off does, until there is anything. */
static ssize_t poll(struct kfid_cq *cq, struct kfi_cq_data_entry *entry)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS), flags;
	ssize_t n;

	do {
		local_irq_save(flags);
		n = kfi_cq_read(cq, entry, 1);
		local_irq_restore(flags);
		cond_resched();
	} while (n == -KFI_EAGAIN && time_before(jiffies, end));
	return n;
}

static void completed(struct kfi_test *t, struct kfid_cq *cq, void *context, u64 flags)
{
	struct kfi_cq_data_entry entry = {};

	EXPECT_EQ(t, poll(cq, &entry), 1);
	EXPECT(t, entry.op_context == context, "a completion of something else");
	EXPECT_EQ(t, entry.flags, flags);
}

static void cancelled(struct kfi_test *t, struct kfid_cq *cq, void *context)
{
	struct kfi_cq_data_entry entry;
	struct kfi_cq_err_entry err = {};

	EXPECT_EQ(t, poll(cq, &entry), -KFI_EAVAIL);
	EXPECT_EQ(t, kfi_cq_readerr(cq, &err, 0), 1);
	EXPECT(t, err.op_context == context, "a failure of something else");
	EXPECT_EQ(t, err.err, KFI_ECANCELED);
}

/* A message. Nobody but who reads looks whether it was sent, or has come. */
static void message(struct kfi_test *t, struct ep_pair *p, u8 *mem, unsigned int n)
{
	struct ep_side *s = p->side;
	struct kfi_cq_data_entry entry;

	EXPECT_EQ(t, kfi_recv(s[1].ep, mem + LEN, LEN, NULL, 0, ctx(n)), 0);
	EXPECT_EQ(t, kfi_send(s[0].ep, mem, LEN, NULL, 0, ctx(n + 1)), 0);
	if (has_feature(F_DEVICE)) {
		msleep(A_WHILE_MS);
		EXPECT_EQ(t, kfi_tx_size_left(s[0].ep), 3);
		EXPECT_EQ(t, kfi_rx_size_left(s[1].ep), 3);
	}
	completed(t, s[0].tx, ctx(n + 1), SENT);
	completed(t, s[1].rx, ctx(n), RECEIVED);
	EXPECT_EQ(t, kfi_tx_size_left(s[0].ep), 4);
	EXPECT_EQ(t, kfi_rx_size_left(s[1].ep), 4);
	EXPECT_EQ(t, kfi_cq_read(s[0].tx, &entry, 1), -KFI_EAGAIN);
	EXPECT(t, pattern_is(mem + LEN, LEN, n), "other bytes");
}

/* Closing a region waits for its registration, whoever reads meanwhile. */
static void region(struct kfi_test *t, struct ep_side *s, u8 *mem)
{
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, kfi_mr_reg(s->domain, mem, LEN, KFI_REMOTE_READ, 0, 0, 0, &mr, NULL), 0))
		return;
	EXPECT_EQ(t, kfi_mr_bind(mr, &s->ep->fid, 0), 0);
	EXPECT_EQ(t, kfi_mr_enable(mr), 0);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	/* Softirq, which the close has used, is done, and a read takes the device back. */
	synchronize_rcu();
	ep_nothing(t, s->tx);
}

void ep_polled_case(struct kfi_test *t)
{
	struct ep_pair *p = ep_connected(t, &polled);
	u8 *mem = kzalloc(2 * LEN, GFP_KERNEL);
	int i, end;

	/* The connection ends by either side, and by the close. */
	for (end = 0; p && EXPECT(t, mem, "no memory") && end < 3; end++) {
		for (i = 1; i < 3; i++) {
			pattern(mem, LEN, i);
			message(t, p, mem, i);
			region(t, &p->side[0], mem);
		}
		for (i = 0; i < 3; i++)
			EXPECT_EQ(t, kfi_recv(p->side[0].ep, mem, LEN, NULL, 0, ctx(i)), 0);
		if (end < 2) {
			EXPECT_EQ(t, kfi_shutdown(p->side[end].ep, 0), 0);
		} else {
			EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
			p->side[0].ep = NULL;
		}
		for (i = 0; i < 3; i++)
			cancelled(t, p->side[0].rx, ctx(i));
		ep_pair_close(t, p);
		p = end < 2 ? ep_connected(t, &polled) : NULL;
	}
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

static void called(struct kfid_cq *cq, void *context)
{
	atomic_inc(context);
}

/* A message, until it has come; and whether the handler was called @count times in all, which it is given time for. */
static bool sent_calls(struct ep_pair *p, u8 *mem, atomic_t *calls, int count)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);
	struct kfi_cq_data_entry entry;

	if (kfi_recv(p->side[1].ep, mem + LEN, LEN, NULL, 0, ctx(1)) ||
	    kfi_send(p->side[0].ep, mem, LEN, NULL, 0, ctx(2)) || poll(p->side[1].rx, &entry) != 1)
		return false;
	while (atomic_read(calls) < count && time_before(jiffies, end))
		msleep(1);
	/* Softirq, which has called the handler, is done, and a read takes the device back. */
	synchronize_rcu();
	return atomic_read(calls) == count;
}

/*
 * The handler of a polled queue is called for the first completion, and for the next one after a read that has found
 * less than it had room for. Other completions wait for a read. It is so, too, if the queue of receives is looked at.
 */
void ep_armed_case(struct kfi_test *t)
{
	struct ep_wants wants = polled;
	atomic_t calls = ATOMIC_INIT(0);
	struct ep_pair *p = NULL;
	u8 *mem;
	int i, n;

	wants.handler = called;
	wants.context = &calls;
	mem = kzalloc(2 * LEN, GFP_KERNEL);
	for (i = 0; EXPECT(t, mem, "no memory") && i < 6; i++) {
		/* Three times in each of two connections. */
		if (i % 3 == 0) {
			wants.rx_waits = i == 0;
			p = ep_connected(t, &wants);
			if (!p)
				break;
		}
		n = atomic_read(&calls) + 1;
		EXPECT(t, sent_calls(p, mem, &calls, n), "the handler was not called once");
		completed(t, p->side[0].tx, ctx(2), SENT);

		EXPECT(t, sent_calls(p, mem, &calls, n), "the handler was called before a short read");
		msleep(A_WHILE_MS);
		EXPECT_EQ(t, atomic_read(&calls), n);
		/* Nobody has looked. */
		if (has_feature(F_DEVICE) && wants.rx_waits)
			EXPECT_EQ(t, kfi_tx_size_left(p->side[0].ep), 3);
		completed(t, p->side[0].tx, ctx(2), SENT);
		ep_nothing(t, p->side[0].tx);
		ep_nothing(t, p->side[0].rx);
		/* A read that came too early has the handler called. */
		synchronize_rcu();
		if (i % 3 == 2)
			ep_pair_close(t, p);
	}
	kfree(mem);
}

/* A transfer that has ended at the device is no stall, however late it is read. */
void ep_unread_case(struct kfi_test *t)
{
	struct ep_wants wants = polled;
	struct ep_pair *p;
	u8 *mem;
	int i;

	if (!needs_feature(t, F_CM_BOUNDS))
		return;
	wants.stall = 1000;
	p = ep_connected(t, &wants);
	mem = kzalloc(2 * LEN, GFP_KERNEL);
	if (p && EXPECT(t, mem, "no memory")) {
		EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem + LEN, LEN, NULL, 0, ctx(1)), 0);
		EXPECT_EQ(t, kfi_send(p->side[0].ep, mem, LEN, NULL, 0, ctx(2)), 0);
		msleep(2 * wants.stall);
		for (i = 0; i < 2; i++) {
			struct ep_event e;
			u32 event;

			EXPECT_EQ(t, kfi_eq_read(p->side[i].eq, &event, &e, sizeof(e), 0), -KFI_EAGAIN);
		}
		completed(t, p->side[0].tx, ctx(2), SENT);
		completed(t, p->side[1].rx, ctx(1), RECEIVED);
	}
	if (p)
		ep_pair_close(t, p);
	kfree(mem);
}

#ifdef CONFIG_KPROBES

static int vector;

static int allocates(struct kprobe *probe, struct pt_regs *regs)
{
	WRITE_ONCE(vector, regs_get_kernel_argument(regs, 3));
	return 0;
}

/*
 * Each queue has the vector of the CPU that it was opened for. Two queues of one CPU, since queues of no CPU take the
 * vectors in turn.
 */
void ep_vector_case(struct kfi_test *t)
{
	struct kprobe probe = { .symbol_name = "__ib_alloc_cq", .pre_handler = allocates };
	int i;

	if (!needs_feature(t, F_DEVICE) || !EXPECT_EQ(t, register_kprobe(&probe), 0))
		return;
	for (i = 0; i < 2 * nr_cpu_ids; i++) {
		struct ep_wants wants = { .cpu = i / 2 + 1 };
		struct ep_pair *p = ep_listening(t, &wants);

		if (p)
			EXPECT_EQ(t, READ_ONCE(vector), i / 2);
		if (p)
			ep_pair_close(t, p);
	}
	unregister_kprobe(&probe);
}

#else

void ep_vector_case(struct kfi_test *t)
{
	ktap_skip(t, "no kprobes");
}

#endif
