// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_pair_server.ko: listens, and serves the clients of kfi_selftest's suites "pair", "killed" and
 * "cut", in this kernel or in another one. kfi_pair.h describes the protocol.
 *
 *	insmod kfi_pair_server.ko provider=verbs address=198.51.100.1,2001:db8::1
 */
#include <linux/module.h>

#include "server.h"

#define MAX_ADDRESSES	2

static char *provider = "loop";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "whose endpoints to use (default: loop)");

static char *address[MAX_ADDRESSES] = { "192.0.2.1" };
static unsigned int addresses = 1;
module_param_array(address, charp, &addresses, 0444);
MODULE_PARM_DESC(address, "where to listen: IPv4 or IPv6 (default: 192.0.2.1)");

static char *port = "18515";
module_param(port, charp, 0444);
MODULE_PARM_DESC(port, "the port (default: 18515)");

static unsigned int failures;
module_param(failures, uint, 0444);
MODULE_PARM_DESC(failures, "how often something was not as it should be (to be read)");

static DEFINE_SPINLOCK(failures_lock);
static struct listener listeners[MAX_ADDRESSES];

void wrong(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	spin_lock(&failures_lock);
	failures++;
	spin_unlock(&failures_lock);
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("kfi_pair_server: %pV\n", &vaf);
	va_end(args);
}

unsigned int wrong_so_far(void)
{
	return READ_ONCE(failures);
}

void listeners_deaf(void)
{
	int i;

	for (i = 0; i < addresses; i++)
		listener_deaf(&listeners[i]);
}

int listeners_listen(void)
{
	int i, ret = 0;

	for (i = 0; !ret && i < addresses; i++)
		ret = listener_listen(&listeners[i]);
	return ret;
}

static void stop(int started)
{
	int i;

	for (i = 0; i < started; i++)
		kthread_stop_put(listeners[i].task);
	connections_reap(true);
	for (i = 0; i < started; i++)
		listener_stop(&listeners[i]);
}

static int __init server_init(void)
{
	int i, ret;

	for (i = 0; i < addresses; i++) {
		ret = listener_start(&listeners[i], provider, address[i], port);
		if (ret) {
			pr_err("kfi_pair_server: %s: %d\n", address[i], ret);
			stop(i);
			return ret;
		}
	}
	return 0;
}

static void __exit server_exit(void)
{
	stop(addresses);
}

module_init(server_init);
module_exit(server_exit);
MODULE_DESCRIPTION("kfabric selftests: the server of a pair");
MODULE_LICENSE("GPL");
