/* SPDX-License-Identifier: GPL-2.0 */
/* What the `rdma` crate's connections can't reach from Rust: macros, and what takes the module's name. */
#ifndef RDMA_CM_HELPERS_H
#define RDMA_CM_HELPERS_H

#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

struct rdma_cm_id *rdma_helper_create_id(rdma_cm_event_handler handler, void *context);

/* Something to be done later, in process context. */
void rdma_helper_init_alarm(struct delayed_work *work, work_func_t ring);
void rdma_helper_set_alarm(struct delayed_work *work, u32 ms);

#endif /* RDMA_CM_HELPERS_H */
