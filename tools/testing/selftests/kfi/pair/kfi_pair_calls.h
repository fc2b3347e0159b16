/* SPDX-License-Identifier: GPL-2.0 */
/* The calls of each kind as one, by a number: so that each can be tried from both sides. */
#ifndef KFI_PAIR_CALLS_H
#define KFI_PAIR_CALLS_H

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/uio.h>

#include <kfi_endpoint.h>
#include <kfi_rma.h>

#define PAIR_SENDS	8
#define PAIR_RECVS	4
#define PAIR_READS	4
#define PAIR_WRITES	8

/* Sends and writes alike: do remote CQ data go with it, and is the buffer free at once? */
static inline bool pair_call_has_data(unsigned int call)
{
	return call == 4 || call == 5 || call == 7;
}

static inline bool pair_call_injects(unsigned int call)
{
	return call >= 6;
}

/* The peer's memory as a list of two pieces. The first may be empty. */
static inline void pair_remote(struct kfi_rma_iov *iov, u64 addr, u64 key, size_t len)
{
	size_t first = len / 3;

	iov[0] = (struct kfi_rma_iov){ .addr = addr, .len = first, .key = key };
	iov[1] = (struct kfi_rma_iov){ .addr = addr + first, .len = len - first, .key = key };
}

/* A buffer as lists of two pieces, or of one if it is that short. */
struct pair_lists {
	struct kvec kv[2];
	struct bio_vec bv[2];
	size_t count;
};

static inline void pair_lists(struct pair_lists *l, u8 *mem, size_t len)
{
	size_t first = len / 2;

	l->count = 0;
	for (; len; mem += first, len -= first, first = len) {
		first = first ?: len;
		l->kv[l->count] = (struct kvec){ .iov_base = mem, .iov_len = first };
		bvec_set_page(&l->bv[l->count], virt_to_page(mem), first, offset_in_page(mem));
		l->count++;
	}
}

static inline ssize_t pair_send(struct kfid_ep *ep, unsigned int call, void *mem, size_t len,
				u64 data, void *context)
{
	struct kfi_msg msg = { .type = KFI_KVEC, .context = context, .data = data };
	struct pair_lists l;

	pair_lists(&l, mem, len);
	msg.iov_count = l.count;
	switch (call) {
	case 0:
		return kfi_send(ep, mem, len, NULL, 0, context);
	case 1:
		return kfi_sendv(ep, l.kv, NULL, l.count, 0, context);
	case 2:
		return kfi_sendbv(ep, l.bv, NULL, l.count, 0, context);
	case 3:
		msg.msg_iov = l.kv;
		return kfi_sendmsg(ep, &msg, KFI_COMPLETION);
	case 4:
		return kfi_senddata(ep, mem, len, NULL, data, 0, context);
	case 5:
		msg.type = KFI_BVEC;
		msg.msg_biov = l.bv;
		return kfi_sendmsg(ep, &msg, KFI_COMPLETION | KFI_REMOTE_CQ_DATA);
	case 6:
		return kfi_inject(ep, mem, len, 0);
	default:
		return kfi_injectdata(ep, mem, len, data, 0);
	}
}

static inline ssize_t pair_recv(struct kfid_ep *ep, unsigned int call, void *mem, size_t len,
				void *context)
{
	struct kfi_msg msg = { .type = KFI_BVEC, .context = context };
	struct pair_lists l;

	pair_lists(&l, mem, len);
	switch (call) {
	case 0:
		return kfi_recv(ep, mem, len, NULL, 0, context);
	case 1:
		return kfi_recvv(ep, l.kv, NULL, l.count, 0, context);
	case 2:
		return kfi_recvbv(ep, l.bv, NULL, l.count, 0, context);
	default:
		msg.msg_biov = l.bv;
		msg.iov_count = l.count;
		return kfi_recvmsg(ep, &msg, KFI_COMPLETION);
	}
}

static inline ssize_t pair_read(struct kfid_ep *ep, unsigned int call, void *mem, size_t len,
				u64 addr, u64 key, void *context)
{
	struct kfi_rma_iov remote[2];
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.rma_iov = remote,
		.rma_iov_count = 2,
		.context = context,
	};
	struct pair_lists l;

	pair_lists(&l, mem, len);
	pair_remote(remote, addr, key, len);
	switch (call) {
	case 0:
		return kfi_read(ep, mem, len, NULL, 0, addr, key, context);
	case 1:
		return kfi_readv(ep, l.kv, NULL, l.count, 0, addr, key, context);
	case 2:
		return kfi_readbv(ep, l.bv, NULL, l.count, 0, addr, key, context);
	default:
		msg.msg_iov = l.kv;
		msg.iov_count = l.count;
		return kfi_readmsg(ep, &msg, KFI_COMPLETION);
	}
}

static inline ssize_t pair_write(struct kfid_ep *ep, unsigned int call, void *mem, size_t len,
				 u64 data, u64 addr, u64 key, void *context)
{
	struct kfi_rma_iov remote[2];
	struct kfi_msg_rma msg = {
		.type = KFI_BVEC,
		.rma_iov = remote,
		.rma_iov_count = 2,
		.context = context,
		.data = data,
	};
	struct pair_lists l;

	pair_lists(&l, mem, len);
	pair_remote(remote, addr, key, len);
	msg.msg_biov = l.bv;
	msg.iov_count = l.count;
	switch (call) {
	case 0:
		return kfi_write(ep, mem, len, NULL, 0, addr, key, context);
	case 1:
		return kfi_writev(ep, l.kv, NULL, l.count, 0, addr, key, context);
	case 2:
		return kfi_writebv(ep, l.bv, NULL, l.count, 0, addr, key, context);
	case 3:
		return kfi_writemsg(ep, &msg, KFI_COMPLETION);
	case 4:
		return kfi_writedata(ep, mem, len, NULL, data, 0, addr, key, context);
	case 5:
		return kfi_writemsg(ep, &msg, KFI_COMPLETION | KFI_REMOTE_CQ_DATA);
	case 6:
		return kfi_inject_write(ep, mem, len, 0, addr, key);
	default:
		return kfi_inject_writedata(ep, mem, len, data, 0, addr, key);
	}
}

#endif /* KFI_PAIR_CALLS_H */
