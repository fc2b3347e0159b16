/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kfi

#if !defined(KFI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KFI_TRACE_H

#include <linux/tracepoint.h>

/*
 * kfi:kfi_refused - why a call was refused.
 *
 * err is the (negative) errno for the caller. index is the offending segment, or all ones without one.
 * value is the offending value.
 */
TRACE_EVENT(kfi_refused,
	TP_PROTO(int err, const char *why, u64 index, u64 value),
	TP_ARGS(err, why, index, value),
	TP_STRUCT__entry(
		__field(int, err)
		__string(why, why)
		__field(u64, index)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->err = err;
		__assign_str(why);
		__entry->index = index;
		__entry->value = value;
	),
	TP_printk("err=%d why=\"%s\" index=%lld value=0x%llx", __entry->err, __get_str(why),
		  (s64)__entry->index, __entry->value)
);

#endif /* KFI_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
