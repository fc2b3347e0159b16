// SPDX-License-Identifier: GPL-2.0
/* The answers of a subnet administrator, for InfiniBand. */
#include "nic.h"

bool nic_sa_answer(struct nic_qp *from, struct nic_port *port, const struct nic_datagram *gram)
{
	return false;
}
