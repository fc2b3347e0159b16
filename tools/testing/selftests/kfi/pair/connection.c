// SPDX-License-Identifier: GPL-2.0
/* A client, from its request to its end. */
#include <linux/slab.h>

#include "server.h"

static DEFINE_MUTEX(lock);
/* The next region's key, where the provider leaves that to the consumer. */
static atomic_t next_key;
static LIST_HEAD(connections);

static bool opened(struct connection *c)
{
	struct kfi_cq_attr cq = {
		.size = 64,
		.format = KFI_CQ_FORMAT_DATA,
		.wait_obj = KFI_WAIT_UNSPEC,
	};
	struct kfi_eq_attr eq = { .wait_obj = KFI_WAIT_UNSPEC };
	struct listener *l = c->listener;
	/* One right there must be; this one opens nothing to the client. */
	u64 access = KFI_SEND | (c->hello.flags & PAIR_READ ? KFI_REMOTE_READ : 0) |
		     (c->hello.flags & PAIR_WRITE ? KFI_REMOTE_WRITE : 0);
	int ret;

	c->memory = kmalloc(MEMORY, GFP_KERNEL);
	c->scratch = kmalloc(PAIR_REGION, GFP_KERNEL);
	c->in = kmalloc(PAIR_RECEIVES * PAIR_MESSAGE, GFP_KERNEL);
	c->out = kmalloc(PAIR_MESSAGE, GFP_KERNEL);
	ret = c->memory && c->scratch && c->in && c->out ? 0 : -ENOMEM;
	if (!ret) {
		pair_fill(c->memory, MEMORY, c->base);
		ret = kfi_mr_reg(l->domain, c->memory + PAIR_GUARD, PAIR_REGION, access, 0,
				 atomic_inc_return(&next_key), 0, &c->mr, NULL);
	}
	if (!ret)
		ret = kfi_eq_open(l->fabric, &eq, &c->eq, NULL, NULL);
	if (!ret)
		ret = kfi_cq_open(l->domain, &cq, &c->tx, NULL, NULL);
	if (!ret)
		ret = kfi_cq_open(l->domain, &cq, &c->rx, NULL, NULL);
	c->info->tx_attr->size = PAIR_RECEIVES;
	c->info->rx_attr->size = PAIR_RECEIVES;
	if (!ret)
		ret = kfi_endpoint(l->domain, c->info, &c->ep, c);
	if (!ret)
		ret = kfi_ep_bind(c->ep, &c->eq->fid, 0);
	if (!ret)
		ret = kfi_ep_bind(c->ep, &c->tx->fid, KFI_TRANSMIT);
	if (!ret)
		ret = kfi_ep_bind(c->ep, &c->rx->fid, KFI_RECV);
	if (!ret)
		ret = kfi_enable(c->ep);
	if (ret)
		wrong("a connection can't be opened: %d", ret);
	return !ret;
}

static bool accepted(struct connection *c)
{
	struct pair_welcome welcome = {
		.addr = c->mr->iova,
		.key = kfi_mr_key(c->mr),
		.seed = c->hello.seed,
	};
	int ret;

	pair_fill(welcome.rest, sizeof(welcome.rest), c->hello.seed + 1);
	ret = kfi_accept(c->ep, &welcome, sizeof(welcome));
	if (ret)
		wrong("accepting: %d", ret);
	return !ret;
}

/* That the client has gone meanwhile is none of the server's faults. */
static bool connected(struct connection *c)
{
	struct kfi_eq_cm_entry entry;
	ssize_t len;
	u32 event;

	do {
		len = kfi_eq_sread(c->eq, &event, &entry, sizeof(entry), STOP_MS, 0);
	} while (len == -KFI_EAGAIN && !kthread_should_stop());
	if (len >= 0 && (event != KFI_CONNECTED || entry.fid != &c->ep->fid))
		wrong("event %u instead of a connection", event);
	return len >= 0 && event == KFI_CONNECTED;
}

/*
 * Closing ends the client's request under way, which may be the one that has failed here. So the
 * client goes first, when it has been told why.
 */
static void left(struct connection *c)
{
	struct kfi_eq_cm_entry entry;
	ssize_t len;
	u32 event;

	do {
		len = kfi_eq_sread(c->eq, &event, &entry, sizeof(entry), STOP_MS, 0);
	} while (len == -KFI_EAGAIN && !kthread_should_stop());
}

static void close_one(struct kfid *fid, const char *what)
{
	int ret = kfi_close(fid);

	if (ret)
		wrong("closing %s: %d", what, ret);
}

static void closed(struct connection *c)
{
	if (c->ep)
		close_one(&c->ep->fid, "an endpoint");
	if (c->tx)
		close_one(&c->tx->fid, "a completion queue");
	if (c->rx)
		close_one(&c->rx->fid, "a completion queue");
	if (c->eq)
		close_one(&c->eq->fid, "an event queue");
	if (c->mr) {
		close_one(&c->mr->fid, "a region");
		if (c->hello.flags & PAIR_UNTOUCHED &&
		    !pair_holds(c->memory, MEMORY, c->base, 0, 0, 0))
			wrong("a region holds other bytes though nobody may write there");
	}
	kfi_freeinfo(c->info);
	kfree(c->memory);
	kfree(c->scratch);
	kfree(c->in);
	kfree(c->out);
}

static int connection_main(void *arg)
{
	struct connection *c = arg;

	if (opened(c) && serve_receives(c) && accepted(c) && connected(c) && serve(c))
		left(c);
	closed(c);
	atomic_dec(&connections_open);
	WRITE_ONCE(c->ended, true);
	return 0;
}

void connection_start(struct listener *l, struct kfi_info *info, const struct pair_hello *hello)
{
	struct connection *c = kzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		goto err;
	c->listener = l;
	c->info = info;
	c->hello = *hello;
	c->base = hello->seed;
	c->task = kthread_create(connection_main, c, "kfi_pair_serve");
	if (IS_ERR(c->task))
		goto err;
	get_task_struct(c->task);
	atomic_inc(&connections_open);
	mutex_lock(&lock);
	list_add(&c->list, &connections);
	mutex_unlock(&lock);
	wake_up_process(c->task);
	return;
err:
	wrong("no memory for a connection");
	kfi_freeinfo(info);
	kfree(c);
}

/* Frees what has ended; or ends all. */
void connections_reap(bool all)
{
	struct connection *c, *next;
	LIST_HEAD(reaped);

	mutex_lock(&lock);
	list_for_each_entry_safe(c, next, &connections, list)
		if (all || READ_ONCE(c->ended))
			list_move(&c->list, &reaped);
	mutex_unlock(&lock);
	list_for_each_entry_safe(c, next, &reaped, list) {
		kthread_stop_put(c->task);
		kfree(c);
	}
}
