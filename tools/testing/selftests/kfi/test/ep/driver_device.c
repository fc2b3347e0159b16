// SPDX-License-Identifier: GPL-2.0
/*
 * Drivers that take the attributes of a queue pair in another way than rxe: they refuse some, or write back
 * less. Drivers that do not report the last receive of a queue pair that shares its receives.
 */
#include <linux/kprobes.h>

#include "driver.h"
#include "kinds.h"
#include "shared.h"

#define RECEIVED	(KFI_MSG | KFI_RECV)

/* The largest injected message arrives, although the caller changes its buffer at once. */
static void inject_most(struct kfi_test *t, struct ep_pair *p, u8 *mem)
{
	size_t most = p->info->tx_attr->inject_size;
	struct kfi_cq_data_entry entry;

	if (!EXPECT(t, most <= EP_KINDS_LEN / 2, "inject_size is %zu", most))
		return;
	pattern(mem, most, 5);
	memset(mem + EP_KINDS_LEN / 2, 0, most);
	EXPECT_EQ(t, kfi_recv(p->side[1].ep, mem + EP_KINDS_LEN / 2, most, NULL, 0, mem), 0);
	EXPECT_EQ(t, kfi_inject(p->side[0].ep, mem, most, 0), 0);
	memset(mem, 0, most);
	if (ep_completed(t, p->side[1].rx, mem, RECEIVED, &entry))
		EXPECT_EQ(t, entry.len, most);
	EXPECT(t, pattern_is(mem + EP_KINDS_LEN / 2, most, 5), "other bytes were injected");
}

/* A transfer of each kind. */
static void all_kinds(struct kfi_test *t, struct ep_pair *p)
{
	u8 *mem = kzalloc(EP_KINDS_LEN, GFP_KERNEL);
	struct kfid_mr *mr = NULL;
	unsigned int kind;

	if (EXPECT(t, mem, "no memory") && EXPECT_EQ(t, ep_kinds_region(p, mem, &mr), 0)) {
		for (kind = 1; kind < EP_KINDS && !t->failures; kind++) {
			if (ep_kind_needs_receive(kind))
				EXPECT_EQ(t, ep_kind_post(p, mem, mr, 0), 0);
			EXPECT_EQ(t, ep_kind_post(p, mem, mr, kind), 0);
			ep_kind_ends(t, p, mem, mr, kind);
		}
		if (!t->failures)
			inject_most(t, p, mem);
	}
	/* After a failure, requests may still be under way. */
	EXPECT_EQ(t, kfi_close(&p->side[0].ep->fid), 0);
	p->side[0].ep = NULL;
	if (mr)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	EXPECT_EQ(t, kfi_close(&p->side[1].ep->fid), 0);
	p->side[1].ep = NULL;
	kfree(mem);
}

/* A device whose driver takes attributes like this one has a domain, and connections that transfer. */
static void transfers_as(struct kfi_test *t, const struct kfi_inject_device *as)
{
	struct ep_wants wants = { .mr_mode = EP_MODE, .caps = KFI_MSG | KFI_RMA | KFI_ATOMIC };
	struct ep_pair *before = ep_listening(t, &wants), *p = NULL;
	struct ib_device *dev = before ? driver_wrap(t, &before->side[0]) : NULL;

	if (dev) {
		kfi_inject_device(as);
		p = ep_connected(t, &wants);
	}
	if (p) {
		all_kinds(t, p);
		EXPECT_EQ(t, kfi_inject_misread(), 0);
		ep_pair_close(t, p);
	}
	if (dev)
		kfi_inject_stop(dev);
	if (before)
		ep_pair_close(t, before);
}

/* hns, erdma and ionic have no receive queue of no requests; mlx4 has none beside a shared one. */
void driver_receives_case(struct kfi_test *t)
{
	static const struct kfi_inject_device as = {
		.max_inline = U32_MAX, .gives_inline = U32_MAX, .counts_receives = true,
	};

	transfers_as(t, &as);
}

/* The same where endpoints share their receives. */
void driver_receives_shared_case(struct kfi_test *t)
{
	static const struct kfi_inject_device as = {
		.max_inline = U32_MAX, .gives_inline = U32_MAX, .counts_receives = true,
	};
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ib_device *dev = NULL;
	struct kfi_cq_data_entry entry;
	struct sharing s;
	u8 *from = kzalloc(LEN, GFP_KERNEL);

	if (sharing_begin(t, &s, &wants, 1) && EXPECT(t, from, "no memory"))
		dev = driver_wrap(t, &s.p->side[1]);
	if (dev) {
		kfi_inject_device(&as);
		if (sharing_join(t, &s, 0)) {
			pattern(from, LEN, 3);
			EXPECT_EQ(t, kfi_send(s.active[0], from, LEN, NULL, 0, from), 0);
			ep_completed(t, s.p->side[0].tx, from, KFI_MSG | KFI_SEND, NULL);
			ep_completed(t, s.p->side[1].rx, ctx(0), RECEIVED, &entry);
			EXPECT(t, pattern_is(s.buf, LEN, 3), "other bytes");
		}
		kfi_inject_stop(dev);
	}
	sharing_end(t, &s);
	kfree(from);
}

/* X722 (irdma) refuses more than 48 bytes. */
void driver_inline_refused_case(struct kfi_test *t)
{
	static const struct kfi_inject_device as = { .max_inline = 48, .gives_inline = U32_MAX };

	transfers_as(t, &as);
}

/* mlx4 and pvrdma copy nothing for the kernel, and write that back; others less than was asked for. */
void driver_inline_less_case(struct kfi_test *t)
{
	static const u32 gives[] = { 0, 8, 63 };
	int i;

	for (i = 0; i < ARRAY_SIZE(gives) && !t->failures; i++) {
		struct kfi_inject_device as = { .max_inline = U32_MAX, .gives_inline = gives[i] };

		transfers_as(t, &as);
	}
}

#ifdef CONFIG_KRETPROBES

/* How long the provider waits for IB_EVENT_QP_LAST_WQE_REACHED, in seconds. */
#define LAST_WAIT	10

/* The task whose waits count, their number, and whether they end as if the time were over. */
static struct task_struct *last_waiter;
static unsigned int last_waits;
static bool last_untold;

static int last_wait_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (READ_ONCE(last_waiter) != current ||
	    regs_get_kernel_argument(regs, 1) != secs_to_jiffies(LAST_WAIT))
		return 1;
	last_waits++;
	return 0;
}

static int last_wait_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (last_untold)
		regs_set_return_value(regs, 0);
	return 0;
}

/*
 * Closes two endpoints that share their receives. @waits are the numbers of waits for the last
 * receive that each is to make.
 */
static void close_sharing(struct kfi_test *t, enum rdma_driver_id id, bool untold,
			  const unsigned int waits[2])
{
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct sharing s;
	int i;

	if (sharing_begin(t, &s, &wants, 0) && sharing_join(t, &s, 0) && sharing_join(t, &s, 1)) {
		last_untold = untold;
		WRITE_ONCE(last_waiter, current);
		for (i = 0; i < 2; i++) {
			last_waits = 0;
			EXPECT_EQ(t, kfi_close(&s.passive[i]->fid), 0);
			s.passive[i] = NULL;
			EXPECT(t, last_waits == waits[i],
			       "driver %d, endpoint %d: %u waits, expected %u", id, i, last_waits,
			       waits[i]);
		}
		WRITE_ONCE(last_waiter, NULL);
	}
	sharing_end(t, &s);
}

/*
 * Closing an endpoint that shares its receives waits until the device has reported the last one. It
 * does not wait if the driver never reports that, or did not report it once in the same domain.
 */
void driver_last_shared_case(struct kfi_test *t)
{
	static const struct {
		enum rdma_driver_id id;
		bool untold;
		unsigned int waits[2];
	} rows[] = {
		{ RDMA_DRIVER_MLX5, false, { 1, 1 } },
		{ RDMA_DRIVER_MLX5, true, { 1, 0 } },
		{ RDMA_DRIVER_QEDR, false, { 0, 0 } },
		{ RDMA_DRIVER_IRDMA, false, { 0, 0 } },
	};
	struct kretprobe probe = {
		.kp.symbol_name = "wait_for_completion_timeout",
		.entry_handler = last_wait_begins,
		.handler = last_wait_ends,
	};
	struct ep_wants wants = { .mr_mode = EP_MODE };
	struct ib_device *dev;
	struct ep_pair *p;
	int i;

	if (!kfi_srq)
		return ktap_skip(t, "the device has no shared receive queues");
	/* The drivers of the table invalidate regions. The device must do so under their names. */
	if (!needs_feature(t, F_LOCAL_INV))
		return;
	p = ep_listening(t, &wants);
	dev = p ? driver_wrap(t, &p->side[1]) : NULL;
	if (dev && EXPECT_EQ(t, register_kretprobe(&probe), 0)) {
		for (i = 0; i < ARRAY_SIZE(rows) && !t->failures; i++) {
			kfi_inject_driver(rows[i].id);
			close_sharing(t, rows[i].id, rows[i].untold, rows[i].waits);
		}
		unregister_kretprobe(&probe);
	}
	if (dev)
		kfi_inject_stop(dev);
	if (p)
		ep_pair_close(t, p);
}

#else

void driver_last_shared_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no kretprobes");
}

#endif
