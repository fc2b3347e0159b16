/* SPDX-License-Identifier: GPL-2.0 */
/* kfi_pair_server.ko: what its files share. */
#ifndef KFI_PAIR_SERVER_H
#define KFI_PAIR_SERVER_H

#include <linux/atomic.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/sched.h>

#include <kfi_cm.h>
#include <kfi_eq.h>

#include "kfi_pair.h"

/* How soon a thread that waits looks whether it is to stop. */
#define STOP_MS	1000

/**
 * struct listener - an address at which clients come in
 * @address: The address, in digits.
 * @info: The info that it was opened with.
 * @fabric: The fabric.
 * @domain: The domain, of the connections, too.
 * @eq: The requests.
 * @pep: The passive endpoint; NULL while nobody listens. Under the list's lock.
 * @task: The task that answers.
 */
struct listener {
	const char *address;
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfid_eq *eq;
	struct kfid_pep *pep;
	struct task_struct *task;
};

/**
 * struct connection - a client, and the thread that serves it
 * @list: Among all connections.
 * @listener: Where it came in.
 * @info: The request, to be answered; freed then.
 * @hello: The wishes of the client.
 * @base: The pattern that the region holds.
 * @data: The remote CQ data that came with the last write.
 * @eq: The queue for events of the connection.
 * @tx: Completions of what is sent, read and written.
 * @rx: Completions of receives.
 * @ep: The endpoint.
 * @mr: The region.
 * @memory: The region's memory, with guards.
 * @in: The receives' memory.
 * @out: The message to send.
 * @scratch: As much as a region, for what is read from the client or written to it.
 * @task: The thread.
 * @ended: It has closed everything.
 */
struct connection {
	struct list_head list;
	struct listener *listener;
	struct kfi_info *info;
	struct pair_hello hello;
	u32 base;
	u64 data;
	struct kfid_eq *eq;
	struct kfid_cq *tx;
	struct kfid_cq *rx;
	struct kfid_ep *ep;
	struct kfid_mr *mr;
	u8 *memory;
	u8 *in;
	u8 *out;
	u8 *scratch;
	struct task_struct *task;
	bool ended;
};

#define MEMORY	(PAIR_REGION + 2 * PAIR_GUARD)

/* The most addresses at which the server listens. */
#define MAX_ADDRESSES	2

/* state.c: counts and prints a failure. Clients can ask for the number, and for that of open connections. */
__printf(1, 2) void wrong(const char *fmt, ...);
unsigned int wrong_so_far(void);
extern atomic_t connections_open;

/* listen.c */
int listener_start(struct listener *l, const char *provider, const char *address, const char *port);
void listener_stop(struct listener *l);

/* pep.c */
extern struct listener listeners[MAX_ADDRESSES];
extern unsigned int listener_count;
int listener_listen(struct listener *l);
void listener_deaf(struct listener *l);
void listener_reject(struct listener *l, struct kfi_info *info, u32 seed);
void listeners_deaf(void);
int listeners_listen(void);

/* connection.c */
void connection_start(struct listener *l, struct kfi_info *info, const struct pair_hello *hello);
void connections_reap(bool all);

/* serve.c: until the connection fails, which is true then, or is to be closed. */
bool serve(struct connection *c);
bool serve_receives(struct connection *c);

#endif /* KFI_PAIR_SERVER_H */
