// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_going.ko: holds up the notifiers of a module that is unloaded, as a slow notifier would.
 *
 * Meanwhile nobody can register or unregister a module notifier.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/notifier.h>

static char *victim = "";
module_param(victim, charp, 0);
MODULE_PARM_DESC(victim, "name of the module");

static bool hold = true;
module_param(hold, bool, 0600);
MODULE_PARM_DESC(hold, "as long as it is true, the notifiers are held up");

static bool held;
module_param(held, bool, 0400);
MODULE_PARM_DESC(held, "true while the notifiers are held up");

static int module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct module *mod = data;

	if (event != MODULE_STATE_GOING || strcmp(mod->name, victim))
		return NOTIFY_DONE;
	WRITE_ONCE(held, true);
	while (READ_ONCE(hold))
		msleep(10);
	WRITE_ONCE(held, false);
	return NOTIFY_OK;
}

static struct notifier_block notifier = {
	.notifier_call = module_event,
};

static int __init kfi_going_init(void)
{
	return register_module_notifier(&notifier);
}

static void __exit kfi_going_exit(void)
{
	unregister_module_notifier(&notifier);
}

module_init(kfi_going_init);
module_exit(kfi_going_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("kfabric developers");
MODULE_DESCRIPTION("Holds up the notifiers of a module that is unloaded");
