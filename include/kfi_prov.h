/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: the side of providers. Consumers don't include this.
 */
#ifndef _KFI_PROV_H_
#define _KFI_PROV_H_

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/types.h>

#include "kfabric.h"

struct module;

/**
 * struct kfi_provider - A provider.
 * @version: The provider's own version, by KFI_VERSION().
 * @kfi_version: The version of this API that it was written for, by KFI_VERSION().
 * @context: The core's.
 * @name: The provider's name; consumers find it as prov_name.
 * @kgetinfo: Find what it offers: the arguments and results of kfi_getinfo(). May sleep.
 * @kfabric: Open a fabric: the arguments and results of kfi_fabric(). May sleep. The same fabric may
 *	be given out again while it is open; it is then closed as often as it was opened. While it
 *	is open the core has a table of its own in its fid.ops, which the provider leaves there.
 * @cleanup: Called once, when the core lets go of the provider; may sleep. Or NULL.
 * @comp: Completed when @ref_cnt reaches 0.
 * @ref_cnt: References to the provider; the core's own is one of them.
 *
 * Lives from kfi_provider_register() to kfi_provider_deregister() and doesn't change meanwhile,
 * except for what is the core's: @context, @comp and @ref_cnt.
 */
struct kfi_provider {
	u32			version;
	u32			kfi_version;
	struct kfi_context	context;
	const char		*name;
	int	(*kgetinfo)(u32 version, const char *node, const char *service, u64 flags,
			    struct kfi_info *hints, struct kfi_info **info);
	int	(*kfabric)(struct kfi_fabric_attr *attr, struct kfid_fabric **fabric,
			   void *context);
	void	(*cleanup)(void);
	struct completion	comp;
	atomic_t		ref_cnt;
};

/* Not to be called directly: kfi_provider_register() adds the module. */
int __kfi_provider_register(struct kfi_provider *provider, struct module *owner);

/**
 * kfi_provider_register() - Make a provider known to consumers.
 * @provider: The provider.
 *
 * The calling module can't be unloaded while a fabric of the provider is open. Among providers of
 * one name the one with the newest version counts.
 *
 * Context: Process context; may sleep.
 * Return: 0, or:
 *
 * * -KFI_EINVAL: @provider is NULL, or has no name, kgetinfo or kfabric.
 * * -KFI_ENOSYS: it was written for another major version of this API, or for a newer minor one.
 * * -KFI_EEXIST: a provider of that name, of the same or of a newer version, is registered.
 * * -KFI_ENOMEM: out of memory.
 */
#define kfi_provider_register(provider)	__kfi_provider_register((provider), THIS_MODULE)

/**
 * kfi_provider_deregister() - Take a provider back.
 * @provider: The provider.
 *
 * On return nothing of kfabric calls it any more. Waits for calls that are under way and for open
 * fabrics of the provider.
 *
 * Context: Process context; sleeps.
 * Return: 0, -KFI_EINVAL if @provider is NULL, or -KFI_ENODATA if it isn't registered.
 */
int kfi_provider_deregister(struct kfi_provider *provider);

/**
 * kfi_ref_provider() - Take a reference to a provider.
 * @provider: The provider; the caller has a reference to it already.
 *
 * Context: Any.
 */
static inline void kfi_ref_provider(struct kfi_provider *provider)
{
	atomic_inc(&provider->ref_cnt);
}

/**
 * kfi_deref_provider() - Drop a reference to a provider.
 * @provider: The provider.
 *
 * Context: Any.
 */
static inline void kfi_deref_provider(struct kfi_provider *provider)
{
	if (atomic_dec_and_test(&provider->ref_cnt))
		complete(&provider->comp);
}

/**
 * kfi_init_id() - Prepare a new object's reference count: one reference, its opener's.
 * @fid: The object's fid.
 *
 * For objects that the caller makes itself, as are the other functions of this kind: kfabric counts references to
 * its own by itself.
 *
 * Context: Any.
 */
static inline void kfi_init_id(struct kfid *fid)
{
	init_completion(&fid->comp);
	atomic_set(&fid->ref_cnt, 1);
}

/**
 * kfi_ref_id() - Take a reference to an object.
 * @fid: The object's fid; the caller has a reference to it already.
 *
 * Context: Any.
 */
static inline void kfi_ref_id(struct kfid *fid)
{
	atomic_inc(&fid->ref_cnt);
}

/**
 * kfi_deref_id() - Drop a reference to an object.
 * @fid: The object's fid.
 *
 * Context: Any.
 */
static inline void kfi_deref_id(struct kfid *fid)
{
	if (atomic_dec_and_test(&fid->ref_cnt))
		complete(&fid->comp);
}

/**
 * kfi_close_id() - Drop the opener's reference and wait until nobody has one.
 * @fid: The object's fid; it can be freed afterwards.
 *
 * Context: Process context; sleeps, uninterruptibly.
 */
static inline void kfi_close_id(struct kfid *fid)
{
	kfi_deref_id(fid);
	wait_for_completion(&fid->comp);
}

#endif /* _KFI_PROV_H_ */
