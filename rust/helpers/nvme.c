// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `nvme` crate (see the header). */
#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nvme.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <linux/wait_bit.h>

#include <nvme.h>
#include <fabrics.h>

#include "nvme_helpers.h"

MODULE_VERSION(__stringify(KFABRIC_VERSION));

/* kfi_nvme.ko has one transport. */
char nvme_helper_transport_name[16] = "kfi";
module_param_string(name, nvme_helper_transport_name, sizeof(nvme_helper_transport_name), 0444);
MODULE_PARM_DESC(name, "Name of the transport, as in nvme connect -t (default kfi)");

/* Each work item has a lock class of its own, since each has a line here. */
void nvme_helper_init_works(struct nvme_ctrl *ctrl, struct nvme_helper_works *works,
			    work_func_t reset, work_func_t error, work_func_t reconnect,
			    work_func_t broken, work_func_t watch)
{
	INIT_WORK(&ctrl->reset_work, reset);
	INIT_DELAYED_WORK(&works->error, error);
	INIT_DELAYED_WORK(&works->reconnect, reconnect);
	INIT_DELAYED_WORK(&works->broken, broken);
	INIT_DELAYED_WORK(&works->watch, watch);
}

/* The current task must unset this before it goes. */
void nvme_helper_set_creator(struct nvme_helper_works *works, bool creating)
{
	WRITE_ONCE(works->creator, creating ? current : NULL);
}

/* Was the task killed that creates the controller? Any context. */
bool nvme_helper_is_killed(struct nvme_helper_works *works)
{
	struct task_struct *creator = READ_ONCE(works->creator);

	return creator && fatal_signal_pending(creator);
}

/* The controllers that exist. The module stays until there is none. */
static atomic_t controllers = ATOMIC_INIT(0);

void nvme_helper_count(int change)
{
	if (!atomic_add_return(change, &controllers))
		wake_up_var(&controllers);
}

void nvme_helper_wait_uncounted(void)
{
	wait_var_event(&controllers, !atomic_read(&controllers));
	/* The task that freed the last one may still be on its way out of this module. */
	synchronize_rcu_tasks();
}

void nvme_helper_auth_stop(struct nvme_ctrl *ctrl)
{
	nvme_auth_stop(ctrl);
}

/* Adds the attempts of this outage to those of all. */
void nvme_helper_count_reconnects(struct nvme_ctrl *ctrl)
{
	atomic_long_add(ctrl->nr_reconnects, &ctrl->acc_reconnects);
	ctrl->nr_reconnects = 0;
}

u32 nvme_helper_nr_io_queues(struct nvmf_ctrl_options *opts)
{
	return nvmf_nr_io_queues(opts);
}

/* Limits these options to the number of online CPUs. nvme-core does so for nr_io_queues only. */
void nvme_helper_limit_queues(struct nvmf_ctrl_options *opts)
{
	opts->nr_write_queues = min(opts->nr_write_queues, num_online_cpus());
	opts->nr_poll_queues = min(opts->nr_poll_queues, num_online_cpus());
}

/* nvmf_ip_options_match() reads trsvcid untested. May sleep. */
int nvme_helper_default_port(struct nvmf_ctrl_options *opts)
{
	if (opts->mask & NVMF_OPT_TRSVCID)
		return 0;
	opts->trsvcid = kstrdup("4420", GFP_KERNEL);
	if (!opts->trsvcid)
		return -ENOMEM;
	opts->mask |= NVMF_OPT_TRSVCID;
	return 0;
}

/*
 * Starts a request, whose command nvme-core writes. Returns false if that was not possible: then @status is
 * for the block layer. The context is that of queue_rq.
 */
bool nvme_helper_begin(struct blk_mq_hw_ctx *hctx, struct request *rq, bool live,
		       blk_status_t *status)
{
	struct nvme_ctrl *ctrl = nvme_req(rq)->ctrl;

	if (unlikely(!nvme_check_ready(ctrl, rq, live))) {
		*status = nvme_fail_nonready_command(ctrl, rq);
		return false;
	}
	*status = nvme_setup_cmd(hctx->queue->queuedata, rq);
	if (unlikely(*status))
		return false;
	nvme_start_request(rq);
	return true;
}

/*
 * Returns the status of a request whose queue has no connection. Setup waits for its own commands, and a reset for
 * those of authentication, so these must end: nvme-core sends some of them again, but not for ever.
 */
blk_status_t nvme_helper_hold_back(struct nvme_ctrl *ctrl, struct request *rq)
{
	enum nvme_ctrl_state state = nvme_ctrl_state(ctrl);

	if (blk_rq_is_passthrough(rq) &&
	    (state == NVME_CTRL_CONNECTING ||
	     (state == NVME_CTRL_RESETTING && rq->q == ctrl->fabrics_q)))
		return nvme_host_path_error(rq);
	return nvme_fail_nonready_command(ctrl, rq);
}

/*
 * Returns an online CPU whose requests go to the I/O queue @index, or -1. @io_queues has the number of queues for
 * writing, for reading and for polling. The maps of the tag set can't be used: on a reconnect, they still have the old
 * numbers. May sleep.
 */
int nvme_helper_cpu_of(const u32 *io_queues, u32 index)
{
	struct blk_mq_queue_map map = {};
	unsigned int i, cpu;
	int found = -1;

	for (i = 0; i < HCTX_MAX_TYPES - 1 && index >= io_queues[i]; i++)
		index -= io_queues[i];
	map.nr_queues = io_queues[i];
	map.mq_map = kcalloc(nr_cpu_ids, sizeof(*map.mq_map), GFP_KERNEL);
	if (!map.mq_map || index >= map.nr_queues)
		goto out;
	/* As nvmf_map_queues() does. */
	blk_mq_map_queues(&map);
	for_each_online_cpu(cpu) {
		if (map.mq_map[cpu] == index) {
			found = cpu;
			break;
		}
	}
out:
	kfree(map.mq_map);
	return found;
}

/* Says that the block layer replaces the hardware queues of the I/O queues. Sleeps. */
void nvme_helper_set_updating(struct nvme_helper_works *works, bool updating)
{
	/* A caller that reads false also reads the new queues. */
	smp_store_release(&works->updating, updating);
	/* Until here nvme_helper_find_rq() may use the old ones. */
	synchronize_rcu();
}

/*
 * Finds the request that a command id names in a hardware queue. The set exists during the call. While its hardware
 * queues are replaced no request is under way, so a response is ill-behaved.
 */
struct request *nvme_helper_find_rq(struct nvme_helper_works *works, struct blk_mq_tag_set *set,
				    u32 index, u16 command_id)
{
	guard(rcu)();
	/* Pairs with the release in nvme_helper_set_updating(). */
	if (smp_load_acquire(&works->updating) || index >= set->nr_hw_queues || !set->tags[index])
		return NULL;
	return nvme_find_rq(set->tags[index], command_id);
}

/* Any context. */
void nvme_helper_complete(struct request *rq, u16 status, u64 result)
{
	union nvme_result value = { .u64 = cpu_to_le64(result) };

	if (!nvme_try_complete_req(rq, cpu_to_le16(status), value))
		nvme_complete_rq(rq);
}

/* Queues a request again that was not sent. The caller has called nvme_cleanup_cmd(). Any context. */
void nvme_helper_requeue(struct request *rq)
{
	struct request_queue *q = rq->q;

	blk_mq_requeue_request(rq, false);
	/* As long as the block layer waits for a resource (BLK_MQ_RESOURCE_DELAY). */
	blk_mq_delay_kick_requeue_list(q, 3);
}

/* Any context. */
void nvme_helper_complete_async_event(struct nvme_ctrl *ctrl, u16 status, u64 result)
{
	union nvme_result value = { .u64 = cpu_to_le64(result) };

	nvme_complete_async_event(ctrl, cpu_to_le16(status), &value);
}

/* Memory that is leaked on purpose, by its beginning. Any context. */
void nvme_helper_not_leak(const void *memory)
{
	kmemleak_not_leak(memory);
}

u32 nvme_helper_segments(struct request *rq)
{
	return blk_rq_nr_phys_segments(rq);
}

u32 nvme_helper_payload(struct request *rq)
{
	return blk_rq_payload_bytes(rq);
}

/* Do the bytes of @next follow those of @piece, also as pages? */
static bool follows(const struct bio_vec *piece, const struct bio_vec *next)
{
	u32 end = piece->bv_offset + piece->bv_len;

	return page_to_phys(piece->bv_page) + end == page_to_phys(next->bv_page) + next->bv_offset &&
	       piece->bv_page + end / PAGE_SIZE == next->bv_page + next->bv_offset / PAGE_SIZE;
}

/*
 * Lists the data of a request, which stay as they are until it ends. Adjacent pieces are joined, as the block
 * layer counts them. Any context.
 *
 * Returns the number of pieces, which may be more than there was room for.
 */
u32 nvme_helper_bvecs(struct request *rq, struct bio_vec *list, u32 room)
{
	struct bio_vec bv, piece = {};
	struct req_iterator iter;
	u32 n = 0;

	if (rq->rq_flags & RQF_SPECIAL_PAYLOAD) {
		if (room)
			list[0] = rq->special_vec;
		return 1;
	}
	rq_for_each_bvec(bv, rq, iter) {
		if (n && follows(&piece, &bv)) {
			piece.bv_len += bv.bv_len;
		} else {
			piece = bv;
			n++;
		}
		if (n <= room)
			list[n - 1] = piece;
	}
	return n;
}

/*
 * Raises the reference counts of a piece's pages for ever. Memory of kmalloc() has no counts: the ranges of a discard,
 * and the buffers of most admin commands. Their owner can free it.
 */
void nvme_helper_leak(const struct bio_vec *piece)
{
	struct page *page = piece->bv_page + piece->bv_offset / PAGE_SIZE;
	u32 n = DIV_ROUND_UP(piece->bv_offset % PAGE_SIZE + piece->bv_len, PAGE_SIZE);

	for (; n--; page++) {
		if (!PageSlab(page) && !folio_test_large_kmalloc(page_folio(page)))
			get_page(page);
		else
			pr_crit_once("a device may still use memory of kmalloc() that is freed\n");
	}
}
