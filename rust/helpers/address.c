// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses in digits.
 */
#include <linux/inet.h>
#include <linux/socket.h>
#include <net/net_namespace.h>

#include "kfabric_helpers.h"

/**
 * kfi_helper_parse_address() - Read an address in digits, and a port.
 * @node: An IPv4 or IPv6 address, or NULL for any address.
 * @service: A port, or NULL for none.
 * @addr: Where to put them.
 *
 * Context: Process context; may sleep.
 * Return: 0, or -EINVAL.
 */
int kfi_helper_parse_address(const char *node, const char *service, struct sockaddr_storage *addr)
{
	return inet_pton_with_scope(&init_net, AF_UNSPEC, node ?: "0.0.0.0", service, addr);
}
