/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of the model NIC: an in-kernel consumer of plain verbs, which checks what the model does against a
 * table of its own (expect.c). It sees the model's statistics and sets its faults through nic.h.
 */
#ifndef NIC_TEST_H
#define NIC_TEST_H

#include <linux/completion.h>
#include <linux/scatterlist.h>
#include <rdma/rdma_cm.h>

#include "../nic.h"
#include "ktap.h"

/* How long a test waits for an event that must come. No verdict depends on it. */
#define PATIENCE_MS	60000

/* The expectations of the tests for a device of one personality. */
struct expect {
	const char *name;
	bool iwarp, ib;
	bool reliable;		/* there are reliable connections and regions */
	bool local_inv;
	enum ib_wc_status inv_free;	/* of LOCAL_INV for a region that is not valid */
	bool gaps;
	bool all_memory_key;
	bool own_drain;
	bool last_wqe;
	bool srq;
	enum nic_inline inline_over;
	u32 max_inline;
	u32 max_pages;
	u32 max_send_sge, max_recv_sge, max_read_sge;
	bool zero_recv;		/* a queue pair without receive requests can be made */
	bool pages_8k;		/* regions of pages of 8 KiB */
};

const struct expect *find_expect(const char *name);

/**
 * struct nic_env - what all cases share
 * @dev: the device under test
 * @peer: the device of the second side of each connection; usually the same
 * @nic: @dev, to read statistics and set faults
 * @peer_nic: @peer, to read statistics
 * @expect: what is expected of it
 * @port: the port that connections use
 * @translated: an IOMMU translates its addresses, so that the end of a mapping is seen
 * @dma_faults: how many the case under way has committed on purpose
 * @freed: the same for accesses to free pages
 * @ipoib: IPoIB runs over the device, and makes address handles in the background
 * @early_places: places of send queues come back when requests are carried out
 * @holds: a case has objects of @peer, and closes them when @going is complete; then it completes @gone
 * @going: see @holds
 * @gone: see @holds
 * @unmapped: the same for valid regions whose memory is not mapped
 * @keys_again: the same for registrations by an earlier key
 */
struct nic_env {
	struct ib_device *dev, *peer;
	struct nic_device *nic, *peer_nic;
	const struct expect *expect;
	u32 port;
	bool translated;
	s64 dma_faults, freed, unmapped, keys_again;
	bool ipoib;
	bool early_places;
	bool holds;
	struct completion going, gone;
};

extern struct nic_env nic_env;
extern char *nic_address, *nic_peer_address;

static inline bool two_devices(void)
{
	return nic_env.peer != nic_env.dev;
}

/* Returns a statistic, of both devices together. */
static inline s64 stat(enum nic_stat which)
{
	s64 n = atomic64_read(&nic_env.nic->stats[which]);

	return two_devices() ? n + atomic64_read(&nic_env.peer_nic->stats[which]) : n;
}

static inline void set_fault(enum nic_fault fault, int n)
{
	atomic_set(&nic_env.nic->faults[fault], n);
}

/*
 * One row of a suite: a function, whose objects and faults are counted (main.c). Only NIC_CASE_ANY() runs on
 * devices without reliable connections.
 */
void run_checked(struct kfi_test *t);
void run_connected(struct kfi_test *t);
#define NIC_CASE_ANY(_name) { .name = #_name, .run = run_checked, .data = case_##_name }
#define NIC_CASE(_name) { .name = #_name, .run = run_connected, .data = case_##_name }
#define NIC_VARIANTS(_name, _n)	\
	{ .name = #_name, .run = run_connected, .data = case_##_name, .variants = GENMASK((_n) - 1, 0) }

extern const struct kfi_suite nic_suite_data, nic_suite_cm, nic_suite_violations, nic_suite_order, nic_suite_faults,
	nic_suite_local, nic_suite_traits, nic_suite_events,
	nic_suite_unmappable, nic_suite_mappable, nic_suite_datagrams, nic_suite_pair;

/* conn.c: connections */

/**
 * struct side - one side of a connection
 * @dev: its device
 * @pd: its protection domain
 * @send_cq: completions of its send queue
 * @recv_cq: completions of its receive queue
 * @qp: its queue pair
 * @srq: whose receive requests it uses, or NULL
 * @shared: @pd and @srq are another side's
 * @id: of the connection manager, with iWARP
 * @cm: completed by each event of @id
 * @cm_event: the last event
 * @hard: calls of the completion handler in a hard interrupt
 * @soft: other calls of it
 * @last_wqe: how often IB_EVENT_QP_LAST_WQE_REACHED has come
 * @srq_limit: the same of IB_EVENT_SRQ_LIMIT_REACHED
 */
struct side {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_qp *qp;
	struct ib_srq *srq;
	bool shared;
	struct rdma_cm_id *id;
	struct completion cm;
	enum rdma_cm_event_type cm_event;
	atomic_t hard, soft;
	atomic_t last_wqe, srq_limit;
};

/*
 * Two sides, each in a protection domain of its own. Tests post at @a what reaches the memory of @b, which is on
 * nic_env.peer.
 */
struct conn {
	struct side a, b;
	struct rdma_cm_id *listener;
};

/**
 * struct conn_attr - what differs from a usual connection
 * @send_wr: places of the send queues; 0: 16
 * @access: what peers may do; 0: all
 * @no_access: peers may do nothing
 * @rnr_once: sending fails at once where there is no receive request
 * @srq: @b has an SRQ
 * @share: @b shares the SRQ and the protection domain of that side
 * @cm: by the connection manager, on each device
 */
struct conn_attr {
	u32 send_wr;
	int access;
	bool no_access;
	bool rnr_once;
	bool srq;
	const struct side *share;
	bool cm;
};

bool conn_open(struct kfi_test *t, struct conn *c, const struct conn_attr *attr);
void conn_close(struct kfi_test *t, struct conn *c);
struct ib_qp *new_qp(struct side *s, const struct ib_qp_cap *cap);
bool side_open(struct kfi_test *t, struct side *s);
void side_close(struct kfi_test *t, struct side *s);
int set_state(struct ib_qp *qp, enum ib_qp_state state);
int path_to(struct rdma_ah_attr *ah, struct side *to);

/* Sends that request, signaled, and returns the status of its completion, or an errno. */
int execute(struct side *s, struct ib_send_wr *wr);
int wait_wc(struct ib_cq *cq, struct ib_wc *wc);

/* memory.c: memory and regions */

#define MAX_ENTRIES	6

/* Which bytes of each of its pages a region has. */
struct shape {
	unsigned int n;
	struct {
		u32 offset, len;
	} entries[MAX_ENTRIES];
};

extern const struct shape one_page, some_bytes, offset_pages, full_pages, with_gaps;

/**
 * struct region - a region, and pages of its own, which are no neighbours
 * @side: whose queue registers it
 * @mr: the region
 * @shape: its shape
 * @pages: its pages
 * @dma: where they are mapped
 * @list: the same as a list
 * @mapped: they are
 * @len: its length
 */
struct region {
	struct side *side;
	struct ib_mr *mr;
	const struct shape *shape;
	struct page *pages[MAX_ENTRIES];
	dma_addr_t dma[MAX_ENTRIES];
	struct scatterlist list[MAX_ENTRIES];
	bool mapped;
	u64 len;
};

/* Memory in one piece, mapped for both devices; used by the key for all memory of a protection domain. */
struct buffer {
	u8 *mem;
	dma_addr_t dma, peer_dma;
	u32 len;
};

bool buffer_open(struct kfi_test *t, struct buffer *b, u32 len);
void buffer_close(struct buffer *b);
struct ib_sge buffer_sge(const struct buffer *b, const struct side *s, u32 at, u32 len);

bool region_alloc(struct kfi_test *t, struct region *r, struct side *s, const struct shape *shape);
bool region_open(struct kfi_test *t, struct region *r, struct side *s, const struct shape *shape,
		 int access);
int region_map(struct region *r);
int region_register(struct region *r, int access);
int region_invalidate(struct region *r, u32 key);
void region_unmap(struct region *r);
void region_close(struct kfi_test *t, struct region *r);
void region_put(struct region *r, const u8 *from);
void region_get(const struct region *r, u8 *to);
bool region_clean(const struct region *r);

void fill(u8 *mem, size_t len, u8 seed);
bool is_filled(const u8 *mem, size_t len, u8 seed);

/* A WRITE of @len bytes from @b's beginning to @at in a region, by @key. */
int rdma_write(struct side *s, const struct buffer *b, u64 addr, u32 key, u32 len);
int rdma_read(struct side *s, const struct ib_sge *sink, u64 addr, u32 key);
int receive(struct side *s, const struct ib_sge *sge, u64 id);

/* A connection, a region of its second side, and memory of its first one to write from. */
struct reach {
	struct conn c;
	struct region r;
	struct buffer from;
};

bool reach_open(struct kfi_test *t, struct reach *s);
void reach_close(struct kfi_test *t, struct reach *s);
/* Posts a write of 8 bytes into the region, signaled or not, and doesn't wait. */
int reach_write(struct reach *s, int flags);

#define REMOTE_ALL (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

#endif
