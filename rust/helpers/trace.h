/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kfi

#if !defined(KFI_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KFI_TRACE_H

#include <linux/tracepoint.h>

#include "kfabric_helpers.h"

/* The format files contain the values of these enumerators, for programs that read raw buffers. */
TRACE_DEFINE_ENUM(KFI_CLASS_UNSPEC);
TRACE_DEFINE_ENUM(KFI_CLASS_FABRIC);
TRACE_DEFINE_ENUM(KFI_CLASS_DOMAIN);
TRACE_DEFINE_ENUM(KFI_CLASS_EP);
TRACE_DEFINE_ENUM(KFI_CLASS_SRX_CTX);
TRACE_DEFINE_ENUM(KFI_CLASS_PEP);
TRACE_DEFINE_ENUM(KFI_CLASS_MR);
TRACE_DEFINE_ENUM(KFI_CLASS_EQ);
TRACE_DEFINE_ENUM(KFI_CLASS_CQ);
TRACE_DEFINE_ENUM(KFI_CLASS_CNTR);
TRACE_DEFINE_ENUM(KFI_HELPER_OP_SEND);
TRACE_DEFINE_ENUM(KFI_HELPER_OP_RECEIVE);
TRACE_DEFINE_ENUM(KFI_HELPER_OP_READ);
TRACE_DEFINE_ENUM(KFI_HELPER_OP_WRITE);
TRACE_DEFINE_ENUM(KFI_HELPER_OP_ATOMIC);

/*
 * kfi:kfi_refused - why a call was refused.
 *
 * call is the slot or function, and class and id the object that it was called on, with the numbers of `kfi list`.
 * Without an object that may be used, all fields but call are empty or 0. err is the (negative) errno for the caller.
 * index is the offending segment, or all ones without one. value is the offending value.
 */
TRACE_EVENT(kfi_refused,
	TP_PROTO(const struct kfi_helper_object *of, const char *call, int err, const char *why, u64 index, u64 value),
	TP_ARGS(of, call, err, why, index, value),
	TP_STRUCT__entry(
		__string(call, call)
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u32, class)
		__field(u64, id)
		__field(int, err)
		__string(why, why)
		__field(s64, index)
		__field(u64, value)
	),
	TP_fast_assign(
		__assign_str(call);
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->class = of->class;
		__entry->id = of->id;
		__entry->err = err;
		__assign_str(why);
		__entry->index = index;
		__entry->value = value;
	),
	TP_printk("call=%s provider=%s domain=%s domain_id=%llu class=%s id=%llu err=%d why='%s' index=%lld value=0x%llx",
		  __get_str(call), __get_str(provider), __get_str(domain), __entry->domain_id,
		  __print_symbolic(__entry->class, { KFI_CLASS_UNSPEC, "none" }, { KFI_CLASS_FABRIC, "fabric" },
				   { KFI_CLASS_DOMAIN, "domain" }, { KFI_CLASS_EP, "ep" },
				   { KFI_CLASS_SRX_CTX, "srx" }, { KFI_CLASS_PEP, "pep" },
				   { KFI_CLASS_MR, "mr" }, { KFI_CLASS_EQ, "eq" }, { KFI_CLASS_CQ, "cq" },
				   { KFI_CLASS_CNTR, "cntr" }),
		  __entry->id, __entry->err, __get_str(why), __entry->index, __entry->value)
);

/* A registration or a close begins. The numbers of region and domain are those of `kfi list`. */
DECLARE_EVENT_CLASS(kfi_mr_begin,
	TP_PROTO(const struct kfi_helper_object *of),
	TP_ARGS(of),
	TP_STRUCT__entry(
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u64, mr)
		__field(u64, length)
		__field(u64, access)
	),
	TP_fast_assign(
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->mr = of->id;
		__entry->length = of->length;
		__entry->access = of->access;
	),
	TP_printk("provider=%s domain=%s domain_id=%llu mr=%llu length=%llu access=0x%llx", __get_str(provider),
		  __get_str(domain), __entry->domain_id, __entry->mr, __entry->length, __entry->access)
);

/* A registration or a close has ended. err is 0 or the (negative) errno for the caller. */
DECLARE_EVENT_CLASS(kfi_mr_end,
	TP_PROTO(const struct kfi_helper_object *of, int err),
	TP_ARGS(of, err),
	TP_STRUCT__entry(
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u64, mr)
		__field(u64, length)
		__field(u64, access)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->mr = of->id;
		__entry->length = of->length;
		__entry->access = of->access;
		__entry->err = err;
	),
	TP_printk("provider=%s domain=%s domain_id=%llu mr=%llu length=%llu access=0x%llx err=%d",
		  __get_str(provider), __get_str(domain), __entry->domain_id, __entry->mr,
		  __entry->length, __entry->access, __entry->err)
);

/* The core begins a registration whose arguments it has checked. mr is 0. */
DEFINE_EVENT(kfi_mr_begin, kfi_mr_register,
	TP_PROTO(const struct kfi_helper_object *of), TP_ARGS(of));

/*
 * The core returns the region. If an event queue reports the registration, it is still pending. If err is not 0, the
 * registration has failed, and mr, length and access are 0.
 */
DEFINE_EVENT(kfi_mr_end, kfi_mr_registered,
	TP_PROTO(const struct kfi_helper_object *of, int err), TP_ARGS(of, err));

/* The close of a region begins. */
DEFINE_EVENT(kfi_mr_begin, kfi_mr_close,
	TP_PROTO(const struct kfi_helper_object *of), TP_ARGS(of));

/* The close of a region has ended. If err is 0, no peer can reach the memory. */
DEFINE_EVENT(kfi_mr_end, kfi_mr_closed,
	TP_PROTO(const struct kfi_helper_object *of, int err), TP_ARGS(of, err));

/* kfi:kfi_post - a transfer was posted. err is 0 or the (negative) errno for the caller. */
TRACE_EVENT(kfi_post,
	TP_PROTO(const struct kfi_helper_object *of, u32 op, u64 bytes, u64 context, int err),
	TP_ARGS(of, op, bytes, context, err),
	TP_STRUCT__entry(
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u32, class)
		__field(u64, id)
		__field(u32, op)
		__field(u64, bytes)
		__field(u64, context)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->class = of->class;
		__entry->id = of->id;
		__entry->op = op;
		__entry->bytes = bytes;
		__entry->context = context;
		__entry->err = err;
	),
	TP_printk("provider=%s domain=%s domain_id=%llu %s=%llu op=%s bytes=%llu context=0x%llx err=%d",
		  __get_str(provider), __get_str(domain), __entry->domain_id,
		  __entry->class == KFI_CLASS_EP ? "ep" : "srx", __entry->id,
		  __print_symbolic(__entry->op, { KFI_HELPER_OP_SEND, "send" }, { KFI_HELPER_OP_RECEIVE, "receive" },
				   { KFI_HELPER_OP_READ, "read" }, { KFI_HELPER_OP_WRITE, "write" },
				   { KFI_HELPER_OP_ATOMIC, "atomic" }),
		  __entry->bytes, __entry->context, __entry->err)
);

/*
 * kfi:kfi_complete - a completion queue gets an entry.
 *
 * context is the one of the call that posted the transfer. flags are the flags of the entry, for example KFI_SEND.
 * len is the length of a received message. err is 0 or a (negative) errno.
 */
TRACE_EVENT(kfi_complete,
	TP_PROTO(const struct kfi_helper_object *of, u64 context, u64 flags, u64 len, int err),
	TP_ARGS(of, context, flags, len, err),
	TP_STRUCT__entry(
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u64, cq)
		__field(u64, context)
		__field(u64, flags)
		__field(u64, len)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->cq = of->id;
		__entry->context = context;
		__entry->flags = flags;
		__entry->len = len;
		__entry->err = err;
	),
	TP_printk("provider=%s domain=%s domain_id=%llu cq=%llu context=0x%llx flags=0x%llx len=%llu err=%d",
		  __get_str(provider), __get_str(domain), __entry->domain_id, __entry->cq, __entry->context,
		  __entry->flags, __entry->len, __entry->err)
);

/* Events of a connection. err is 0 or a (negative) errno. */
DECLARE_EVENT_CLASS(kfi_connection,
	TP_PROTO(const struct kfi_helper_object *of, int err),
	TP_ARGS(of, err),
	TP_STRUCT__entry(
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u64, ep)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->ep = of->id;
		__entry->err = err;
	),
	TP_printk("provider=%s domain=%s domain_id=%llu ep=%llu err=%d", __get_str(provider),
		  __get_str(domain), __entry->domain_id, __entry->ep, __entry->err)
);

/* kfi_connect() or kfi_accept() has begun a connection or failed. err is 0 or the (negative) errno for the caller. */
DEFINE_EVENT(kfi_connection, kfi_connect,
	TP_PROTO(const struct kfi_helper_object *of, int err), TP_ARGS(of, err));

/* A connection has ended, or could not be established because of err. */
DEFINE_EVENT(kfi_connection, kfi_disconnected,
	TP_PROTO(const struct kfi_helper_object *of, int err), TP_ARGS(of, err));

/* kfi:kfi_connected - an endpoint is connected. */
TRACE_EVENT(kfi_connected,
	TP_PROTO(const struct kfi_helper_object *of),
	TP_ARGS(of),
	TP_STRUCT__entry(
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u64, ep)
	),
	TP_fast_assign(
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->ep = of->id;
	),
	TP_printk("provider=%s domain=%s domain_id=%llu ep=%llu", __get_str(provider), __get_str(domain),
		  __entry->domain_id, __entry->ep)
);

/* kfi:kfi_pool - a provider takes a device region of this many pages from a pool. hit says whether there was one. */
TRACE_EVENT(kfi_pool,
	TP_PROTO(const struct kfi_helper_object *of, u32 pages, bool hit),
	TP_ARGS(of, pages, hit),
	TP_STRUCT__entry(
		__string(provider, of->provider)
		__string(domain, of->domain)
		__field(u64, domain_id)
		__field(u32, pages)
		__field(bool, hit)
	),
	TP_fast_assign(
		__assign_str(provider);
		__assign_str(domain);
		__entry->domain_id = of->parent;
		__entry->pages = pages;
		__entry->hit = hit;
	),
	TP_printk("provider=%s domain=%s domain_id=%llu pages=%u hit=%d", __get_str(provider),
		  __get_str(domain), __entry->domain_id, __entry->pages, __entry->hit)
);

#endif /* KFI_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
