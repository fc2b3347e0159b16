/* SPDX-License-Identifier: GPL-2.0 */
/* Input of bindgen for the core: the C API, and the core's helpers. */
#include <linux/bvec.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <linux/scatterlist.h>
#include <kfabric.h>
#include <kfi_errno.h>
#include <kfi_domain.h>
#include <kfi_eq.h>
#include <kfi_endpoint.h>
#include <kfi_cm.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>
#include <kfi_atomic.h>
#include <kfi_prov.h>
#include <kfi_batch_ext.h>
#include <kfi_dma_ext.h>
#include <kfi_raw_ext.h>
#include <kfi_reserve_ext.h>
#include <kfi_reuse_ext.h>
#include <kfi_verbs_ext.h>
#include <kfi_loop_ext.h>
#include <kfabric_helpers.h>
#include <loop_helpers.h>
#include <verbs_helpers.h>
