// SPDX-License-Identifier: GPL-2.0
/* An address at which clients come in. */
#include "kfi_pair_info.h"
#include "server.h"

struct connreq {
	struct kfi_eq_cm_entry entry;
	struct pair_hello hello;
	u8 rest[256];
};

static void answer(struct listener *l, const struct connreq *r, size_t len)
{
	const struct pair_hello *hello = &r->hello;
	struct kfi_info *info = r->entry.info;

	if (len < sizeof(r->entry) + sizeof(*hello) || hello->magic != PAIR_MAGIC ||
	    !pair_is(hello->rest, sizeof(hello->rest), hello->seed)) {
		wrong("a request with %zu bytes of other private data", len - sizeof(r->entry));
		listener_reject(l, info, 0);
	} else if (hello->flags & PAIR_REFUSE) {
		listener_reject(l, info, hello->seed);
	} else {
		connection_start(l, info, hello);
	}
}

static int listener_main(void *arg)
{
	struct listener *l = arg;
	struct kfi_eq_err_entry err;
	struct connreq *r = kzalloc(sizeof(*r), GFP_KERNEL);
	ssize_t len;
	u32 event;

	if (!r)
		wrong("no memory");
	while (!kthread_should_stop()) {
		if (!r) {
			schedule_timeout_interruptible(HZ);
			continue;
		}
		len = kfi_eq_sread(l->eq, &event, r, sizeof(*r), STOP_MS, 0);
		connections_reap(false);
		if (len >= (ssize_t)sizeof(r->entry) && event == KFI_CONNREQ) {
			answer(l, r, len);
		} else if (len == -KFI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			kfi_eq_readerr(l->eq, &err, 0);
			wrong("a listener has failed: %d", err.err);
		} else if (len >= 0) {
			wrong("a listener gets event %u", event);
		} else if (len != -KFI_EAGAIN && !kthread_should_stop()) {
			wrong("waiting for requests: %zd", len);
			schedule_timeout_interruptible(HZ);
		}
	}
	kfree(r);
	return 0;
}

static void close_all(struct listener *l)
{
	int ret = 0;

	listener_deaf(l);
	if (l->eq)
		ret = kfi_close(&l->eq->fid);
	if (!ret && l->domain)
		ret = kfi_close(&l->domain->fid);
	if (!ret && l->fabric)
		ret = kfi_close(&l->fabric->fid);
	if (ret)
		wrong("closing: %d", ret);
	kfi_freeinfo(l->info);
	memset(l, 0, sizeof(*l));
}

int listener_start(struct listener *l, const char *provider, const char *address, const char *port)
{
	struct kfi_eq_attr eq = { .wait_obj = KFI_WAIT_UNSPEC };
	int ret;

	l->address = address;
	ret = pair_getinfo(provider, address, port, KFI_SOURCE, &l->info);
	if (ret)
		return ret;
	ret = kfi_fabric(l->info->fabric_attr, &l->fabric, NULL);
	if (!ret)
		ret = kfi_domain(l->fabric, l->info, &l->domain, NULL);
	if (!ret)
		ret = kfi_eq_open(l->fabric, &eq, &l->eq, NULL, NULL);
	if (!ret)
		ret = listener_listen(l);
	if (ret)
		goto err;
	l->task = kthread_create(listener_main, l, "kfi_pair_listen");
	if (IS_ERR(l->task)) {
		ret = PTR_ERR(l->task);
		goto err;
	}
	get_task_struct(l->task);
	wake_up_process(l->task);
	return 0;
err:
	close_all(l);
	return ret;
}

void listener_stop(struct listener *l)
{
	close_all(l);
}
