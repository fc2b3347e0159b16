/* SPDX-License-Identifier: GPL-2.0 */
/* What bindgen reads for the RDMA abstractions. */
#include <rdma/ib_verbs.h>
#include <rdma/ib_cache.h>
#include <rdma/restrack.h>
#include <rdma_helpers.h>
