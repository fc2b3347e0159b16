/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: operations that start by themselves when a counter reaches a value. Types only; they are
 * used by KFI_TRIGGER, and by KFI_QUEUE_WORK and its like.
 */
#ifndef _KFI_TRIGGER_H_
#define _KFI_TRIGGER_H_

#include "kfabric.h"
#include "kfi_atomic.h"
#include "kfi_endpoint.h"
#include "kfi_rma.h"
#include "kfi_tagged.h"

enum kfi_trigger_event {
	KFI_TRIGGER_THRESHOLD
};

/* The operations of struct kfi_deferred_work. */
enum kfi_op_type {
	KFI_OP_RECV,
	KFI_OP_SEND,
	KFI_OP_TRECV,
	KFI_OP_TSEND,
	KFI_OP_READ,
	KFI_OP_WRITE,
	KFI_OP_ATOMIC,
	KFI_OP_FETCH_ATOMIC,
	KFI_OP_COMPARE_ATOMIC,
	KFI_OP_CNTR_SET,
	KFI_OP_CNTR_ADD
};

struct kfi_trigger_threshold {
	struct kfid_cntr	*cntr;
	size_t			threshold;
};

struct kfi_op_msg {
	struct kfid_ep		*ep;
	struct kfi_msg		msg;
	u64			flags;
};

struct kfi_op_tagged {
	struct kfid_ep		*ep;
	struct kfi_msg_tagged	msg;
	u64			flags;
};

struct kfi_op_rma {
	struct kfid_ep		*ep;
	struct kfi_msg_rma	msg;
	u64			flags;
};

struct kfi_op_atomic {
	struct kfid_ep		*ep;
	struct kfi_msg_atomic	msg;
	u64			flags;
};

struct kfi_op_fetch_atomic {
	struct kfid_ep		*ep;
	struct kfi_msg_atomic	msg;
	struct kfi_msg_fetch	fetch;
	u64			flags;
};

struct kfi_op_compare_atomic {
	struct kfid_ep		*ep;
	struct kfi_msg_atomic	msg;
	struct kfi_msg_fetch	fetch;
	struct kfi_msg_compare	compare;
	u64			flags;
};

struct kfi_op_cntr {
	struct kfid_cntr	*cntr;
	u64			value;
};

/**
 * struct kfi_triggered_context - The context of an operation with KFI_TRIGGER, under KFI_CONTEXT.
 * @event_type: The event that starts it.
 * @trigger: When that is.
 * @trigger.threshold: When a counter has reached a value.
 * @trigger.internal: As large as struct kfi_context.
 */
struct kfi_triggered_context {
	enum kfi_trigger_event		event_type;
	union {
		struct kfi_trigger_threshold	threshold;
		void				*internal[3];
	} trigger;
};

/**
 * struct kfi_triggered_context2 - The context of an operation with KFI_TRIGGER, under KFI_CONTEXT2.
 * @event_type: The event that starts it.
 * @trigger: When that is.
 * @trigger.threshold: When a counter has reached a value.
 * @trigger.internal: As large as struct kfi_context2.
 */
struct kfi_triggered_context2 {
	enum kfi_trigger_event		event_type;
	union {
		struct kfi_trigger_threshold	threshold;
		void				*internal[7];
	} trigger;
};

/**
 * struct kfi_deferred_work - An operation for KFI_QUEUE_WORK.
 * @context: The provider's, until the work is done.
 * @threshold: The value of @triggering_cntr that starts it.
 * @triggering_cntr: The counter that starts it.
 * @completion_cntr: The counter that counts its end, or NULL.
 * @op_type: The operation.
 * @op: The operation, by @op_type.
 * @op.msg: For KFI_OP_RECV and KFI_OP_SEND.
 * @op.tagged: For KFI_OP_TRECV and KFI_OP_TSEND.
 * @op.rma: For KFI_OP_READ and KFI_OP_WRITE.
 * @op.atomic: For KFI_OP_ATOMIC.
 * @op.fetch_atomic: For KFI_OP_FETCH_ATOMIC.
 * @op.compare_atomic: For KFI_OP_COMPARE_ATOMIC.
 * @op.cntr: For KFI_OP_CNTR_SET and KFI_OP_CNTR_ADD.
 */
struct kfi_deferred_work {
	struct kfi_context2	context;
	u64			threshold;
	struct kfid_cntr	*triggering_cntr;
	struct kfid_cntr	*completion_cntr;
	enum kfi_op_type	op_type;
	union {
		struct kfi_op_msg		*msg;
		struct kfi_op_tagged		*tagged;
		struct kfi_op_rma		*rma;
		struct kfi_op_atomic		*atomic;
		struct kfi_op_fetch_atomic	*fetch_atomic;
		struct kfi_op_compare_atomic	*compare_atomic;
		struct kfi_op_cntr		*cntr;
	} op;
};

#endif /* _KFI_TRIGGER_H_ */
