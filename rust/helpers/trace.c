// SPDX-License-Identifier: GPL-2.0
#define CREATE_TRACE_POINTS
#include "trace.h"

#include <linux/limits.h>

#include <kfabric.h>

#include "kfabric_helpers.h"

/* Only error paths come here, so a call costs nothing that matters. */
void kfi_helper_trace_refused(int err, const char *why, u64 index, u64 value)
{
	trace_kfi_refused(err, why, index, value);
}

int kfi_refuse(int err, const char *why)
{
	trace_kfi_refused(err, why, U64_MAX, 0);
	return err;
}
