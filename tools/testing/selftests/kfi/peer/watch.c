// SPDX-License-Identifier: GPL-2.0
/*
 * The test peer and device removal. A domain tells one consumer that its device goes away, and any
 * number of peers may be open on a domain. So they share one watch per domain.
 */
#include <linux/list.h>
#include <linux/slab.h>

#include <kfi_domain.h>
#include <kfi_verbs_ext.h>

#include "peer.h"

/**
 * struct peer_watch - a domain that has peers
 * @entry: In the list of all watches.
 * @domain: The domain.
 * @ops: Its extension.
 * @lock: Protects @peers and @gone. Taken before any peer's own lock.
 * @peers: The domain's peers.
 * @gone: Whether the device has gone away.
 */
struct peer_watch {
	struct list_head entry;
	struct kfid_domain *domain;
	const struct kfi_verbs_dom_ops *ops;
	struct mutex lock;	/* the list below */
	struct list_head peers;
	bool gone;
};

/* Protects the list of watches, and that there is one per domain. Taken before all other locks. */
static DEFINE_MUTEX(watches_lock);
static LIST_HEAD(watches);

static void on_removal(void *arg)
{
	struct peer_watch *watch = arg;
	struct kfi_peer *peer;

	mutex_lock(&watch->lock);
	watch->gone = true;
	list_for_each_entry(peer, &watch->peers, in_watch)
		kfi_peer_let_go(peer);
	mutex_unlock(&watch->lock);
}

static struct peer_watch *find_watch(struct kfid_domain *domain)
{
	struct peer_watch *watch;

	list_for_each_entry(watch, &watches, entry)
		if (watch->domain == domain)
			return watch;
	return NULL;
}

static struct peer_watch *new_watch(struct kfid_domain *domain)
{
	struct kfid *fid = &domain->fid;
	struct peer_watch *watch;
	void *ops;
	int ret;

	/*
	 * Does the same as kfi_open_ops(); but the peer takes nothing of the core, nor keeps it
	 * loaded.
	 */
	ret = fid->ops->ops_open(fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL);
	if (ret)
		return ERR_PTR(ret);
	watch = kzalloc_obj(*watch);
	if (!watch)
		return ERR_PTR(-ENOMEM);
	watch->domain = domain;
	watch->ops = ops;
	mutex_init(&watch->lock);
	INIT_LIST_HEAD(&watch->peers);

	ret = watch->ops->on_removal(fid, on_removal, watch);
	if (ret) {
		kfree(watch);
		return ERR_PTR(ret);
	}
	list_add(&watch->entry, &watches);
	return watch;
}

static void drop_if_unused(struct peer_watch *watch)
{
	if (!list_empty(&watch->peers))
		return;
	/* Waits for a callback that is running; later than that there is none. */
	watch->ops->on_removal(&watch->domain->fid, NULL, watch);
	list_del(&watch->entry);
	mutex_destroy(&watch->lock);
	kfree(watch);
}

/* Put the peer on the list, unless the device has gone meanwhile. */
static int join(struct peer_watch *watch, struct kfi_peer *peer, struct ib_pd **pd)
{
	int ret = 0;

	mutex_lock(&watch->lock);
	*pd = watch->gone ? NULL : watch->ops->get_pd(&watch->domain->fid);
	if (*pd) {
		list_add(&peer->in_watch, &watch->peers);
		peer->watch = watch;
	} else {
		ret = -ENODEV;
	}
	mutex_unlock(&watch->lock);
	return ret;
}

/**
 * peer_watch_domain() - From now on let go of the device when it goes away.
 * @peer: The peer.
 * @domain: Its domain.
 * @pd: Gets the domain's protection domain; valid until the peer has let go.
 *
 * Return: 0 or an errno.
 */
int peer_watch_domain(struct kfi_peer *peer, struct kfid_domain *domain, struct ib_pd **pd)
{
	struct peer_watch *watch;
	int ret;

	mutex_lock(&watches_lock);
	watch = find_watch(domain);
	if (!watch)
		watch = new_watch(domain);
	if (IS_ERR(watch)) {
		ret = PTR_ERR(watch);
	} else {
		ret = join(watch, peer, pd);
		if (ret)
			drop_if_unused(watch);
	}
	mutex_unlock(&watches_lock);
	return ret;
}

/**
 * peer_unwatch() - Take back peer_watch_domain().
 * @peer: The peer; nothing happens if it has no watch.
 */
void peer_unwatch(struct kfi_peer *peer)
{
	struct peer_watch *watch = peer->watch;

	if (!watch)
		return;
	mutex_lock(&watches_lock);
	mutex_lock(&watch->lock);
	list_del(&peer->in_watch);
	mutex_unlock(&watch->lock);
	peer->watch = NULL;
	drop_if_unused(watch);
	mutex_unlock(&watches_lock);
}
