/* SPDX-License-Identifier: GPL-2.0 */
/* Input of bindgen for the RDMA abstractions. */
#include <rdma/ib_verbs.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/restrack.h>
#include <rdma_helpers.h>
#include <rdma_cm_helpers.h>
