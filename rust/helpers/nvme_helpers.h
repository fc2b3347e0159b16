/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the `nvme` crate for static inlines and macros of nvme-core and the block layer, one call
 * for each operation.
 */
#ifndef NVME_HELPERS_H
#define NVME_HELPERS_H

#include <linux/blk_types.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct bio_vec;
struct blk_mq_hw_ctx;
struct blk_mq_tag_set;
struct nvme_ctrl;
struct nvmf_ctrl_options;
struct request;
struct task_struct;

/* The work items of a controller besides reset_work of struct nvme_ctrl. */
struct nvme_helper_works {
	struct delayed_work error;
	struct delayed_work reconnect;
	/* Stops queues whose connection breaks while the controller connects. */
	struct delayed_work broken;
	/* Watches the task that creates the controller. */
	struct delayed_work watch;
	/* The task that creates the controller; or NULL. */
	struct task_struct *creator;
	/* The hardware contexts of the I/O queues are being changed, so that nobody may look for requests. */
	bool updating;
};

extern char nvme_helper_transport_name[16];

void nvme_helper_init_works(struct nvme_ctrl *ctrl, struct nvme_helper_works *works,
			    work_func_t reset, work_func_t error, work_func_t reconnect,
			    work_func_t broken, work_func_t watch);
void nvme_helper_set_creator(struct nvme_helper_works *works, bool creating);
bool nvme_helper_is_killed(struct nvme_helper_works *works);

void nvme_helper_count(int change);
void nvme_helper_wait_uncounted(void);

void nvme_helper_auth_stop(struct nvme_ctrl *ctrl);
void nvme_helper_count_reconnects(struct nvme_ctrl *ctrl);
u32 nvme_helper_nr_io_queues(struct nvmf_ctrl_options *opts);
void nvme_helper_limit_queues(struct nvmf_ctrl_options *opts);
int nvme_helper_default_port(struct nvmf_ctrl_options *opts);

bool nvme_helper_begin(struct blk_mq_hw_ctx *hctx, struct request *rq, bool live,
		       blk_status_t *status);
blk_status_t nvme_helper_hold_back(struct nvme_ctrl *ctrl, struct request *rq);
int nvme_helper_cpu_of(const u32 *io_queues, u32 index);
void nvme_helper_set_updating(struct nvme_helper_works *works, bool updating);
struct request *nvme_helper_find_rq(struct nvme_helper_works *works, struct blk_mq_tag_set *set,
				    u32 index, u16 command_id);
void nvme_helper_complete(struct request *rq, u16 status, u64 result);
void nvme_helper_requeue(struct request *rq);
void nvme_helper_complete_async_event(struct nvme_ctrl *ctrl, u16 status, u64 result);
void nvme_helper_not_leak(const void *memory);
u32 nvme_helper_segments(struct request *rq);
u32 nvme_helper_payload(struct request *rq);
u32 nvme_helper_bvecs(struct request *rq, struct bio_vec *list, u32 room);
void nvme_helper_leak(const struct bio_vec *piece);

#endif /* NVME_HELPERS_H */
