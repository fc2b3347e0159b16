// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_pair_server.ko: listens, and serves the clients of kfi_selftest's suites "pair", "killed" and
 * "cut", in this kernel or in another one. kfi_pair.h describes the protocol.
 *
 *	insmod kfi_pair_server.ko provider=verbs address=198.51.100.1,2001:db8::1
 */
#include <linux/module.h>

#include "server.h"

static char *provider = "loop";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "whose endpoints to use (default: loop)");

static char *address[MAX_ADDRESSES] = { "192.0.2.1" };
module_param_array(address, charp, &listener_count, 0444);
MODULE_PARM_DESC(address, "where to listen: IPv4 or IPv6 (default: 192.0.2.1)");

static char *port = "18515";
module_param(port, charp, 0444);
MODULE_PARM_DESC(port, "the port (default: 18515)");

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

	for (i = 0; i < listener_count; i++) {
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
	stop(listener_count);
}

module_init(server_init);
module_exit(server_exit);
MODULE_DESCRIPTION("kfabric selftests: the server of a pair");
MODULE_LICENSE("GPL");
