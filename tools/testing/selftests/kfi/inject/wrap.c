// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_inject.ko: wrappers around the operations of one RDMA device.
 *
 * A device has a table of operations of its own, which can be written to. Callers read an entry of
 * it whenever they need it, in any context and under any lock. So a wrapper takes nothing but the
 * plan's spinlock. It may still be running when the table is as it was again.
 *
 * Lock order: @lock, which start and stop hold, is outermost; no wrapper takes it.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>
#include <rdma/ib_verbs.h>

#include "inject.h"

static DEFINE_MUTEX(lock);

/* The device that is wrapped, and what it does by itself. */
static struct ib_device *wrapped;
static typeof_member(struct ib_device, ops) saved;
static u32 saved_pages;

/* How many wrappers are running. */
static atomic_t inside;

static int begin(enum kfi_inject_op op)
{
	atomic_inc(&inside);
	return plan_ask(op);
}

static void end(enum kfi_inject_op op)
{
	plan_returned(op);
	if (atomic_dec_and_test(&inside))
		wake_up_var(&inside);
}

/* An operation that returns an errno: its parameters, and how they are called. */
#define WRAP(name, op, params, ...)						\
static int wrap_##name params							\
{										\
	int ret = begin(op);							\
										\
	if (ret == PLAN_GO)							\
		ret = saved.name(__VA_ARGS__);					\
	end(op);								\
	return ret;								\
}

WRAP(map_mr_sg, KFI_INJECT_MAP_MR_SG,
	(struct ib_mr *mr, struct scatterlist *sg, int nents, unsigned int *offset),
	mr, sg, nents, offset)
WRAP(create_cq, KFI_INJECT_CREATE_CQ,
	(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct uverbs_attr_bundle *attrs),
	cq, attr, attrs)
WRAP(create_srq, KFI_INJECT_CREATE_SRQ,
	(struct ib_srq *srq, struct ib_srq_init_attr *attr, struct ib_udata *udata), srq, attr, udata)
WRAP(alloc_pd, KFI_INJECT_ALLOC_PD, (struct ib_pd *pd, struct ib_udata *udata), pd, udata)
WRAP(dealloc_pd, KFI_INJECT_DEALLOC_PD, (struct ib_pd *pd, struct ib_udata *udata), pd, udata)

static int wrap_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	int ret = begin(KFI_INJECT_CREATE_QP);

	if (ret == PLAN_GO && device_refuses(attr))
		ret = -EINVAL;
	if (ret == PLAN_GO)
		ret = saved.create_qp(qp, attr, udata);
	if (!ret)
		device_gives(attr);
	end(KFI_INJECT_CREATE_QP);
	return ret;
}

static int wrap_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	int ret = begin(KFI_INJECT_DEREG_MR);

	if (ret == PLAN_GO)
		ret = saved.dereg_mr(mr, udata);
	mend_note_mr(mr, ret);
	end(KFI_INJECT_DEREG_MR);
	return ret;
}

static int wrap_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	int ret = begin(KFI_INJECT_MODIFY_QP);

	if (ret == PLAN_GO)
		ret = saved.modify_qp(qp, attr, mask, udata);
	if (!ret && mask & IB_QP_STATE)
		defer_end(qp, saved.post_send);
	end(KFI_INJECT_MODIFY_QP);
	return ret;
}

static int wrap_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	int ret = begin(KFI_INJECT_DESTROY_QP);

	defer_end(qp, NULL);
	if (ret == PLAN_GO)
		ret = saved.destroy_qp(qp, udata);
	mend_note_qp(qp, ret);
	end(KFI_INJECT_DESTROY_QP);
	return ret;
}

static struct ib_mr *wrap_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	int ret = begin(KFI_INJECT_ALLOC_MR);
	struct ib_mr *mr = ERR_PTR(ret);

	if (ret == PLAN_GO)
		mr = saved.alloc_mr(pd, type, max_num_sg);
	end(KFI_INJECT_ALLOC_MR);
	return mr;
}

/* Which operation the posting of @wr is. */
static enum kfi_inject_op op_of(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_REG_MR:
		return KFI_INJECT_POST_REG;
	case IB_WR_LOCAL_INV:
		return KFI_INJECT_POST_INV;
	default:
		return KFI_INJECT_POST_TO_PEER;
	}
}

/*
 * Asks about the other requests of a list, until one must not be posted; the list ends before that
 * one. The poster has links of its own.
 */
static const struct ib_send_wr *cut(enum kfi_inject_op op, const struct ib_send_wr *wr, int *ret)
{
	struct ib_send_wr *last;

	for (last = (struct ib_send_wr *)wr; last->next; last = last->next) {
		const struct ib_send_wr *bad = last->next;

		*ret = plan_ask(op);
		plan_returned(op);
		if (*ret == PLAN_GO)
			continue;
		last->next = NULL;
		return bad;
	}
	return NULL;
}

/* The number in a key with this bit flipped is too large for any region. */
#define NO_KEY	BIT(30)

/* Posts requests. The device fails the first one. The poster finds them as they were. */
static int post_spoiled(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad_wr)
{
	struct ib_send_wr *first = (struct ib_send_wr *)wr;
	u32 *key = &first->ex.invalidate_rkey;
	int ret;

	if (wr->opcode == IB_WR_REG_MR)
		key = &container_of(first, struct ib_reg_wr, wr)->key;
	*key ^= NO_KEY;
	ret = saved.post_send(qp, wr, bad_wr);
	*key ^= NO_KEY;
	return ret;
}

/* Regions that are leaked, if their owner has it that the device may register them yet. */
static void note_lost(const struct ib_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr->opcode == IB_WR_REG_MR)
			mend_note_mr(reg_wr(wr)->mr, -EIO);
}

static int wrap_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad_wr)
{
	enum kfi_inject_op op = op_of(wr);
	const struct ib_send_wr *bad = NULL;
	int ret, later = 0;

	/* The connection manager's are its own affair. */
	if (qp->qp_type == IB_QPT_GSI)
		return saved.post_send(qp, wr, bad_wr);
	ret = begin(op);
	if (ret == PLAN_GO) {
		bad = cut(op == KFI_INJECT_POST_TO_PEER ? op : KFI_INJECT_POST_NEXT, wr, &later);
		device_sees(wr);
		ret = saved.post_send(qp, wr, bad_wr);
		if (bad && !ret) {
			*bad_wr = bad;
			ret = later;
		}
	} else if (ret == PLAN_LOSE) {
		ret = 0;
		if (op == KFI_INJECT_POST_REG)
			note_lost(wr);
	} else if (ret == PLAN_SPOIL) {
		ret = post_spoiled(qp, wr, bad_wr);
	} else {
		if (ret == PLAN_DEFER)
			ret = defer(qp, wr);
		if (ret)
			*bad_wr = wr;
	}
	end(op);
	return ret;
}

/* A list of receive requests: none of it is posted if that fails. */
#define WRAP_RECEIVES(name, op, on)						\
static int wrap_##name(on, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr) \
{										\
	int ret = begin(op);							\
										\
	if (ret == PLAN_GO)							\
		ret = saved.name(to, wr, bad_wr);				\
	else									\
		*bad_wr = wr;							\
	end(op);								\
	return ret;								\
}

WRAP_RECEIVES(post_recv, KFI_INJECT_POST_RECV, struct ib_qp *to)
WRAP_RECEIVES(post_srq_recv, KFI_INJECT_POST_SRQ_RECV, struct ib_srq *to)

static int wrap_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	int ret;

	if (in_serving_softirq())
		return saved.poll_cq(cq, num_entries, wc);
	ret = begin(KFI_INJECT_POLL_CQ);
	if (ret == PLAN_GO)
		ret = saved.poll_cq(cq, num_entries, wc);
	else if (ret == PLAN_LOSE)
		ret = 0;
	end(KFI_INJECT_POLL_CQ);
	return ret;
}

static int wrap_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int ret = 0;

	if (!in_serving_softirq())
		return saved.req_notify_cq(cq, flags);
	begin(KFI_INJECT_NOTIFY_CQ);
	/* A test that fails is more than a kernel that dies of it. */
	if (linger(cq))
		ret = saved.req_notify_cq(cq, flags);
	end(KFI_INJECT_NOTIFY_CQ);
	return ret;
}

static int wrap_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	int ret;

	begin(KFI_INJECT_DESTROY_CQ);
	linger_destroy(cq);
	ret = saved.destroy_cq(cq, udata);
	end(KFI_INJECT_DESTROY_CQ);
	return ret;
}

/* The device has the drain of kfi_inject_own_drain(), and not its driver's. */
static bool own_drain;

static void wrap_drain(struct ib_qp *qp, void (*drain)(struct ib_qp *qp))
{
	if (begin(KFI_INJECT_DRAIN) == PLAN_GO && drain && !READ_ONCE(own_drain))
		drain(qp);
	end(KFI_INJECT_DRAIN);
}

static void wrap_drain_sq(struct ib_qp *qp)
{
	wrap_drain(qp, saved.drain_sq);
}

static void wrap_drain_rq(struct ib_qp *qp)
{
	wrap_drain(qp, saved.drain_rq);
}

#define SWAP_IN(ops, name)							\
do {										\
	if (saved.name)								\
		WRITE_ONCE((ops)->name, wrap_##name);				\
} while (0)

#define PUT_BACK(ops, name)	WRITE_ONCE((ops)->name, saved.name)

#define FOR_EACH_NAME(f, ops)							\
do {										\
	f(ops, post_send);							\
	f(ops, post_recv);							\
	f(ops, post_srq_recv);							\
	f(ops, alloc_mr);							\
	f(ops, dereg_mr);							\
	f(ops, map_mr_sg);							\
	f(ops, create_qp);							\
	f(ops, modify_qp);							\
	f(ops, destroy_qp);							\
	f(ops, create_cq);							\
	f(ops, create_srq);							\
	f(ops, alloc_pd);							\
	f(ops, dealloc_pd);							\
	f(ops, poll_cq);							\
	f(ops, req_notify_cq);							\
	f(ops, destroy_cq);							\
	f(ops, drain_sq);							\
	f(ops, drain_rq);							\
} while (0)

/* No operations: what consumers read of the device. */
static void put_back_identity(struct ib_device *dev)
{
	WRITE_ONCE(dev->ops.driver_id, saved.driver_id);
	WRITE_ONCE(dev->attrs.max_fast_reg_page_list_len, saved_pages);
}

void kfi_inject_driver(enum rdma_driver_id id)
{
	guard(mutex)(&lock);
	if (!WARN_ON_ONCE(!wrapped))
		WRITE_ONCE(wrapped->ops.driver_id, id);
}
EXPORT_SYMBOL_GPL(kfi_inject_driver);

void kfi_inject_pages(u32 pages)
{
	guard(mutex)(&lock);
	if (!WARN_ON_ONCE(!wrapped))
		WRITE_ONCE(wrapped->attrs.max_fast_reg_page_list_len, pages);
}
EXPORT_SYMBOL_GPL(kfi_inject_pages);

int kfi_inject_start(struct ib_device *dev)
{
	guard(mutex)(&lock);
	if (wrapped)
		return -EBUSY;
	__module_get(THIS_MODULE);
	get_device(&dev->dev);
	wrapped = dev;
	plan_clear();
	device_clear();
	mend_forget();
	defer_forget();
	own_drain = false;
	saved = dev->ops;
	saved_pages = dev->attrs.max_fast_reg_page_list_len;
	/* The wrappers find what they call. */
	smp_wmb();
	FOR_EACH_NAME(SWAP_IN, &dev->ops);
	return 0;
}
EXPORT_SYMBOL_GPL(kfi_inject_start);

void kfi_inject_own_drain(void)
{
	guard(mutex)(&lock);
	if (WARN_ON_ONCE(!wrapped))
		return;
	WRITE_ONCE(own_drain, true);
	WRITE_ONCE(wrapped->ops.drain_sq, wrap_drain_sq);
	WRITE_ONCE(wrapped->ops.drain_rq, wrap_drain_rq);
}
EXPORT_SYMBOL_GPL(kfi_inject_own_drain);

/* Waits until nobody is on the way into a wrapper, or out of one, in any context. */
static void synchronize_callers(void)
{
	synchronize_rcu();
	synchronize_rcu_tasks();
}

void kfi_inject_stop(struct ib_device *dev)
{
	guard(mutex)(&lock);
	if (!wrapped || wrapped != dev)
		return;
	FOR_EACH_NAME(PUT_BACK, &dev->ops);
	put_back_identity(dev);
	plan_release_all();
	/* A caller that had found a wrapper before has been counted, and has left it again. */
	synchronize_callers();
	plan_release_all();
	wait_var_event(&inside, !atomic_read(&inside));
	synchronize_callers();
	wrapped = NULL;
	put_device(&dev->dev);
	module_put(THIS_MODULE);
}
EXPORT_SYMBOL_GPL(kfi_inject_stop);

/* Frees the notes of the last device. Tests read them until this module goes. */
static void __exit inject_exit(void)
{
	device_clear();
	mend_forget();
}
module_exit(inject_exit);

MODULE_DESCRIPTION("RDMA operations that fail, wait or get lost for tests of kfabric");
MODULE_LICENSE("GPL");
