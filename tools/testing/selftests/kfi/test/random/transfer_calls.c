// SPDX-License-Identifier: GPL-2.0
/*
 * Random transfers. Local memory is mostly in the areas, and peers reach nothing but open regions. So no
 * transfer may change a byte outside of the areas.
 */
#include "random.h"
#include "errnos.h"

/*
 * Selects a place in the region of the peer of an endpoint. Seldom, it selects a place in a region of either
 * side, which may be closed, a place beside the region, or a key of no region: a refused access ends the connection.
 */
static struct random_target some_place(struct random_world *w, u16 ep, u16 a)
{
	const struct random_target *closed = &w->closed[(a >> 5) % RANDOM_OBJECTS];
	struct kfid_mr *mr = w->object[MR][!(ep % 2)];
	struct random_target at = { a * 0x100010001ULL, a };

	if (a % 32 == 0)
		mr = random_any(w, MR, a >> 5);
	if (!mr && (closed->addr || closed->key))
		return *closed;
	if (IS_ERR_OR_NULL(mr))
		return at;
	at = random_target(mr);
	at.addr += (a >> 3) % PAGE_SIZE;
	if (a % 256 == 1)
		at.addr = U64_MAX - (a >> 5);
	if (a % 256 == 2)
		at.addr -= PAGE_SIZE;
	if (a % 256 == 3)
		at.key ^= BIT_ULL(a >> 8 & 63);
	return at;
}

/* The same for an atomic operation, mostly aligned. */
static struct random_target some_word(struct random_world *w, u16 ep, u16 a)
{
	struct random_target at = some_place(w, ep, a);

	if (a % 64 != 8)
		at.addr &= ~7ULL;
	return at;
}

/* Endpoints, and seldom a shared context. */
static struct kfid_ep *some_ep(struct random_world *w, u16 a)
{
	return random_object(w, a % 16 == 15 ? SRX : EP, a);
}

static void **some_descs(struct random_world *w, u16 a)
{
	int i;

	for (i = 0; i < RANDOM_LIST; i++)
		w->desc[i] = random_desc(w, a + i);
	return a % 2 ? w->desc : NULL;
}

static void *context(const struct random_world *w, u16 a)
{
	return (void *)w->room + a % sizeof(w->room);
}

/* Receives are mostly longer than messages: one that is too long ends the connection. */
static ssize_t recv_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t len;
	void *buf = random_buffer(w, a[1], a[2], &len);

	return kfi_recv(some_ep(w, a[0]), buf, a[5] % 64 ? random_longer(len) : len, random_desc(w, a[3]), 0,
			context(w, a[4]));
}

#define ONE_BUFFER(_name, ...)								\
static ssize_t _name##_call(struct random_world *w, const u16 a[STEP_NUMBERS])		\
{											\
	size_t len;									\
	void *buf = random_buffer(w, a[1], a[2], &len);					\
	struct random_target at = some_place(w, a[0], a[4]);						\
											\
	(void)at;									\
	return kfi_##_name(some_ep(w, a[0]), buf, len, __VA_ARGS__);			\
}

ONE_BUFFER(send, random_desc(w, a[3]), 0, context(w, a[4]))
ONE_BUFFER(inject, 0)
ONE_BUFFER(senddata, random_desc(w, a[3]), a[4], 0, context(w, a[4]))
ONE_BUFFER(injectdata, a[4] % 8 ? a[4] : U64_MAX, 0)
ONE_BUFFER(read, random_desc(w, a[3]), 0, at.addr, at.key, context(w, a[5]))
ONE_BUFFER(write, random_desc(w, a[3]), 0, at.addr, at.key, context(w, a[5]))
ONE_BUFFER(inject_write, 0, at.addr, at.key)
ONE_BUFFER(writedata, random_desc(w, a[3]), a[5], 0, at.addr, at.key, context(w, a[5]))

static ssize_t recvv_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t count = random_kvecs(w, a[1], a[2]), i;

	for (i = 0; i < count; i++)
		w->kv[i].iov_len = random_longer(w->kv[i].iov_len);
	return kfi_recvv(some_ep(w, a[0]), a[5] % 64 ? w->kv : NULL, some_descs(w, a[3]), count, 0, context(w, a[4]));
}

#define LIST(_name, _list, _made, ...)							\
static ssize_t _name##_call(struct random_world *w, const u16 a[STEP_NUMBERS])		\
{											\
	size_t count = _made(w, a[1], a[2]);						\
	struct random_target at = some_place(w, a[0], a[4]);						\
											\
	(void)at;									\
	return kfi_##_name(some_ep(w, a[0]), a[5] % 64 ? w->_list : NULL, some_descs(w, a[3]), count, 0, \
			   __VA_ARGS__);						\
}

LIST(sendv, kv, random_kvecs, context(w, a[4]))
LIST(readv, kv, random_kvecs, at.addr, at.key, context(w, a[5]))
LIST(writev, kv, random_kvecs, at.addr, at.key, context(w, a[5]))
LIST(recvbv, bv, random_bvecs, context(w, a[4]))
LIST(sendbv, bv, random_bvecs, context(w, a[4]))
LIST(readbv, bv, random_bvecs, at.addr, at.key, context(w, a[5]))
LIST(writebv, bv, random_bvecs, at.addr, at.key, context(w, a[5]))

static struct kfi_msg *some_message(struct random_world *w, const u16 *a, struct kfi_msg *msg)
{
	*msg = (struct kfi_msg) {
		.type = a[4] % 16 ? KFI_KVEC : a[4],
		.msg_iov = w->kv,
		.iov_count = random_kvecs(w, a[1], a[2]),
		.desc = some_descs(w, a[3]),
		.context = context(w, a[4]),
		.data = a[4],
	};
	if (msg->type != KFI_KVEC) {
		msg->type = KFI_BVEC;
		msg->msg_biov = w->bv;
		msg->iov_count = random_bvecs(w, a[1], a[2]);
	}
	return a[4] % 128 == 1 ? NULL : msg;
}

#define MESSAGE_FLAGS	(KFI_COMPLETION | KFI_MORE | KFI_FENCE | KFI_INJECT | KFI_REMOTE_CQ_DATA | KFI_DELIVERY_COMPLETE)

static ssize_t recvmsg_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_msg msg, *given = some_message(w, a, &msg);
	size_t i;

	for (i = 0; i < msg.iov_count && msg.type == KFI_KVEC; i++)
		w->kv[i].iov_len = random_longer(w->kv[i].iov_len);
	return kfi_recvmsg(some_ep(w, a[0]), given, random_flags(a[5], KFI_COMPLETION | KFI_MORE));
}

static ssize_t sendmsg_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_msg msg;

	return kfi_sendmsg(some_ep(w, a[0]), some_message(w, a, &msg), random_flags(a[5], MESSAGE_FLAGS));
}

static ssize_t access_message(struct random_world *w, const u16 a[STEP_NUMBERS], bool reads)
{
	struct kfi_rma_iov iov[20];
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = w->kv,
		.iov_count = random_kvecs(w, a[1], a[2]),
		.desc = some_descs(w, a[3]),
		.rma_iov = a[4] % 64 ? iov : NULL,
		.rma_iov_count = a[4] % 8 ? a[4] % 8 : a[4] % ARRAY_SIZE(iov),
		.context = context(w, a[4]),
		.data = a[4],
	};
	size_t i, left = 0;

	for (i = 0; i < msg.iov_count; i++)
		left += w->kv[i].iov_len;
	for (i = 0; i < msg.rma_iov_count; i++) {
		struct random_target at = some_place(w, a[0], a[4] + i);
		size_t len = i + 1 < msg.rma_iov_count ? left / 2 : left + (a[5] % 64 == 1);

		iov[i] = (struct kfi_rma_iov) { .addr = at.addr, .len = len, .key = at.key };
		left -= len;
	}
	return reads ? kfi_readmsg(some_ep(w, a[0]), &msg, random_flags(a[5], MESSAGE_FLAGS & ~KFI_INJECT)) :
		       kfi_writemsg(some_ep(w, a[0]), &msg, random_flags(a[5], MESSAGE_FLAGS));
}

static ssize_t readmsg_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return access_message(w, a, true);
}

static ssize_t writemsg_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return access_message(w, a, false);
}

/* Selects eight bytes of an area, aligned or not, or an invalid address. */
static void *result(struct random_world *w, u16 a)
{
	if (a % 8 == 0)
		return a % 16 ? NULL : (void *)PAGE_SIZE;
	return w->area[0] + PAGE_SIZE + ((a * 8) & (AREA_SIZE - 8)) + (a % 16 == 1);
}

static enum kfi_datatype datatype(u16 a)
{
	return a % 8 ? KFI_UINT64 : a >> 3;
}

static enum kfi_op operation(u16 a)
{
	static const enum kfi_op ops[] = { KFI_SUM, KFI_ATOMIC_READ, KFI_ATOMIC_WRITE, KFI_CSWAP };

	return a % 8 ? ops[a >> 3 & 3] : a >> 3;
}

static ssize_t atomic_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct random_target at = some_word(w, a[0], a[1]);
	u64 operand = a[2];

	return kfi_atomic(some_ep(w, a[0]), a[2] % 64 ? &operand : NULL, a[3] % 16 ? 1 : a[3], NULL, 0, at.addr, at.key,
			  datatype(a[4]), operation(a[5]), context(w, a[3]));
}

static ssize_t fetch_atomic_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct random_target at = some_word(w, a[0], a[1]);
	u64 operand = a[2];

	return kfi_fetch_atomic(some_ep(w, a[0]), a[2] % 64 ? &operand : NULL, a[3] % 16 ? 1 : a[3], NULL,
				result(w, a[3]), random_desc(w, a[2]), 0, at.addr, at.key, datatype(a[4]),
				operation(a[5]), context(w, a[3]));
}

static ssize_t compare_atomic_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct random_target at = some_word(w, a[0], a[1]);
	u64 operand = a[2], compare = a[3];

	return kfi_compare_atomic(some_ep(w, a[0]), a[2] % 64 ? &operand : NULL, a[3] % 16 ? 1 : a[3], NULL,
				  a[2] % 64 == 1 ? NULL : &compare, NULL, result(w, a[3]), random_desc(w, a[2]), 0,
				  at.addr, at.key, datatype(a[4]), operation(a[5]), context(w, a[3]));
}

static ssize_t query_atomic_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_atomic_attr attr;

	return kfi_query_atomic(random_object(w, DOMAIN, a[0]), datatype(a[1]), operation(a[2]),
				a[3] % 16 ? &attr : NULL, random_flags(a[4], KFI_FETCH_ATOMIC | KFI_COMPARE_ATOMIC));
}

static ssize_t atomicvalid_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t count;

	return kfi_atomicvalid(some_ep(w, a[0]), datatype(a[1]), operation(a[2]), a[3] % 16 ? &count : NULL);
}

static ssize_t cancel_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_cancel(random_fid(w, a[0]), context(w, a[1]));
}

static ssize_t rx_size_left_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_rx_size_left(some_ep(w, a[0]));
}

static ssize_t tx_size_left_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_tx_size_left(some_ep(w, a[0]));
}

const struct random_call random_transfer_calls[] = {
	CALL(recv), CALL(send), CALL(inject), CALL(senddata), CALL(injectdata), CALL(read), CALL(write),
	CALL(inject_write), CALL(writedata), CALL(recvv), CALL(sendv), CALL(readv), CALL(writev), CALL(recvbv),
	CALL(sendbv), CALL(readbv), CALL(writebv), CALL(recvmsg), CALL(sendmsg), CALL(readmsg), CALL(writemsg),
	CALL(atomic), CALL(fetch_atomic), CALL(compare_atomic), CALL(query_atomic), CALL(atomicvalid), CALL(cancel),
	CALL(rx_size_left), CALL(tx_size_left), {}
};
