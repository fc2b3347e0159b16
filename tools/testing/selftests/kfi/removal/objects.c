// SPDX-License-Identifier: GPL-2.0
/* The open objects, and the threads of scenarios: see removal.h. */
#include "removal.h"

unsigned int unexpected;

struct kfi_info *info;
struct kfid_fabric *fabric;
struct kfid_domain *domain[2];
struct kfi_verbs_dom_ops *verbs;

void close_domain(unsigned int i, int want)
{
	int ret = kfi_close(&domain[i]->fid);

	if (ret != want)
		UNEXPECTED("closing domain %u gives %d, not %d", i, ret, want);
	if (!ret)
		domain[i] = NULL;
}

struct beginning {
	int (*run)(void *arg);
	void *arg;
	struct completion begun;
};

static int begin(void *arg)
{
	struct beginning b = *(struct beginning *)arg;

	complete(&((struct beginning *)arg)->begun);
	return b.run(b.arg);
}

struct task_struct *begin_thread(int (*run)(void *arg), void *arg)
{
	struct beginning b = { run, arg, COMPLETION_INITIALIZER_ONSTACK(b.begun) };
	struct task_struct *thread = kthread_create(begin, &b, "kfi_removal");

	if (IS_ERR(thread)) {
		UNEXPECTED("no thread");
		return NULL;
	}
	get_task_struct(thread);
	wake_up_process(thread);
	/* One that is stopped before would never run. */
	wait_for_completion(&b.begun);
	return thread;
}

void wait_for_thread(struct task_struct *thread)
{
	if (!thread)
		return;
	kthread_stop(thread);
	put_task_struct(thread);
}
