/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers of the `rdma` crate for connections: macros, and calls that take the module's name. */
#ifndef RDMA_CM_HELPERS_H
#define RDMA_CM_HELPERS_H

#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

struct rdma_cm_id *rdma_helper_create_id(rdma_cm_event_handler handler, void *context);

/*
 * Whom to tell that a message has come over a queue pair before the connection is known to be
 * there. Drivers tell in any context, as long as there is the queue pair, which the identifier is
 * not as long.
 */
struct rdma_helper_herald {
	spinlock_t lock;
	struct rdma_cm_id *id;
};

void rdma_helper_init_herald(struct rdma_helper_herald *herald);
void rdma_helper_set_herald(struct rdma_helper_herald *herald, struct rdma_cm_id *id);
/* An event handler of queue pairs, whose context is a herald. */
void rdma_helper_qp_event(struct ib_event *event, void *context);
void rdma_helper_silence_qp(struct ib_qp *qp);

/* No allocation in between starts I/O. */
unsigned int rdma_helper_noio_save(void);
void rdma_helper_noio_restore(unsigned int flags);

/* Something to be done later, in process context, on a workqueue for memory reclaim. */
int rdma_helper_alarms_init(void);
void rdma_helper_alarms_exit(void);
void rdma_helper_init_alarm(struct delayed_work *work, work_func_t ring);
void rdma_helper_set_alarm(struct delayed_work *work, u32 ms);

#endif /* RDMA_CM_HELPERS_H */
