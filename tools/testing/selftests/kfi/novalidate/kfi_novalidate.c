// SPDX-License-Identifier: GPL-2.0
/*
 * Takes nvmet_config_sem out of lockdep's validation.  The kernel's target takes it under handler_mutex of rdma_cm
 * (a command that arrives before the connection's event), and handler_mutex under it (a port is closed).  Lockdep
 * reports that circle once and then turns itself off, so it would see nothing of the host under test.  Load it after
 * nvmet and before the target is used.  It stays without effect, and can be unloaded, once it has done that.
 */
#include <linux/kprobes.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/rwsem.h>

static int __init novalidate_init(void)
{
	/* Not exported; the address of a function is known from a probe at it. */
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long (*lookup)(const char *name);
	struct rw_semaphore *sem;
	int ret;

	ret = register_kprobe(&probe);
	if (ret)
		return ret;
	lookup = (void *)probe.addr;
	unregister_kprobe(&probe);
	sem = (void *)lookup("nvmet:nvmet_config_sem");
	if (!sem)
		return -ENOENT;
	/* By its own name, which lasts longer than this module. */
	lockdep_set_class_and_name(sem, &__lockdep_no_validate__, sem->dep_map.name);
	return 0;
}

static void __exit novalidate_exit(void)
{
}

module_init(novalidate_init);
module_exit(novalidate_exit);
MODULE_DESCRIPTION("kfabric selftest: takes a lock of nvmet out of lockdep's validation");
MODULE_LICENSE("GPL");
