// SPDX-License-Identifier: GPL-2.0
#include <linux/limits.h>

#include <kfabric.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

#include "kfabric_helpers.h"

/*
 * The caller checks the static key of an event, and calls these functions only if it is on. Any context.
 */

void kfi_helper_trace_refused(const struct kfi_helper_object *of, const char *call, int err, const char *why,
			      u64 index, u64 value)
{
	trace_kfi_refused(of, call, err, why, index, value);
}

#define BEGIN_EVENT(name)								\
	void kfi_helper_trace_##name(const struct kfi_helper_object *of)	\
	{									\
		trace_kfi_##name(of);						\
	}

#define END_EVENT(name)									\
	void kfi_helper_trace_##name(const struct kfi_helper_object *of, int err)	\
	{										\
		trace_kfi_##name(of, err);						\
	}

BEGIN_EVENT(mr_register)
END_EVENT(mr_registered)
BEGIN_EVENT(mr_close)
END_EVENT(mr_closed)
END_EVENT(connect)
BEGIN_EVENT(connected)
END_EVENT(disconnected)

void kfi_helper_trace_post(const struct kfi_helper_object *of, enum kfi_helper_op op, u64 bytes, u64 context,
			   int err)
{
	trace_kfi_post(of, op, bytes, context, err);
}

void kfi_helper_trace_complete(const struct kfi_helper_object *of, u64 context, u64 flags, u64 len, int err)
{
	trace_kfi_complete(of, context, flags, len, err);
}

void kfi_helper_trace_pool(const struct kfi_helper_object *of, u32 pages, bool hit)
{
	trace_kfi_pool(of, pages, hit);
}

int kfi_refuse_call(const char *call, int err, const char *why)
{
	static const struct kfi_helper_object none = { .provider = "", .domain = "" };

	trace_kfi_refused(&none, call, err, why, U64_MAX, 0);
	return err;
}
