// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs and requests as devices of other drivers take them.
 *
 * All of it is read and written in any context.
 */
#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "inject.h"

static const struct kfi_inject_device own = { .max_inline = U32_MAX, .gives_inline = U32_MAX };

static struct kfi_inject_device device;
static atomic_t misread;

/*
 * The registered regions, by their local key: WRITABLE for peers, or writable for nobody any more.
 */
#define WRITABLE	xa_mk_value(1)
#define NOBODYS		xa_mk_value(0)
static DEFINE_XARRAY_FLAGS(regions, XA_FLAGS_LOCK_IRQ);

/* Returns the state before; NULL if no region has the key. */
static void *region_is(u32 lkey, bool is_writable)
{
	unsigned long flags;
	void *old;

	xa_lock_irqsave(&regions, flags);
	old = __xa_store(&regions, lkey, is_writable ? WRITABLE : NOBODYS, GFP_ATOMIC);
	xa_unlock_irqrestore(&regions, flags);
	if (xa_is_err(old))
		pr_err("kfi_inject: no memory to note a region\n");
	return old;
}

/**
 * device_clear() - The device is as its driver has it.
 */
void device_clear(void)
{
	device = own;
	atomic_set(&misread, 0);
	xa_destroy(&regions);
}

/**
 * device_refuses() - A queue pair is to be created.
 * @attr: The attributes that the caller asks for.
 *
 * Return: Whether the device refuses that.
 */
bool device_refuses(const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	if (cap->max_inline_data > READ_ONCE(device.max_inline))
		return true;
	if (!READ_ONCE(device.counts_receives))
		return false;
	return attr->srq ? cap->max_recv_wr : !cap->max_recv_wr || !cap->max_recv_sge;
}

/**
 * device_gives() - A queue pair has been created.
 * @attr: The attributes that the driver has written back; changed.
 */
void device_gives(struct ib_qp_init_attr *attr)
{
	attr->cap.max_inline_data = min(attr->cap.max_inline_data, READ_ONCE(device.gives_inline));
}

/* A device that doesn't copy so much takes the addresses for its own. */
static bool reads_elsewhere(const struct ib_send_wr *wr)
{
	u32 len = 0;
	int i;

	if (!(wr->send_flags & IB_SEND_INLINE))
		return false;
	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len > READ_ONCE(device.gives_inline);
}

/* A device whose reads are answered by key needs one that allows that, for each segment. */
static bool lets_nobody_write(const struct ib_send_wr *wr)
{
	int i;

	if (wr->opcode != IB_WR_RDMA_READ || !READ_ONCE(device.remote_sinks))
		return false;
	for (i = 0; i < wr->num_sge; i++)
		if (xa_load(&regions, wr->sg_list[i].lkey) != WRITABLE)
			return true;
	return false;
}

/**
 * device_sees() - Requests are posted.
 * @wr: The first of a list.
 */
void device_sees(const struct ib_send_wr *wr)
{
	for (; wr; wr = wr->next) {
		if (reads_elsewhere(wr) || lets_nobody_write(wr))
			atomic_inc(&misread);
		if (!READ_ONCE(device.remote_sinks))
			continue;
		if (wr->opcode == IB_WR_REG_MR &&
		    region_is(reg_wr(wr)->mr->lkey, reg_wr(wr)->access & IB_ACCESS_REMOTE_WRITE))
			atomic_inc(&misread);
		else if (wr->opcode == IB_WR_LOCAL_INV)
			region_is(wr->ex.invalidate_rkey, false);
	}
}

void kfi_inject_device(const struct kfi_inject_device *as)
{
	as = as ?: &own;
	WRITE_ONCE(device.counts_receives, as->counts_receives);
	WRITE_ONCE(device.max_inline, as->max_inline);
	WRITE_ONCE(device.gives_inline, as->gives_inline);
	WRITE_ONCE(device.remote_sinks, as->remote_sinks);
}
EXPORT_SYMBOL_GPL(kfi_inject_device);

unsigned int kfi_inject_misread(void)
{
	return atomic_read(&misread);
}
EXPORT_SYMBOL_GPL(kfi_inject_misread);

unsigned int kfi_inject_writable(void)
{
	unsigned long i, flags;
	unsigned int count = 0;
	void *entry;

	xa_lock_irqsave(&regions, flags);
	xa_for_each(&regions, i, entry)
		count += entry == WRITABLE;
	xa_unlock_irqrestore(&regions, flags);
	return count;
}
EXPORT_SYMBOL_GPL(kfi_inject_writable);
