/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: event queues, completion queues, counters, wait sets and poll sets.
 *
 * An event queue reports control operations (connections, asynchronous registrations), a completion
 * queue the end of data transfers, a counter only how many of them ended.
 */
#ifndef _KFI_EQ_H_
#define _KFI_EQ_H_

#include "kfabric.h"

/* The ways to wait for a queue or a counter. */
enum kfi_wait_obj {
	KFI_WAIT_NONE,		/* no waiting */
	KFI_WAIT_UNSPEC,	/* any, known to the provider only */
	KFI_WAIT_SET,		/* a wait set */
	KFI_WAIT_QUEUE		/* a Linux wait queue */
};

/**
 * struct kfi_wait_attr - What a wait set should be.
 * @wait_obj: The way to wait.
 * @flags: None yet, 0.
 */
struct kfi_wait_attr {
	enum kfi_wait_obj	wait_obj;
	u64			flags;
};

struct kfi_ops_wait;

/**
 * struct kfid_wait - A wait set: several queues and counters that are waited for together.
 * @kfid: The header that every object begins with.
 * @ops: Operations of a wait set.
 */
struct kfid_wait {
	struct kfid		kfid;
	struct kfi_ops_wait	*ops;
};

/**
 * struct kfi_ops_wait - The operations of a wait set.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @wait: See kfi_wait().
 */
struct kfi_ops_wait {
	size_t	size;
	int	(*wait)(struct kfid_wait *waitset, int timeout);
};

/**
 * struct kfi_poll_attr - What a poll set should be.
 * @flags: None yet, 0.
 */
struct kfi_poll_attr {
	u64			flags;
};

/**
 * struct kfi_ops_poll - The operations of a poll set.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @poll: See kfi_poll().
 * @poll_add: See kfi_poll_add().
 * @poll_del: See kfi_poll_del().
 */
struct kfi_ops_poll {
	size_t	size;
	int	(*poll)(struct kfid_poll *pollset, void **context, int count);
	int	(*poll_add)(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags);
	int	(*poll_del)(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags);
};

/**
 * struct kfid_poll - A poll set: several queues and counters that are looked at together.
 * @fid: The header that every object begins with.
 * @ops: Operations of a poll set.
 */
struct kfid_poll {
	struct kfid		fid;
	struct kfi_ops_poll	*ops;
};

/**
 * struct kfi_eq_attr - What an event queue should be.
 * @size: How many events it holds, and as many errors: exactly, up to 65536; 0 for 256.
 * @flags: KFI_WRITE for a queue that kfi_eq_write() may add to, or 0.
 * @wait_obj: The way in which kfi_eq_sread() waits: KFI_WAIT_UNSPEC or KFI_WAIT_QUEUE, which are
 *	the same here, or KFI_WAIT_NONE if nobody will wait.
 * @signaling_vector: Not used; it would need KFI_AFFINITY in @flags.
 * @wait_set: Not used; it would need KFI_WAIT_SET.
 */
struct kfi_eq_attr {
	size_t			size;
	u64			flags;
	enum kfi_wait_obj	wait_obj;
	int			signaling_vector;
	struct kfid_wait	*wait_set;
};

/* Events. */
enum {
	KFI_NOTIFY,		/* struct kfi_eq_entry: something about an object */
	KFI_CONNREQ,		/* struct kfi_eq_cm_entry: a peer wants a connection */
	KFI_CONNECTED,		/* struct kfi_eq_cm_entry: there is a connection */
	KFI_SHUTDOWN,		/* struct kfi_eq_cm_entry: the connection is gone */
	KFI_MR_COMPLETE,	/* struct kfi_eq_entry: a registration is complete */
	KFI_AV_COMPLETE,	/* struct kfi_eq_entry: an address vector operation is complete */
	KFI_JOIN_COMPLETE	/* struct kfi_eq_entry: a multicast group is joined */
};

/* The longest structure that kfi_eq_write() takes, in bytes. Added by this project. */
enum {
	KFI_EQ_ENTRY_MAX	= 128
};

/**
 * struct kfi_eq_entry - An event.
 * @fid: The object that it is about.
 * @context: The context given with the operation that the event ends.
 * @data: Depends on the event.
 */
struct kfi_eq_entry {
	struct kfid		*fid;
	void			*context;
	u64			data;
};

/**
 * struct kfi_eq_err_entry - An operation that failed.
 * @fid: The object that it is about.
 * @context: The context given with the operation.
 * @data: Depends on the operation.
 * @err: The errno, positive.
 * @prov_errno: The provider's own number for it, see kfi_eq_strerror(). For registrations: @err; for
 *	connections the negative of an errno, or a number of the provider's.
 * @err_data: More about it, valid until the queue is read again; or NULL.
 * @err_data_size: Length of @err_data, in bytes.
 */
struct kfi_eq_err_entry {
	struct kfid		*fid;
	void			*context;
	u64			data;
	int			err;
	int			prov_errno;
	void			*err_data;
	size_t			err_data_size;
};

/**
 * struct kfi_eq_cm_entry - An event about a connection.
 * @fid: The endpoint or passive endpoint.
 * @info: For KFI_CONNREQ: what to make the endpoint of. The reader frees it with kfi_freeinfo().
 * @data: The peer's private data, as far as there was room for it.
 */
struct kfi_eq_cm_entry {
	struct kfid		*fid;
	struct kfi_info		*info;
	u8			data[];
};

/**
 * struct kfi_ops_eq - The operations of an event queue.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @read: See kfi_eq_read().
 * @readerr: See kfi_eq_readerr().
 * @write: See kfi_eq_write().
 * @sread: See kfi_eq_sread().
 * @strerror: See kfi_eq_strerror().
 */
struct kfi_ops_eq {
	size_t	size;
	ssize_t	(*read)(struct kfid_eq *eq, u32 *event, void *buf, size_t len, u64 flags);
	ssize_t	(*readerr)(struct kfid_eq *eq, struct kfi_eq_err_entry *buf, u64 flags);
	ssize_t	(*write)(struct kfid_eq *eq, u32 event, const void *buf, size_t len, u64 flags);
	ssize_t	(*sread)(struct kfid_eq *eq, u32 *event, void *buf, size_t len, int timeout,
			 u64 flags);
	const char *(*strerror)(struct kfid_eq *eq, int prov_errno, const void *err_data,
				char *buf, size_t len);
};

/**
 * struct kfid_eq - An event queue.
 * @fid: The header that every object begins with.
 * @ops: Operations of an event queue.
 * @event_handler: Called when there is something to read, or NULL. Not to be changed.
 */
struct kfid_eq {
	struct kfid		fid;
	struct kfi_ops_eq	*ops;
	kfi_event_handler	event_handler;
};

/* Which structure a completion queue is read in. */
enum kfi_cq_format {
	KFI_CQ_FORMAT_UNSPEC,	/* the provider's choice; here the same as KFI_CQ_FORMAT_DATA */
	KFI_CQ_FORMAT_CONTEXT,	/* struct kfi_cq_entry */
	KFI_CQ_FORMAT_MSG,	/* struct kfi_cq_msg_entry */
	KFI_CQ_FORMAT_DATA,	/* struct kfi_cq_data_entry */
	KFI_CQ_FORMAT_TAGGED	/* struct kfi_cq_tagged_entry */
};

/*
 * The formats, each an extension of the one before it.
 *
 * op_context is the context of the operation that has ended, bit for bit, and valid in all of them.
 * flags say which kind of operation it was: KFI_SEND or KFI_RECV with KFI_MSG; KFI_RMA or
 * KFI_ATOMIC with KFI_READ or KFI_WRITE; and with KFI_REMOTE_CQ_DATA that data is the peer's remote
 * CQ data. len is how many bytes were received; buf where they went, for a buffer that receives
 * several messages. tag is for tagged messages, which there are none of: 0.
 */
struct kfi_cq_entry {
	void			*op_context;
};

struct kfi_cq_msg_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
};

struct kfi_cq_data_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
	void			*buf;
	u64			data;
};

struct kfi_cq_tagged_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
	void			*buf;
	u64			data;
	u64			tag;
};

/**
 * struct kfi_cq_err_entry - A data transfer that failed.
 * @op_context: The context of the operation.
 * @flags: The kind of operation, as in the formats above.
 * @len: Bytes received.
 * @buf: Where they went, as in the formats above.
 * @data: Remote CQ data, as in the formats above.
 * @tag: Tag of the message; 0.
 * @olen: Bytes that didn't fit.
 * @err: The errno, positive.
 * @prov_errno: The provider's own number for it, see kfi_cq_strerror().
 * @err_data: Space of the reader for more about the error; nothing of it is used. On return, NULL
 *	if @err_data_size was 0.
 * @err_data_size: Length of that room, in bytes, 0 if there is none. On return how much there is to
 *	read at @err_data: 0.
 */
struct kfi_cq_err_entry {
	void			*op_context;
	u64			flags;
	size_t			len;
	void			*buf;
	u64			data;
	u64			tag;
	size_t			olen;
	int			err;
	int			prov_errno;
	void			*err_data;
	size_t			err_data_size;
};

/* The conditions that end a wait in kfi_cq_sread(). A failure ends any wait. */
enum kfi_cq_wait_cond {
	KFI_CQ_COND_NONE,	/* any completion */
	KFI_CQ_COND_THRESHOLD	/* as many completions as the size_t at cond says */
};

/**
 * struct kfi_cq_attr - What a completion queue should be.
 * @size: How many places it has: exactly, up to 65536; 0 for 1024. An operation takes one when it
 *	is posted, until its completion was read, or it has ended without one.
 * @flags: KFI_AFFINITY if @signaling_vector is meant, else 0.
 * @format: Which structure it is read in.
 * @wait_obj: The way in which kfi_cq_sread() waits: KFI_WAIT_UNSPEC or KFI_WAIT_QUEUE, which are
 *	the same here, or KFI_WAIT_NONE if nobody will wait. In a domain with KFI_PROGRESS_MANUAL, the
 *	queue is polled then.
 * @signaling_vector: With KFI_AFFINITY the number of the CPU near which completions should come in,
 *	which is a wish. Otherwise not looked at.
 * @wait_cond: The condition that kfi_cq_sread() waits for. Ignored with KFI_WAIT_NONE.
 * @wait_set: Not used; it would need KFI_WAIT_SET, which there is none of.
 */
struct kfi_cq_attr {
	size_t			size;
	u64			flags;
	enum kfi_cq_format	format;
	enum kfi_wait_obj	wait_obj;
	int			signaling_vector;
	enum kfi_cq_wait_cond	wait_cond;
	struct kfid_wait	*wait_set;
};

/**
 * struct kfi_ops_cq - The operations of a completion queue.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @read: See kfi_cq_read().
 * @readfrom: See kfi_cq_readfrom().
 * @readerr: See kfi_cq_readerr().
 * @sread: See kfi_cq_sread().
 * @sreadfrom: See kfi_cq_sreadfrom().
 * @signal: See kfi_cq_signal().
 * @strerror: See kfi_cq_strerror().
 */
struct kfi_ops_cq {
	size_t	size;
	ssize_t	(*read)(struct kfid_cq *cq, void *buf, size_t count);
	ssize_t	(*readfrom)(struct kfid_cq *cq, void *buf, size_t count, kfi_addr_t *src_addr);
	ssize_t	(*readerr)(struct kfid_cq *cq, struct kfi_cq_err_entry *buf, u64 flags);
	ssize_t	(*sread)(struct kfid_cq *cq, void *buf, size_t count, const void *cond,
			 int timeout);
	ssize_t	(*sreadfrom)(struct kfid_cq *cq, void *buf, size_t count, kfi_addr_t *src_addr,
			     const void *cond, int timeout);
	int	(*signal)(struct kfid_cq *cq);
	const char *(*strerror)(struct kfid_cq *cq, int prov_errno, const void *err_data,
				char *buf, size_t len);
};

/**
 * struct kfid_cq - A completion queue.
 * @fid: The header that every object begins with.
 * @ops: Operations of a completion queue.
 * @comp_handler: Called when there is something to read, or NULL. Not to be changed.
 */
struct kfid_cq {
	struct kfid		fid;
	struct kfi_ops_cq	*ops;
	kfi_comp_handler	comp_handler;
};

/* The events that a counter counts. */
enum kfi_cntr_events {
	KFI_CNTR_EVENTS_COMP	/* completions */
};

/**
 * struct kfi_cntr_attr - What a counter should be.
 * @events: The events that it counts: KFI_CNTR_EVENTS_COMP.
 * @wait_obj: The way in which kfi_cntr_wait() waits: KFI_WAIT_UNSPEC or KFI_WAIT_QUEUE, which are
 *	the same here; or KFI_WAIT_NONE for a counter that nobody waits for.
 * @wait_set: The wait set, for KFI_WAIT_SET.
 * @flags: None yet, 0.
 */
struct kfi_cntr_attr {
	enum kfi_cntr_events	events;
	enum kfi_wait_obj	wait_obj;
	struct kfid_wait	*wait_set;
	u64			flags;
};

/**
 * struct kfi_ops_cntr - The operations of a counter.
 * @size: Size of this table in bytes, as its provider was built; 0 counts as all of it.
 * @read: See kfi_cntr_read().
 * @readerr: See kfi_cntr_readerr().
 * @add: See kfi_cntr_add().
 * @set: See kfi_cntr_set().
 * @wait: See kfi_cntr_wait().
 * @adderr: See kfi_cntr_adderr().
 * @seterr: See kfi_cntr_seterr().
 */
struct kfi_ops_cntr {
	size_t	size;
	u64	(*read)(struct kfid_cntr *cntr);
	u64	(*readerr)(struct kfid_cntr *cntr);
	int	(*add)(struct kfid_cntr *cntr, u64 value);
	int	(*set)(struct kfid_cntr *cntr, u64 value);
	int	(*wait)(struct kfid_cntr *cntr, u64 threshold, int timeout);
	int	(*adderr)(struct kfid_cntr *cntr, u64 value);
	int	(*seterr)(struct kfid_cntr *cntr, u64 value);
};

/**
 * struct kfid_cntr - A counter.
 * @fid: The header that every object begins with.
 * @ops: Operations of a counter.
 */
struct kfid_cntr {
	struct kfid		fid;
	struct kfi_ops_cntr	*ops;
};

/**
 * kfi_wait() - Wait until something in a wait set has something to read.
 * @waitset: The wait set.
 * @timeout: Milliseconds; negative waits for ever.
 *
 * Context: Process context; sleeps.
 * Return: 0, -KFI_EINVAL if @waitset is NULL, -KFI_ENOSYS if it can't be waited for, or
 * -KFI_ETIMEDOUT.
 */
static inline int kfi_wait(struct kfid_wait *waitset, int timeout)
{
	return __kfi_call(waitset, ops, wait, waitset, timeout);
}

/**
 * kfi_poll() - Ask which of a poll set's queues and counters have something to read.
 * @pollset: The poll set.
 * @context: Where to put their contexts.
 * @count: How many there is room for.
 *
 * Context: Any; doesn't sleep.
 * Return: How many contexts were put there, -KFI_EINVAL if @pollset is NULL, or -KFI_ENOSYS.
 */
static inline int kfi_poll(struct kfid_poll *pollset, void **context, int count)
{
	return __kfi_call(pollset, ops, poll, pollset, context, count);
}

/**
 * kfi_poll_add() - Add a queue or a counter to a poll set.
 * @pollset: The poll set.
 * @event_kfid: Fid of the queue or counter.
 * @flags: None yet, 0.
 *
 * Context: Process context; may sleep.
 * Return: 0, -KFI_EINVAL if @pollset is NULL, or -KFI_ENOSYS.
 */
static inline int kfi_poll_add(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags)
{
	return __kfi_call(pollset, ops, poll_add, pollset, event_kfid, flags);
}

/**
 * kfi_poll_del() - Take a queue or a counter out of a poll set.
 * @pollset: The poll set.
 * @event_kfid: Fid of the queue or counter.
 * @flags: None yet, 0.
 *
 * Context: Process context; may sleep.
 * Return: 0, -KFI_EINVAL if @pollset is NULL, or -KFI_ENOSYS.
 */
static inline int kfi_poll_del(struct kfid_poll *pollset, struct kfid *event_kfid, u64 flags)
{
	return __kfi_call(pollset, ops, poll_del, pollset, event_kfid, flags);
}

/**
 * kfi_eq_open() - Open an event queue.
 * @fabric: The fabric.
 * @attr: Its attributes; NULL stands for a structure of zeroes.
 * @eq: Where to put the queue; close it with kfi_close().
 * @event_handler: Called when an event comes after a read found the queue empty, or NULL.
 * @context: The consumer's own, kept in the queue's fid and given to @event_handler.
 *
 * @event_handler is called for the first event. After a caller was told that the queue is empty
 * (-KFI_EAGAIN from kfi_eq_read() or kfi_eq_sread()), it is called for the next one. The handler
 * must read until the queue is empty. Errors count as events. It runs in process context, one call
 * at a time for each queue. It may sleep, but must not wait for a handler of another queue. It
 * can't close its own queue (-KFI_EOPBADSTATE) and must not close another. When kfi_close() of the
 * queue has returned, it doesn't run and never will; so don't close under a lock that handlers
 * take. Memory reclaim may wait for its workqueue: the handler must not flush one that reclaim
 * can't wait for.
 *
 * kfi_close() of the queue unbinds it: what is bound to it stays open, nothing is reported any more, and
 * connection requests are rejected.
 *
 * Context: Process context; may sleep.
 * Return: 0, or with *@eq NULL:
 *
 * * -KFI_EINVAL: @fabric or @eq is NULL.
 * * -KFI_EINVAL: @attr is an error pointer.
 * * -KFI_EINVAL: size is more than 65536.
 * * -KFI_EBADFLAGS: a flag other than KFI_WRITE.
 * * -KFI_ENOSYS: wait_obj is KFI_WAIT_SET.
 * * -KFI_EINVAL: wait_obj is unknown.
 * * -KFI_ENOSYS: the provider is written in C and has no event queues.
 * * -KFI_ENOMEM: out of memory.
 */
static inline int kfi_eq_open(struct kfid_fabric *fabric, struct kfi_eq_attr *attr,
			      struct kfid_eq **eq, kfi_event_handler event_handler, void *context)
{
	return __kfi_open(eq, fabric, ops, eq_open, fabric, attr, eq, event_handler, context);
}

/**
 * kfi_eq_read() - Read the next event.
 * @eq: The queue.
 * @event: Where to put which event it is, KFI_MR_COMPLETE for instance.
 * @buf: Where to put the event's structure.
 * @len: Room at @buf, in bytes.
 * @flags: KFI_PEEK to leave the event in the queue, or 0.
 *
 * Events that come when the queue is full are lost. Those before them are read as ever; then, at the
 * place where they would be, comes -KFI_EOVERRUN, once, and after it what came later.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: How many bytes were put at @buf, or:
 *
 * * -KFI_EINVAL: @eq is NULL.
 * * -KFI_EBADFLAGS: flags other than KFI_PEEK.
 * * -KFI_EINVAL: @event or @buf is NULL.
 * * -KFI_EAVAIL: there is a failure.
 * * -KFI_EOVERRUN: events were lost here.
 * * -KFI_ETOOSMALL: the event needs more than @len bytes; it stays.
 * * -KFI_EAGAIN: there is nothing.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline ssize_t kfi_eq_read(struct kfid_eq *eq, u32 *event, void *buf, size_t len,
				  u64 flags)
{
	return __kfi_call(eq, ops, read, eq, event, buf, len, flags);
}

/**
 * kfi_eq_readerr() - Read about the next operation that failed.
 * @eq: The queue.
 * @buf: Where to put it.
 * @flags: KFI_PEEK to leave it in the queue, or 0.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: sizeof(*@buf), or:
 *
 * * -KFI_EINVAL: @eq or @buf is NULL.
 * * -KFI_EBADFLAGS: flags other than KFI_PEEK.
 * * -KFI_EOVERRUN: failures were lost here.
 * * -KFI_EAGAIN: there is none.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline ssize_t kfi_eq_readerr(struct kfid_eq *eq, struct kfi_eq_err_entry *buf, u64 flags)
{
	return __kfi_call(eq, ops, readerr, eq, buf, flags);
}

/**
 * kfi_eq_write() - Put an event of one's own in a queue.
 * @eq: The queue, opened with KFI_WRITE.
 * @event: Which event: one of those above, or any number with KFI_PROV_SPECIFIC.
 * @buf: The event's structure. A copy goes in, unread.
 * @len: Its length, in bytes, 1 to KFI_EQ_ENTRY_MAX.
 * @flags: None yet, 0.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: @len, or with nothing written:
 *
 * * -KFI_EINVAL: @eq is NULL.
 * * -KFI_ENOSYS: the queue was opened without KFI_WRITE.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_EINVAL: @event is not in the table above; @buf is NULL; @len is 0 or more than
 *   KFI_EQ_ENTRY_MAX.
 * * -KFI_EAGAIN: the queue is full.
 */
static inline ssize_t kfi_eq_write(struct kfid_eq *eq, u32 event, const void *buf, size_t len,
				   u64 flags)
{
	return __kfi_call(eq, ops, write, eq, event, buf, len, flags);
}

/**
 * kfi_eq_sread() - Wait for an event and read it.
 * @eq: The queue, opened with a wait object.
 * @event: Where to put which event it is.
 * @buf: Where to put the event's structure.
 * @len: Room at @buf, in bytes.
 * @timeout: Milliseconds; 0 doesn't wait, negative waits for ever.
 * @flags: KFI_PEEK to leave the event in the queue, or 0.
 *
 * Several may wait; each event is read by one of them. Meanwhile kfi_close() of the queue is
 * -KFI_EBUSY.
 *
 * Context: Process context; sleeps.
 * Return: How many bytes were put at @buf, or:
 *
 * * -KFI_EINVAL: @eq is NULL.
 * * -KFI_EBADFLAGS: flags other than KFI_PEEK.
 * * -KFI_EINVAL: @event or @buf is NULL.
 * * -KFI_ENOSYS: the queue was opened with KFI_WAIT_NONE.
 * * -KFI_EAVAIL: there is a failure.
 * * -KFI_EOVERRUN: events were lost here.
 * * -KFI_ETOOSMALL: the event needs more than @len bytes; it stays.
 * * -KFI_EAGAIN: there is nothing after @timeout.
 * * -KFI_EINTR: there is nothing, and a signal arrived.
 */
static inline ssize_t kfi_eq_sread(struct kfid_eq *eq, u32 *event, void *buf, size_t len,
				   int timeout, u64 flags)
{
	return __kfi_call(eq, ops, sread, eq, event, buf, len, timeout, flags);
}

/**
 * kfi_eq_strerror() - Describe a provider's own error number.
 * @eq: The queue that the error entry came from.
 * @prov_errno: The entry's prov_errno.
 * @err_data: The entry's err_data.
 * @buf: Room for a copy of the text, cut off if need be; or NULL.
 * @len: Room at @buf, in bytes.
 *
 * Context: Any; doesn't sleep.
 * Return: The text, which lives as long as the queue is open; an empty one if there is none.
 */
static inline const char *kfi_eq_strerror(struct kfid_eq *eq, int prov_errno,
					  const void *err_data, char *buf, size_t len)
{
	return __kfi_call_else("", "", eq, ops, strerror, eq, prov_errno, err_data, buf, len);
}

/**
 * kfi_cq_read() - Read completions.
 * @cq: The queue.
 * @buf: Where to put them, in the queue's format.
 * @count: How many there is room for.
 *
 * They come in the order in which the operations have ended, up to the first that has failed.
 * Entries that are read give their places in the queue to other operations.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: How many were read, at least 1, or:
 *
 * * -KFI_EINVAL: @cq or @buf is NULL, or @count is 0.
 * * -KFI_EAVAIL: an error entry is first.
 * * -KFI_EAGAIN: the queue is empty; for the calls that wait: after @timeout or kfi_cq_signal().
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline ssize_t kfi_cq_read(struct kfid_cq *cq, void *buf, size_t count)
{
	return __kfi_call(cq, ops, read, cq, buf, count);
}

/**
 * kfi_cq_readfrom() - Read completions and where the messages came from.
 * @cq: The queue.
 * @buf: Where to put the completions, in the queue's format.
 * @count: How many there is room for.
 * @src_addr: Where to put as many addresses, or NULL; KFI_ADDR_NOTAVAIL for those that aren't
 *	known, which are all of connected endpoints.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: As kfi_cq_read().
 */
static inline ssize_t kfi_cq_readfrom(struct kfid_cq *cq, void *buf, size_t count,
				      kfi_addr_t *src_addr)
{
	return __kfi_call(cq, ops, readfrom, cq, buf, count, src_addr);
}

/**
 * kfi_cq_readerr() - Read about the next operation, if it failed.
 * @cq: The queue.
 * @buf: Where to put it. Set @buf->err_data_size to 0 before.
 * @flags: None yet, 0.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 1, or:
 *
 * * -KFI_EINVAL: @cq is NULL.
 * * -KFI_EBADFLAGS: @flags is not 0.
 * * -KFI_EINVAL: @buf is NULL.
 * * -KFI_EAGAIN: the queue is empty, or a completion is first.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline ssize_t kfi_cq_readerr(struct kfid_cq *cq, struct kfi_cq_err_entry *buf, u64 flags)
{
	return __kfi_call(cq, ops, readerr, cq, buf, flags);
}

/**
 * kfi_cq_sread() - Wait for completions and read them.
 * @cq: The queue, opened with a wait object.
 * @buf: Where to put them, in the queue's format.
 * @count: How many there is room for.
 * @cond: With KFI_CQ_COND_THRESHOLD a size_t: how many completions to wait for, no more than the
 *	queue has places; NULL or 0 for any. Not looked at otherwise.
 * @timeout: Milliseconds; 0 doesn't wait, negative waits for ever.
 *
 * The wait is over when there are as many completions, whether or not there is room for them, or
 * when an operation has failed; or after @timeout, by kfi_cq_signal(), or with a signal to the
 * thread. Then it reads what there is.
 *
 * Several may wait; each completion is read by one of them. Meanwhile kfi_close() of the queue is
 * -KFI_EBUSY.
 *
 * Context: Process context; sleeps, interruptibly.
 * Return: How many were read, at least 1, or:
 *
 * * -KFI_EINVAL: @cq or @buf is NULL, or @count is 0.
 * * -KFI_ENOSYS: the queue was opened with KFI_WAIT_NONE.
 * * -KFI_EAVAIL: an error entry is first.
 * * -KFI_EAGAIN: the queue is empty; for the calls that wait: after @timeout or kfi_cq_signal().
 * * -KFI_EINTR: the queue is empty, and the thread got a signal.
 */
static inline ssize_t kfi_cq_sread(struct kfid_cq *cq, void *buf, size_t count, const void *cond,
				   int timeout)
{
	return __kfi_call(cq, ops, sread, cq, buf, count, cond, timeout);
}

/**
 * kfi_cq_sreadfrom() - Wait for completions, read them and where the messages came from.
 * @cq: The queue, opened with a wait object.
 * @buf: Where to put the completions, in the queue's format.
 * @count: How many there is room for.
 * @src_addr: Where to put as many addresses, or NULL; see kfi_cq_readfrom().
 * @cond: See kfi_cq_sread().
 * @timeout: Milliseconds; 0 doesn't wait, negative waits for ever.
 *
 * Context: Process context; sleeps, interruptibly.
 * Return: As kfi_cq_sread().
 */
static inline ssize_t kfi_cq_sreadfrom(struct kfid_cq *cq, void *buf, size_t count,
				       kfi_addr_t *src_addr, const void *cond, int timeout)
{
	return __kfi_call(cq, ops, sreadfrom, cq, buf, count, src_addr, cond, timeout);
}

/**
 * kfi_cq_signal() - Wake whoever waits for a completion queue.
 * @cq: The queue, opened with a wait object.
 *
 * All who wait come back with what there is, or with -KFI_EAGAIN. If nobody waits, the next call
 * that would have to doesn't; several signals are one for it.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @cq is NULL.
 * * -KFI_ENOSYS: the queue was opened with KFI_WAIT_NONE.
 */
static inline int kfi_cq_signal(struct kfid_cq *cq)
{
	return __kfi_call(cq, ops, signal, cq);
}

/**
 * kfi_cq_strerror() - Describe a provider's own error number.
 * @cq: The queue that the error entry came from.
 * @prov_errno: The entry's prov_errno.
 * @err_data: The entry's err_data.
 * @buf: Room for a copy of the text, cut off if need be; or NULL.
 * @len: Room at @buf, in bytes.
 *
 * Context: Any; doesn't sleep.
 * Return: The text, which lives as long as the queue is open; an empty one if there is none.
 */
static inline const char *kfi_cq_strerror(struct kfid_cq *cq, int prov_errno,
					  const void *err_data, char *buf, size_t len)
{
	return __kfi_call_else("", "", cq, ops, strerror, cq, prov_errno, err_data, buf, len);
}

/**
 * kfi_cntr_read() - Read how many operations ended well.
 * @cntr: The counter.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: The count; 0 if @cntr is NULL or can't be read.
 */
static inline u64 kfi_cntr_read(struct kfid_cntr *cntr)
{
	return __kfi_call_else(0, 0, cntr, ops, read, cntr);
}

/**
 * kfi_cntr_readerr() - Read how many operations failed.
 * @cntr: The counter.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: The count; 0 if @cntr is NULL or can't be read.
 */
static inline u64 kfi_cntr_readerr(struct kfid_cntr *cntr)
{
	return __kfi_call_else(0, 0, cntr, ops, readerr, cntr);
}

/**
 * kfi_cntr_add() - Add to a counter.
 * @cntr: The counter.
 * @value: How much.
 *
 * The count goes on from 0 after the largest u64, and so does that of failures.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @cntr is NULL or an error pointer.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_cntr_add(struct kfid_cntr *cntr, u64 value)
{
	return __kfi_call(cntr, ops, add, cntr, value);
}

/**
 * kfi_cntr_adderr() - Add to a counter's failures.
 * @cntr: The counter.
 * @value: How much.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @cntr is NULL or an error pointer.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_cntr_adderr(struct kfid_cntr *cntr, u64 value)
{
	return __kfi_call(cntr, ops, adderr, cntr, value);
}

/**
 * kfi_cntr_set() - Set a counter.
 * @cntr: The counter.
 * @value: To what.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @cntr is NULL or an error pointer.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_cntr_set(struct kfid_cntr *cntr, u64 value)
{
	return __kfi_call(cntr, ops, set, cntr, value);
}

/**
 * kfi_cntr_seterr() - Set a counter's failures.
 * @cntr: The counter.
 * @value: To what.
 *
 * Context: Any in which a spinlock may be taken; doesn't sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @cntr is NULL or an error pointer.
 * * -KFI_ENOSYS: the provider doesn't have this call.
 */
static inline int kfi_cntr_seterr(struct kfid_cntr *cntr, u64 value)
{
	return __kfi_call(cntr, ops, seterr, cntr, value);
}

/**
 * kfi_cntr_wait() - Wait until a counter reaches a value.
 * @cntr: The counter, opened with a wait object.
 * @threshold: The value: the count is that or more.
 * @timeout: Milliseconds; negative waits for ever, 0 only looks.
 *
 * The count that the waiting thread sees when it runs decides. If the count reached the value, but
 * kfi_cntr_set() set it back before the thread ran, the wait goes on. A change of the number of
 * failures is not lost in this way. The counter can't be closed meanwhile.
 *
 * Context: Process context; sleeps, interruptibly.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @cntr is NULL or an error pointer.
 * * -KFI_ENOSYS: the counter was opened with KFI_WAIT_NONE.
 * * -KFI_ETIMEDOUT: the value did not reach the threshold in time.
 * * -KFI_EAVAIL: the error value has changed during the call.
 * * -KFI_EINTR: a signal arrived.
 */
static inline int kfi_cntr_wait(struct kfid_cntr *cntr, u64 threshold, int timeout)
{
	return __kfi_call(cntr, ops, wait, cntr, threshold, timeout);
}

#endif /* _KFI_EQ_H_ */
