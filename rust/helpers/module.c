// SPDX-License-Identifier: GPL-2.0
/*
 * Modules that go: who has left something of theirs with the core is told of before the code is
 * freed.
 */
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/rcupdate.h>
#include <linux/stringify.h>

#include "kfabric_helpers.h"

MODULE_VERSION(__stringify(KFABRIC_VERSION));

/* False from the moment on at which nothing keeps the module any more. */
bool kfi_helper_module_is_live(struct module *mod)
{
	return module_is_live(mod);
}

/* The module that is waited for. */
static struct module *leaving;

/*
 * Sets the module that is waited for, or NULL.  Later queries see it, and the memory accesses before
 * earlier queries have completed.
 */
void kfi_helper_module_leaves(struct module *mod)
{
	WRITE_ONCE(leaving, mod);
	smp_mb(); /* pairs with that of kfi_helper_of_leaving_module() */
}

/* Whether the code is that module's.  Any context. */
bool kfi_helper_of_leaving_module(unsigned long code)
{
	struct module *mod;
	bool own;

	smp_mb(); /* pairs with that of kfi_helper_module_leaves() */
	/* A module that isn't waited for any more is freed after a grace period. */
	rcu_read_lock();
	mod = READ_ONCE(leaving);
	own = mod && within_module(code, mod);
	rcu_read_unlock();
	return own;
}

/* Called after the module's exit function, or its init function that failed. */
static int module_event(struct notifier_block *nb, unsigned long event, void *mod)
{
	if (event == MODULE_STATE_GOING)
		kfi_core_module_gone(mod);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = {
	.notifier_call = module_event,
};

int kfi_helper_watch_modules(void)
{
	return register_module_notifier(&module_notifier);
}

void kfi_helper_unwatch_modules(void)
{
	unregister_module_notifier(&module_notifier);
}
