/* SPDX-License-Identifier: GPL-2.0 */
/* Connected endpoints: what the files of the suite share. */
#ifndef KFI_TEST_EP_H
#define KFI_TEST_EP_H

#include <linux/in.h>

#include <kfi_cm.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>
#include <kfi_rma.h>

#include "env.h"

/* Maximum lengths of private data with a request for a connection, an acceptance, a rejection. */
#define CM_REQUEST	56
#define CM_ACCEPT	196
#define CM_REJECT	148

/* The modes that every provider can agree to. */
#define EP_MODE	(KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY)

/* Flipped in a key, it is that of no region: the number is too large for any. */
#define NO_KEY		BIT(30)

/* No wait here is for something that may not come. */
#define EP_WAIT_MS	60000

/**
 * struct ep_side - one side of a connection
 * @fabric: Its fabric.
 * @domain: Its domain.
 * @eq: The queue for events of the connection.
 * @tx: Completions of what it sends, in the data format.
 * @rx: Completions of what it receives, in the data format.
 * @ep: The endpoint.
 */
struct ep_side {
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfid_eq *eq;
	struct kfid_cq *tx;
	struct kfid_cq *rx;
	struct kfid_ep *ep;
};

/**
 * struct ep_pair - a listener, and a connection that came to it
 * @pep: The listener; on the fabric of the second side, with its event queue.
 * @info: The info that the active side asked for.
 * @addr: The peer's address for ep_kind_post(), which a connected endpoint doesn't need.
 * @side: The active side, and the passive one.
 */
struct ep_pair {
	struct kfid_pep *pep;
	struct kfi_info *info;
	kfi_addr_t addr;
	struct ep_side side[2];
};

/* An event about a connection, with room for private data. */
struct ep_event {
	struct kfi_eq_cm_entry entry;
	u8 data[256];
};

/* The wanted sizes and flags; zeroes ask for nothing special. */
struct ep_wants {
	size_t tx_size;
	size_t rx_size;
	size_t cq_size;
	u64 bind_flags;
	u64 recv_flags;
	u64 op_flags;
	int mr_mode;
	u64 caps;
	/* In microseconds (KFI_OPT_RNR_DELAY). */
	unsigned int rnr_delay;
	/* In milliseconds (KFI_OPT_STALL_TIMEOUT). */
	unsigned int stall;
	/* Completion queues that are polled, and for this CPU, less one. */
	bool polled;
	unsigned int cpu;
	/* The queue of receives is not polled. */
	bool rx_waits;
	/* The handler of the queue of transmits, and its context. */
	kfi_comp_handler handler;
	void *context;
	u32 tclass;
	/* Whose receives it takes, if it shares them. */
	struct kfid_ep *srx;
};

/* The address that the tests listen at, port 0; its length is that of a sockaddr_in. */
struct sockaddr_in ep_address(void);

/* The result of kfi_getinfo() for @address (NULL: any), as a source or as a peer. */
struct kfi_info *ep_info(struct kfi_test *t, struct sockaddr_in *address, u64 flags, int mr_mode);
struct kfi_info *ep_info_for(struct kfi_test *t, struct sockaddr_in *address, u64 flags,
			     const struct ep_wants *wants);

bool ep_side_open(struct kfi_test *t, struct ep_side *s, struct kfi_info *info,
		  const struct ep_wants *wants);
bool ep_open(struct kfi_test *t, struct ep_side *s, struct kfi_info *info,
	     const struct ep_wants *wants);
void ep_side_close(struct kfi_test *t, struct ep_side *s);
/* The domain of a side, with what is in it, and an event queue that the domain is bound to. */
void ep_domain_close(struct kfi_test *t, struct ep_side *s, struct kfid_eq *eq);

/* A listener and two sides, the first one with an endpoint; and then connected. */
struct ep_pair *ep_listening(struct kfi_test *t, const struct ep_wants *wants);
struct ep_pair *ep_connected(struct kfi_test *t, const struct ep_wants *wants);

/* Connects the first side of @p, instead of what it is connected to, to the listener of @q. */
bool ep_join(struct kfi_test *t, struct ep_pair *p, struct ep_pair *q);
void ep_pair_close(struct kfi_test *t, struct ep_pair *p);

/**
 * struct ep_memory - a connection, and memory at both sides
 * @p: Between whom.
 * @mr: Closed with it: a region of the second side's, if there is one.
 * @there: The second side's memory.
 * @here: The first side's.
 */
struct ep_memory {
	struct ep_pair *p;
	struct kfid_mr *mr;
	u8 *there;
	u8 *here;
};

/* @m is all zeroes; it is to be closed whatever this returns. False is a failure that has been reported. */
bool ep_memory_open(struct kfi_test *t, struct ep_memory *m, const struct ep_wants *wants, size_t len);
void ep_memory_close(struct kfi_test *t, struct ep_memory *m);

/* Waits for this event about @fid; its length, or 0, which was reported. */
size_t ep_event(struct kfi_test *t, struct kfid_eq *eq, u32 event, struct kfid *fid,
		struct ep_event *e);

/* Waits for an error event about @fid with this errno. */
void ep_failed(struct kfi_test *t, struct kfid_eq *eq, struct kfid *fid, int err,
	       struct kfi_eq_err_entry *entry);

/*
 * Waits for a completion with this context and these flags, and checks the other fields. Exceptions
 * are @len of bytes that came in, and @data of remote CQ data or an invalidated key.
 */
bool ep_completed(struct kfi_test *t, struct kfid_cq *cq, void *context, u64 flags,
		  struct kfi_cq_data_entry *entry);

/*
 * Waits for an error completion with this context and errno, and checks the other fields.
 * Exceptions are @flags, and @olen of a message that was too long.
 */
bool ep_failed_op(struct kfi_test *t, struct kfid_cq *cq, void *context, int err,
		  struct kfi_cq_err_entry *entry);

/* Waits for the end of a write of @ep, of side @s, with this context, that the peer refuses. */
void ep_refused(struct kfi_test *t, struct ep_side *s, struct kfid_ep *ep, void *context);

/*
 * The connection has ended: both sides have an event of that, nothing more is in their completion queues, and
 * neither can send.
 */
void ep_lost(struct kfi_test *t, struct ep_pair *p);

/* Nothing more is in the queue. */
void ep_nothing(struct kfi_test *t, struct kfid_cq *cq);

/* connect.c */
void ep_data_case(struct kfi_test *t);
void ep_reject_case(struct kfi_test *t);
void ep_left_case(struct kfi_test *t);
void ep_nobody_case(struct kfi_test *t);
void ep_shutdown_case(struct kfi_test *t);
void ep_closing_case(struct kfi_test *t);
void ep_states_case(struct kfi_test *t);
void ep_handle_case(struct kfi_test *t);
void ep_names_case(struct kfi_test *t);
void ep_listen_once_case(struct kfi_test *t);
void ep_in_use_case(struct kfi_test *t);

/* message.c */
void ep_sizes_case(struct kfi_test *t);
void ep_calls_case(struct kfi_test *t);
void ep_inject_case(struct kfi_test *t);
void ep_remote_data_case(struct kfi_test *t);
void ep_order_case(struct kfi_test *t);
void ep_truncated_case(struct kfi_test *t);
void ep_full_case(struct kfi_test *t);
void ep_flushed_case(struct kfi_test *t);
void ep_bad_memory_case(struct kfi_test *t);

/* completions.c */
void ep_kinds_case(struct kfi_test *t);
void ep_kinds_cancelled_case(struct kfi_test *t);
void ep_kinds_refused_case(struct kfi_test *t);
void ep_kinds_truncated_case(struct kfi_test *t);

/* selective.c */
void ep_selective_case(struct kfi_test *t);
void ep_selective_rma_case(struct kfi_test *t);

/* lists.c */
void ep_lists_case(struct kfi_test *t);
void ep_far_offsets_case(struct kfi_test *t);
void ep_descs_case(struct kfi_test *t);
void ep_local_only_case(struct kfi_test *t);

/* handled.c */
void ep_handled_case(struct kfi_test *t);

/* faults_handled.c */
void ep_handlers_case(struct kfi_test *t);

/* rma_event.c */
void ep_rma_event_case(struct kfi_test *t);

/* more.c */
void ep_injects_case(struct kfi_test *t);
void ep_injects_refused_case(struct kfi_test *t);
void ep_counters_case(struct kfi_test *t);
void ep_cancel_case(struct kfi_test *t);
void ep_sendmore_case(struct kfi_test *t);
void ep_backlog_case(struct kfi_test *t);

/* contexts.c */
void ep_atomic_context_case(struct kfi_test *t);

/* queues.c */
void ep_eq_first_case(struct kfi_test *t);
void ep_eq_unbound_case(struct kfi_test *t);
void ep_cq_first_case(struct kfi_test *t);

/* names.c */
void ep_named_case(struct kfi_test *t);
void ep_hints_case(struct kfi_test *t);
void ep_everything_case(struct kfi_test *t);

/* together.c */
void ep_at_once_case(struct kfi_test *t);

/* terms.c */
void ep_terms_case(struct kfi_test *t);
void ep_tclass_case(struct kfi_test *t);
void ep_terms_shared_case(struct kfi_test *t);
void ep_time_limit_case(struct kfi_test *t);
void ep_no_io_case(struct kfi_test *t);

/* polled.c */
void ep_polled_case(struct kfi_test *t);
void ep_armed_case(struct kfi_test *t);
void ep_unread_case(struct kfi_test *t);
void ep_vector_case(struct kfi_test *t);

/* limits.c */
void ep_limits_case(struct kfi_test *t);

/* options.c */
void ep_options_case(struct kfi_test *t);
void ep_unanswered_case(struct kfi_test *t);
void ep_stall_case(struct kfi_test *t);

/* regions.c */
void ep_regions_case(struct kfi_test *t);
void ep_regions_refused_case(struct kfi_test *t);
void ep_regions_ends_case(struct kfi_test *t);
void ep_regions_many_case(struct kfi_test *t);

/* behind.c */
void ep_regions_behind_case(struct kfi_test *t);
void ep_regions_repeated_case(struct kfi_test *t);
void ep_regions_repeated_twice_case(struct kfi_test *t);

/* fence.c */
void ep_regions_closed_case(struct kfi_test *t);
void ep_regions_accessed_case(struct kfi_test *t);
void ep_regions_collide_case(struct kfi_test *t);
void ep_regions_invalidated_case(struct kfi_test *t);

/* reuse.c */
void ep_reuse_case(struct kfi_test *t);
void ep_reuse_mixed_case(struct kfi_test *t);
void ep_flush_case(struct kfi_test *t);

/* reuse_refused.c */
void ep_reuse_refused_case(struct kfi_test *t);
void ep_reuse_full_case(struct kfi_test *t);
void ep_reuse_closed_case(struct kfi_test *t);
void ep_reuse_key_case(struct kfi_test *t);
void ep_reuse_faults_case(struct kfi_test *t);

/* down.c */
void ep_regions_down_case(struct kfi_test *t);
void ep_regions_falling_case(struct kfi_test *t);

/* sinks.c */
void ep_sinks_case(struct kfi_test *t);
void ep_sinks_worn_case(struct kfi_test *t);
void ep_sinks_closed_case(struct kfi_test *t);
void ep_sinks_failed_case(struct kfi_test *t);
void ep_sinks_failed_together_case(struct kfi_test *t);
void ep_sinks_refused_case(struct kfi_test *t);

/* soak.c */
void ep_soak_case(struct kfi_test *t);

/* access.c */
void ep_rma_case(struct kfi_test *t);
void ep_rma_refused_case(struct kfi_test *t);
void ep_rma_data_case(struct kfi_test *t);
void ep_rma_empty_case(struct kfi_test *t);

/* atomic.c */
void ep_atomics_case(struct kfi_test *t);
void ep_atomics_refused_case(struct kfi_test *t);
void ep_atomics_absent_case(struct kfi_test *t);
void ep_atomics_both_case(struct kfi_test *t);

/* pieces.c */
void ep_pieces_case(struct kfi_test *t);
void ep_pieces_refused_case(struct kfi_test *t);
void ep_pieces_full_case(struct kfi_test *t);

/* rawkey.c */
void ep_raw_case(struct kfi_test *t);

/* shared.c */
void ep_shared_case(struct kfi_test *t);
void ep_shared_late_case(struct kfi_test *t);
void ep_shared_many_case(struct kfi_test *t);

/* shared_refused.c */
void ep_shared_refused_case(struct kfi_test *t);
void ep_shared_truncated_case(struct kfi_test *t);
void ep_shared_unharmed_case(struct kfi_test *t);
void ep_shared_once_case(struct kfi_test *t);

/* flags.c */
void ep_fence_case(struct kfi_test *t);
void ep_inject_lists_case(struct kfi_test *t);

void ep_complete_case(struct kfi_test *t);
void ep_complete_late_case(struct kfi_test *t);
void ep_op_flags_case(struct kfi_test *t);
void ep_size_left_case(struct kfi_test *t);

#endif /* KFI_TEST_EP_H */
