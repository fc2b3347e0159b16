// SPDX-License-Identifier: GPL-2.0
/*
 * What API 1.7 fixes: values, the order of fields, sizes. A change here breaks consumers that were
 * built before, so this file only ever grows. It has no code.
 *
 * Sizes and offsets are in bytes. Objects begin with a struct kfid, which lock debugging enlarges,
 * so theirs are counted from its end.
 */
#include <linux/build_bug.h>
#include <linux/stddef.h>

#include <kfabric.h>
#include <kfi_atomic.h>
#include <kfi_cm.h>
#include <kfi_dma_ext.h>
#include <kfi_domain.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>
#include <kfi_errno.h>
#include <kfi_prov.h>
#include <kfi_raw_ext.h>
#include <kfi_batch_ext.h>
#include <kfi_reserve_ext.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>
#include <kfi_trigger.h>
#include <kfi_verbs_ext.h>

/* A constant has this value, or is this bit. */
#define VALUE(name, n)		static_assert((name) == (n))
#define FLAG(name, bit)		static_assert((name) == 1ULL << (bit))

/* A structure has this size, or a field at this place. */
#define SIZE(type, n)		static_assert(sizeof(struct type) == (n))
#define FIELD(type, field, n)	static_assert(offsetof(struct type, field) == (n))

/* The same for objects, from the end of their struct kfid. */
#define OBJECT(type, n)		SIZE(type, sizeof(struct kfid) + (n))
#define MEMBER(type, field, n)	FIELD(type, field, sizeof(struct kfid) + (n))

/* A table of operations: its size comes first, then @n slots, counted from 1. */
#define TABLE(type, n)		static_assert(!offsetof(struct type, size)); \
				SIZE(type, sizeof(size_t) + (n) * sizeof(void *))
#define SLOT(type, n, op)	FIELD(type, op, sizeof(size_t) + ((n) - 1) * sizeof(void *))

/* --- kfabric.h ------------------------------------------------------------------------------ */

VALUE(KFI_MAJOR_VERSION, 1);
VALUE(KFI_MINOR_VERSION, 7);
VALUE(KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION), 0x10007);
VALUE(KFI_MAJOR(0x10007), 1);
VALUE(KFI_MINOR(0x10007), 7);
VALUE(KFI_PATH_MAX, 256);
VALUE(KFI_NAME_MAX, 64);
VALUE(KFI_VERSION_MAX, 64);
FLAG(KFI_PROV_SPECIFIC, 31);

FLAG(KFI_MSG, 1);
FLAG(KFI_RMA, 2);
FLAG(KFI_TAGGED, 3);
FLAG(KFI_ATOMIC, 4);
FLAG(KFI_ATOMICS, 4);
FLAG(KFI_MULTICAST, 5);
FLAG(KFI_TAGGED_RMA, 6);
FLAG(KFI_READ, 8);
FLAG(KFI_WRITE, 9);
FLAG(KFI_RECV, 10);
FLAG(KFI_SEND, 11);
FLAG(KFI_TRANSMIT, 11);
FLAG(KFI_REMOTE_READ, 12);
FLAG(KFI_REMOTE_WRITE, 13);
FLAG(KFI_MULTI_RECV, 16);
FLAG(KFI_REMOTE_CQ_DATA, 17);
FLAG(KFI_MORE, 18);
FLAG(KFI_PEEK, 19);
FLAG(KFI_TRIGGER, 20);
FLAG(KFI_FENCE, 21);
FLAG(KFI_COMPLETION, 24);
FLAG(KFI_EVENT, 24);
FLAG(KFI_INJECT, 25);
FLAG(KFI_INJECT_COMPLETE, 26);
FLAG(KFI_TRANSMIT_COMPLETE, 27);
FLAG(KFI_DELIVERY_COMPLETE, 28);
FLAG(KFI_AFFINITY, 29);
FLAG(KFI_COMMIT_COMPLETE, 30);
FLAG(KFI_TAGGED_MULTI_RECV, 31);
FLAG(KFI_RMA_PMEM, 49);
FLAG(KFI_SOURCE_ERR, 50);
FLAG(KFI_LOCAL_COMM, 51);
FLAG(KFI_REMOTE_COMM, 52);
FLAG(KFI_SHARED_AV, 53);
FLAG(KFI_PROV_ATTR_ONLY, 54);
FLAG(KFI_NUMERICHOST, 55);
FLAG(KFI_RMA_EVENT, 56);
FLAG(KFI_SOURCE, 57);
FLAG(KFI_NAMED_RX_CTX, 58);
FLAG(KFI_DIRECTED_RECV, 59);
FLAG(KFI_INVALIDATE, 60);
FLAG(KFI_SELECTIVE_COMPLETION, 59);

FLAG(KFI_CONTEXT2, 52);
FLAG(KFI_RESTRICTED_COMP, 53);
FLAG(KFI_NOTIFY_FLAGS_ONLY, 54);
FLAG(KFI_LOCAL_MR, 55);
FLAG(KFI_RX_CQ_DATA, 56);
FLAG(KFI_ASYNC_IOV, 57);
FLAG(KFI_MSG_PREFIX, 58);
FLAG(KFI_CONTEXT, 59);

FLAG(KFI_MR_LOCAL, 1);
FLAG(KFI_MR_RAW, 2);
FLAG(KFI_MR_VIRT_ADDR, 3);
FLAG(KFI_MR_PROV_KEY, 4);
FLAG(KFI_MR_RMA_EVENT, 5);
FLAG(KFI_MR_ENDPOINT, 6);

VALUE(KFI_ORDER_NONE, 0);
FLAG(KFI_ORDER_RAR, 0);
FLAG(KFI_ORDER_RAW, 1);
FLAG(KFI_ORDER_RAS, 2);
FLAG(KFI_ORDER_WAR, 3);
FLAG(KFI_ORDER_WAW, 4);
FLAG(KFI_ORDER_WAS, 5);
FLAG(KFI_ORDER_SAR, 6);
FLAG(KFI_ORDER_SAW, 7);
FLAG(KFI_ORDER_SAS, 8);
VALUE(KFI_ORDER_STRICT, 0x1FF);
FLAG(KFI_ORDER_DATA, 16);

VALUE(KFI_ADDR_UNSPEC, U64_MAX);
VALUE(KFI_ADDR_NOTAVAIL, U64_MAX);
VALUE(KFI_KEY_NOTAVAIL, U64_MAX);
VALUE(KFI_SHARED_CONTEXT, U64_MAX);
VALUE(UINT64_MAX, U64_MAX);

VALUE(KFI_FORMAT_UNSPEC, 0);
VALUE(KFI_SOCKADDR, 1);
VALUE(KFI_SOCKADDR_IN, 2);
VALUE(KFI_SOCKADDR_IN6, 3);
VALUE(KFI_SOCKADDR_IB, 4);
VALUE(KFI_ADDR_GNI, 5);
VALUE(KFI_ADDR_CXI, 6);

VALUE(KFI_AV_UNSPEC, 0);
VALUE(KFI_AV_MAP, 1);
VALUE(KFI_AV_TABLE, 2);

VALUE(KFI_PROGRESS_UNSPEC, 0);
VALUE(KFI_PROGRESS_AUTO, 1);
VALUE(KFI_PROGRESS_MANUAL, 2);

VALUE(KFI_THREAD_UNSPEC, 0);
VALUE(KFI_THREAD_SAFE, 1);
VALUE(KFI_THREAD_FID, 2);
VALUE(KFI_THREAD_DOMAIN, 3);
VALUE(KFI_THREAD_COMPLETION, 4);
VALUE(KFI_THREAD_ENDPOINT, 5);

VALUE(KFI_RM_UNSPEC, 0);
VALUE(KFI_RM_DISABLED, 1);
VALUE(KFI_RM_ENABLED, 2);

VALUE(KFI_EP_UNSPEC, 0);
VALUE(KFI_EP_MSG, 1);
VALUE(KFI_EP_DGRAM, 2);
VALUE(KFI_EP_RDM, 3);
VALUE(KFI_EP_SOCK_STREAM, 4);
VALUE(KFI_EP_SOCK_DGRAM, 5);

VALUE(KFI_PROTO_UNSPEC, 0);
VALUE(KFI_PROTO_RDMA_CM_IB_RC, 1);
VALUE(KFI_PROTO_IWARP, 2);
VALUE(KFI_PROTO_IB_UD, 3);
VALUE(KFI_PROTO_UDP, 4);
VALUE(KFI_PROTO_SOCK_TCP, 5);
VALUE(KFI_PROTO_IWARP_RDM, 6);
VALUE(KFI_PROTO_IB_RDM, 7);
VALUE(KFI_PROTO_GNI, 8);
VALUE(KFI_PROTO_CXI, 9);

VALUE(KFI_KVEC, 1);
VALUE(KFI_BVEC, 2);
VALUE(KFI_SGL, 3);

VALUE(KFI_TC_UNSPEC, 0);
VALUE(KFI_TC_DSCP, 0x100);
VALUE(KFI_TC_LABEL, 0x200);
VALUE(KFI_TC_BEST_EFFORT, 0x200);
VALUE(KFI_TC_LOW_LATENCY, 0x201);
VALUE(KFI_TC_DEDICATED_ACCESS, 0x202);
VALUE(KFI_TC_BULK_DATA, 0x203);
VALUE(KFI_TC_SCAVENGER, 0x204);
VALUE(KFI_TC_NETWORK_CTRL, 0x205);

VALUE(KFI_CLASS_UNSPEC, 0);
VALUE(KFI_CLASS_FABRIC, 1);
VALUE(KFI_CLASS_DOMAIN, 2);
VALUE(KFI_CLASS_EP, 3);
VALUE(KFI_CLASS_SEP, 4);
VALUE(KFI_CLASS_RX_CTX, 5);
VALUE(KFI_CLASS_SRX_CTX, 6);
VALUE(KFI_CLASS_TX_CTX, 7);
VALUE(KFI_CLASS_STX_CTX, 8);
VALUE(KFI_CLASS_PEP, 9);
VALUE(KFI_CLASS_INTERFACE, 10);
VALUE(KFI_CLASS_AV, 11);
VALUE(KFI_CLASS_MR, 12);
VALUE(KFI_CLASS_EQ, 13);
VALUE(KFI_CLASS_CQ, 14);
VALUE(KFI_CLASS_CNTR, 15);
VALUE(KFI_CLASS_WAIT, 16);
VALUE(KFI_CLASS_POLL, 17);
VALUE(KFI_CLASS_CONNREQ, 18);

VALUE(KFI_GETFIDFLAG, 0);
VALUE(KFI_SETFIDFLAG, 1);
VALUE(KFI_GETOPSFLAG, 2);
VALUE(KFI_SETOPSFLAG, 3);
VALUE(KFI_ALIAS, 4);
VALUE(KFI_GETWAIT, 5);
VALUE(KFI_ENABLE, 6);
VALUE(KFI_BACKLOG, 7);
VALUE(KFI_GET_RAW_MR, 8);
VALUE(KFI_MAP_RAW_MR, 9);
VALUE(KFI_UNMAP_KEY, 10);
VALUE(KFI_QUEUE_WORK, 11);
VALUE(KFI_CANCEL_WORK, 12);
VALUE(KFI_FLUSH_WORK, 13);
VALUE(KFI_REFRESH, 14);

VALUE(KFI_TYPE_INFO, 0);
VALUE(KFI_TYPE_EP_TYPE, 1);
VALUE(KFI_TYPE_CAPS, 2);
VALUE(KFI_TYPE_OP_FLAGS, 3);
VALUE(KFI_TYPE_ADDR_FORMAT, 4);
VALUE(KFI_TYPE_TX_ATTR, 5);
VALUE(KFI_TYPE_RX_ATTR, 6);
VALUE(KFI_TYPE_EP_ATTR, 7);
VALUE(KFI_TYPE_DOMAIN_ATTR, 8);
VALUE(KFI_TYPE_FABRIC_ATTR, 9);
VALUE(KFI_TYPE_THREADING, 10);
VALUE(KFI_TYPE_PROGRESS, 11);
VALUE(KFI_TYPE_PROTOCOL, 12);
VALUE(KFI_TYPE_MSG_ORDER, 13);
VALUE(KFI_TYPE_MODE, 14);
VALUE(KFI_TYPE_AV_TYPE, 15);
VALUE(KFI_TYPE_ATOMIC_TYPE, 16);
VALUE(KFI_TYPE_ATOMIC_OP, 17);
VALUE(KFI_TYPE_VERSION, 18);
VALUE(KFI_TYPE_EQ_EVENT, 19);
VALUE(KFI_TYPE_CQ_EVENT_FLAGS, 20);
VALUE(KFI_TYPE_MR_MODE, 21);
VALUE(KFI_TYPE_OP_TYPE, 22);

VALUE(KFI_PARAM_STRING, 0);
VALUE(KFI_PARAM_INT, 1);
VALUE(KFI_PARAM_BOOL, 2);

TABLE(kfi_ops, 4);
SLOT(kfi_ops, 1, close);
SLOT(kfi_ops, 2, bind);
SLOT(kfi_ops, 3, control);
SLOT(kfi_ops, 4, ops_open);

TABLE(kfi_ops_fabric, 4);
SLOT(kfi_ops_fabric, 1, domain);
SLOT(kfi_ops_fabric, 2, passive_ep);
SLOT(kfi_ops_fabric, 3, eq_open);
SLOT(kfi_ops_fabric, 4, wait_open);

/* --- kfi_errno.h ---------------------------------------------------------------------------- */

VALUE(KFI_SUCCESS, 0);
VALUE(KFI_ENOENT, 2);
VALUE(KFI_EIO, 5);
VALUE(KFI_E2BIG, 7);
VALUE(KFI_EBADF, 9);
VALUE(KFI_EAGAIN, 11);
VALUE(KFI_ENOMEM, 12);
VALUE(KFI_EACCES, 13);
VALUE(KFI_EFAULT, 14);
VALUE(KFI_EBUSY, 16);
VALUE(KFI_ENODEV, 19);
VALUE(KFI_EINVAL, 22);
VALUE(KFI_EMFILE, 24);
VALUE(KFI_ENOSPC, 28);
VALUE(KFI_EKEYREJECTED, EKEYREJECTED);
VALUE(KFI_ERRNO_OFFSET, 256);
VALUE(KFI_EOTHER, 256);
VALUE(KFI_ETOOSMALL, 257);
VALUE(KFI_EOPBADSTATE, 258);
VALUE(KFI_EAVAIL, 259);
VALUE(KFI_EBADFLAGS, 260);
VALUE(KFI_ENOEQ, 261);
VALUE(KFI_EDOMAIN, 262);
VALUE(KFI_ENOCQ, 263);
VALUE(KFI_ECRC, 264);
VALUE(KFI_ETRUNC, 265);
VALUE(KFI_ENOKEY, 266);
VALUE(KFI_ENOAV, 267);
VALUE(KFI_EOVERRUN, 268);
VALUE(KFI_ERRNO_MAX, 269);
VALUE(FI_ERRNO_MAX, 269);

/* --- kfi_domain.h --------------------------------------------------------------------------- */

FLAG(KFI_SYNC_ERR, 58);
FLAG(KFI_SYMMETRIC, 59);
FLAG(KFI_REG_MR, 59);

VALUE(KFI_INT8, 0);
VALUE(KFI_UINT8, 1);
VALUE(KFI_INT16, 2);
VALUE(KFI_UINT16, 3);
VALUE(KFI_INT32, 4);
VALUE(KFI_UINT32, 5);
VALUE(KFI_INT64, 6);
VALUE(KFI_UINT64, 7);
VALUE(KFI_FLOAT, 8);
VALUE(KFI_DOUBLE, 9);
VALUE(KFI_FLOAT_COMPLEX, 10);
VALUE(KFI_DOUBLE_COMPLEX, 11);
VALUE(KFI_LONG_DOUBLE, 12);
VALUE(KFI_LONG_DOUBLE_COMPLEX, 13);
VALUE(KFI_DATATYPE_LAST, 14);

VALUE(KFI_MIN, 0);
VALUE(KFI_MAX, 1);
VALUE(KFI_SUM, 2);
VALUE(KFI_PROD, 3);
VALUE(KFI_LOR, 4);
VALUE(KFI_LAND, 5);
VALUE(KFI_BOR, 6);
VALUE(KFI_BAND, 7);
VALUE(KFI_LXOR, 8);
VALUE(KFI_BXOR, 9);
VALUE(KFI_ATOMIC_READ, 10);
VALUE(KFI_ATOMIC_WRITE, 11);
VALUE(KFI_CSWAP, 12);
VALUE(KFI_CSWAP_NE, 13);
VALUE(KFI_CSWAP_LE, 14);
VALUE(KFI_CSWAP_LT, 15);
VALUE(KFI_CSWAP_GE, 16);
VALUE(KFI_CSWAP_GT, 17);
VALUE(KFI_MSWAP, 18);
VALUE(KFI_ATOMIC_OP_LAST, 19);

TABLE(kfi_ops_av, 6);
SLOT(kfi_ops_av, 1, insert);
SLOT(kfi_ops_av, 2, insertsvc);
SLOT(kfi_ops_av, 3, insertsym);
SLOT(kfi_ops_av, 4, remove);
SLOT(kfi_ops_av, 5, lookup);
SLOT(kfi_ops_av, 6, straddr);

TABLE(kfi_ops_domain, 9);
SLOT(kfi_ops_domain, 1, av_open);
SLOT(kfi_ops_domain, 2, cq_open);
SLOT(kfi_ops_domain, 3, endpoint);
SLOT(kfi_ops_domain, 4, scalable_ep);
SLOT(kfi_ops_domain, 5, cntr_open);
SLOT(kfi_ops_domain, 6, poll_open);
SLOT(kfi_ops_domain, 7, stx_ctx);
SLOT(kfi_ops_domain, 8, srx_ctx);
SLOT(kfi_ops_domain, 9, query_atomic);

TABLE(kfi_ops_mr, 5);
SLOT(kfi_ops_mr, 1, reg);
SLOT(kfi_ops_mr, 2, regv);
SLOT(kfi_ops_mr, 3, regbv);
SLOT(kfi_ops_mr, 4, regattr);
SLOT(kfi_ops_mr, 5, regsgl);

/* --- kfi_eq.h ------------------------------------------------------------------------------- */

VALUE(KFI_WAIT_NONE, 0);
VALUE(KFI_WAIT_UNSPEC, 1);
VALUE(KFI_WAIT_SET, 2);
VALUE(KFI_WAIT_QUEUE, 3);

VALUE(KFI_NOTIFY, 0);
VALUE(KFI_CONNREQ, 1);
VALUE(KFI_CONNECTED, 2);
VALUE(KFI_SHUTDOWN, 3);
VALUE(KFI_MR_COMPLETE, 4);
VALUE(KFI_AV_COMPLETE, 5);
VALUE(KFI_JOIN_COMPLETE, 6);

VALUE(KFI_CQ_FORMAT_UNSPEC, 0);
VALUE(KFI_CQ_FORMAT_CONTEXT, 1);
VALUE(KFI_CQ_FORMAT_MSG, 2);
VALUE(KFI_CQ_FORMAT_DATA, 3);
VALUE(KFI_CQ_FORMAT_TAGGED, 4);
VALUE(KFI_CQ_COND_NONE, 0);
VALUE(KFI_CQ_COND_THRESHOLD, 1);
VALUE(KFI_CNTR_EVENTS_COMP, 0);

TABLE(kfi_ops_wait, 1);
SLOT(kfi_ops_wait, 1, wait);

TABLE(kfi_ops_poll, 3);
SLOT(kfi_ops_poll, 1, poll);
SLOT(kfi_ops_poll, 2, poll_add);
SLOT(kfi_ops_poll, 3, poll_del);

TABLE(kfi_ops_eq, 5);
SLOT(kfi_ops_eq, 1, read);
SLOT(kfi_ops_eq, 2, readerr);
SLOT(kfi_ops_eq, 3, write);
SLOT(kfi_ops_eq, 4, sread);
SLOT(kfi_ops_eq, 5, strerror);

TABLE(kfi_ops_cq, 7);
SLOT(kfi_ops_cq, 1, read);
SLOT(kfi_ops_cq, 2, readfrom);
SLOT(kfi_ops_cq, 3, readerr);
SLOT(kfi_ops_cq, 4, sread);
SLOT(kfi_ops_cq, 5, sreadfrom);
SLOT(kfi_ops_cq, 6, signal);
SLOT(kfi_ops_cq, 7, strerror);

TABLE(kfi_ops_cntr, 7);
SLOT(kfi_ops_cntr, 1, read);
SLOT(kfi_ops_cntr, 2, readerr);
SLOT(kfi_ops_cntr, 3, add);
SLOT(kfi_ops_cntr, 4, set);
SLOT(kfi_ops_cntr, 5, wait);
SLOT(kfi_ops_cntr, 6, adderr);
SLOT(kfi_ops_cntr, 7, seterr);

/* --- kfi_endpoint.h ------------------------------------------------------------------------- */

VALUE(KFI_OPT_ENDPOINT, 0);
VALUE(KFI_OPT_MIN_MULTI_RECV, 0);
VALUE(KFI_OPT_CM_DATA_SIZE, 1);

TABLE(kfi_ops_ep, 7);
SLOT(kfi_ops_ep, 1, cancel);
SLOT(kfi_ops_ep, 2, getopt);
SLOT(kfi_ops_ep, 3, setopt);
SLOT(kfi_ops_ep, 4, tx_ctx);
SLOT(kfi_ops_ep, 5, rx_ctx);
SLOT(kfi_ops_ep, 6, rx_size_left);
SLOT(kfi_ops_ep, 7, tx_size_left);

TABLE(kfi_ops_msg, 13);
SLOT(kfi_ops_msg, 1, recv);
SLOT(kfi_ops_msg, 2, recvv);
SLOT(kfi_ops_msg, 3, recvbv);
SLOT(kfi_ops_msg, 4, recvmsg);
SLOT(kfi_ops_msg, 5, send);
SLOT(kfi_ops_msg, 6, sendv);
SLOT(kfi_ops_msg, 7, sendbv);
SLOT(kfi_ops_msg, 8, sendmsg);
SLOT(kfi_ops_msg, 9, inject);
SLOT(kfi_ops_msg, 10, senddata);
SLOT(kfi_ops_msg, 11, injectdata);
SLOT(kfi_ops_msg, 12, recvsgl);
SLOT(kfi_ops_msg, 13, sendsgl);

/* --- kfi_raw_ext.h -------------------------------------------------------------------------- */

VALUE(KFI_RAW_KEY_MAGIC, 0x4b52464b);
VALUE(KFI_RAW_KEY_VERSION, 1);
VALUE(KFI_RAW_KEY_MOST, 4096);
VALUE(KFI_RAW_KEY_SIZE(0), sizeof(struct kfi_raw_key));
VALUE(KFI_RAW_KEY_SIZE(3), 96);
FLAG(KFI_RAW_KEY_MAPPED, 63);

FIELD(kfi_raw_key_piece, rkey, 0);
FIELD(kfi_raw_key_piece, base, 8);
FIELD(kfi_raw_key_piece, length, 16);
SIZE(kfi_raw_key_piece, 24);

FIELD(kfi_raw_key, magic, 0);
FIELD(kfi_raw_key, version, 4);
FIELD(kfi_raw_key, reserved, 6);
FIELD(kfi_raw_key, count, 8);
FIELD(kfi_raw_key, reserved2, 12);
FIELD(kfi_raw_key, total, 16);
FIELD(kfi_raw_key, piece, 24);

TABLE(kfi_raw_ops, 1);
SLOT(kfi_raw_ops, 1, resolve);

/* --- kfi_batch_ext.h ------------------------------------------------------------------------ */
TABLE(kfi_batch_ops, 2);
SLOT(kfi_batch_ops, 1, regattr_many);
SLOT(kfi_batch_ops, 2, close_many);

/* --- kfi_reserve_ext.h ---------------------------------------------------------------------- */

TABLE(kfi_reserve_ops, 1);
SLOT(kfi_reserve_ops, 1, reserve);

/* --- kfi_rma.h ------------------------------------------------------------------------------ */

TABLE(kfi_ops_rma, 13);
SLOT(kfi_ops_rma, 1, read);
SLOT(kfi_ops_rma, 2, readv);
SLOT(kfi_ops_rma, 3, readbv);
SLOT(kfi_ops_rma, 4, readmsg);
SLOT(kfi_ops_rma, 5, write);
SLOT(kfi_ops_rma, 6, writev);
SLOT(kfi_ops_rma, 7, writebv);
SLOT(kfi_ops_rma, 8, writemsg);
SLOT(kfi_ops_rma, 9, inject);
SLOT(kfi_ops_rma, 10, writedata);
SLOT(kfi_ops_rma, 11, injectdata);
SLOT(kfi_ops_rma, 12, readsgl);
SLOT(kfi_ops_rma, 13, writesgl);

/* --- kfi_tagged.h --------------------------------------------------------------------------- */

FLAG(KFI_DISCARD, 58);
FLAG(KFI_CLAIM, 59);

TABLE(kfi_ops_tagged, 13);
SLOT(kfi_ops_tagged, 1, recv);
SLOT(kfi_ops_tagged, 2, recvv);
SLOT(kfi_ops_tagged, 3, recvbv);
SLOT(kfi_ops_tagged, 4, recvmsg);
SLOT(kfi_ops_tagged, 5, send);
SLOT(kfi_ops_tagged, 6, sendv);
SLOT(kfi_ops_tagged, 7, sendbv);
SLOT(kfi_ops_tagged, 8, sendmsg);
SLOT(kfi_ops_tagged, 9, inject);
SLOT(kfi_ops_tagged, 10, senddata);
SLOT(kfi_ops_tagged, 11, injectdata);
SLOT(kfi_ops_tagged, 12, recvsgl);
SLOT(kfi_ops_tagged, 13, sendsgl);

/* --- kfi_cm.h ------------------------------------------------------------------------------- */

TABLE(kfi_ops_cm, 9);
SLOT(kfi_ops_cm, 1, setname);
SLOT(kfi_ops_cm, 2, getname);
SLOT(kfi_ops_cm, 3, getpeer);
SLOT(kfi_ops_cm, 4, connect);
SLOT(kfi_ops_cm, 5, listen);
SLOT(kfi_ops_cm, 6, accept);
SLOT(kfi_ops_cm, 7, reject);
SLOT(kfi_ops_cm, 8, shutdown);
SLOT(kfi_ops_cm, 9, join);

/* --- kfi_atomic.h --------------------------------------------------------------------------- */

TABLE(kfi_ops_atomic, 13);
SLOT(kfi_ops_atomic, 1, write);
SLOT(kfi_ops_atomic, 2, writev);
SLOT(kfi_ops_atomic, 3, writemsg);
SLOT(kfi_ops_atomic, 4, inject);
SLOT(kfi_ops_atomic, 5, readwrite);
SLOT(kfi_ops_atomic, 6, readwritev);
SLOT(kfi_ops_atomic, 7, readwritemsg);
SLOT(kfi_ops_atomic, 8, compwrite);
SLOT(kfi_ops_atomic, 9, compwritev);
SLOT(kfi_ops_atomic, 10, compwritemsg);
SLOT(kfi_ops_atomic, 11, writevalid);
SLOT(kfi_ops_atomic, 12, readwritevalid);
SLOT(kfi_ops_atomic, 13, compwritevalid);

/* --- kfi_trigger.h -------------------------------------------------------------------------- */

VALUE(KFI_TRIGGER_THRESHOLD, 0);
VALUE(KFI_OP_RECV, 0);
VALUE(KFI_OP_SEND, 1);
VALUE(KFI_OP_TRECV, 2);
VALUE(KFI_OP_TSEND, 3);
VALUE(KFI_OP_READ, 4);
VALUE(KFI_OP_WRITE, 5);
VALUE(KFI_OP_ATOMIC, 6);
VALUE(KFI_OP_FETCH_ATOMIC, 7);
VALUE(KFI_OP_COMPARE_ATOMIC, 8);
VALUE(KFI_OP_CNTR_SET, 9);
VALUE(KFI_OP_CNTR_ADD, 10);
SIZE(kfi_triggered_context, sizeof(struct kfi_context));
SIZE(kfi_triggered_context2, sizeof(struct kfi_context2));

/* --- kfi_dma_ext.h -------------------------------------------------------------------------- */

TABLE(kfi_dma_ops, 4);
SLOT(kfi_dma_ops, 1, map_sg);
SLOT(kfi_dma_ops, 2, unmap_sg);
SLOT(kfi_dma_ops, 3, sync_sg_for_cpu);
SLOT(kfi_dma_ops, 4, sync_sg_for_device);

/* --- kfi_verbs_ext.h ------------------------------------------------------------------------ */

SIZE(kfi_verbs_dom_ops, 4 * sizeof(void *));
FIELD(kfi_verbs_dom_ops, get_ib_device, 0);
FIELD(kfi_verbs_dom_ops, get_pd, sizeof(void *));
FIELD(kfi_verbs_dom_ops, on_removal, 2 * sizeof(void *));
FIELD(kfi_verbs_dom_ops, get_lkey, 3 * sizeof(void *));

#ifdef CONFIG_64BIT

/* --- kfabric.h ------------------------------------------------------------------------------ */

FIELD(kfid, fclass, 0);
FIELD(kfid, context, 8);
FIELD(kfid, ops, 16);
FIELD(kfid, comp, 24);
FIELD(kfid, ref_cnt, 24 + sizeof(struct completion));
SIZE(kfid, ALIGN(24 + sizeof(struct completion) + sizeof(atomic_t), 8));

FIELD(kfid_fabric, fid, 0);
MEMBER(kfid_fabric, ops, 0);
MEMBER(kfid_fabric, api_version, 8);
OBJECT(kfid_fabric, 16);

FIELD(kfi_tx_attr, caps, 0);
FIELD(kfi_tx_attr, mode, 8);
FIELD(kfi_tx_attr, op_flags, 16);
FIELD(kfi_tx_attr, msg_order, 24);
FIELD(kfi_tx_attr, comp_order, 32);
FIELD(kfi_tx_attr, inject_size, 40);
FIELD(kfi_tx_attr, size, 48);
FIELD(kfi_tx_attr, iov_limit, 56);
FIELD(kfi_tx_attr, rma_iov_limit, 64);
FIELD(kfi_tx_attr, tclass, 72);
SIZE(kfi_tx_attr, 80);

FIELD(kfi_rx_attr, caps, 0);
FIELD(kfi_rx_attr, mode, 8);
FIELD(kfi_rx_attr, op_flags, 16);
FIELD(kfi_rx_attr, msg_order, 24);
FIELD(kfi_rx_attr, comp_order, 32);
FIELD(kfi_rx_attr, total_buffered_recv, 40);
FIELD(kfi_rx_attr, size, 48);
FIELD(kfi_rx_attr, iov_limit, 56);
SIZE(kfi_rx_attr, 64);

FIELD(kfi_ep_attr, type, 0);
FIELD(kfi_ep_attr, protocol, 4);
FIELD(kfi_ep_attr, protocol_version, 8);
FIELD(kfi_ep_attr, max_msg_size, 16);
FIELD(kfi_ep_attr, msg_prefix_size, 24);
FIELD(kfi_ep_attr, max_order_raw_size, 32);
FIELD(kfi_ep_attr, max_order_war_size, 40);
FIELD(kfi_ep_attr, max_order_waw_size, 48);
FIELD(kfi_ep_attr, mem_tag_format, 56);
FIELD(kfi_ep_attr, tx_ctx_cnt, 64);
FIELD(kfi_ep_attr, rx_ctx_cnt, 72);
FIELD(kfi_ep_attr, auth_key_size, 80);
FIELD(kfi_ep_attr, auth_key, 88);
SIZE(kfi_ep_attr, 96);

FIELD(kfi_domain_attr, domain, 0);
FIELD(kfi_domain_attr, name, 8);
FIELD(kfi_domain_attr, threading, 16);
FIELD(kfi_domain_attr, control_progress, 20);
FIELD(kfi_domain_attr, data_progress, 24);
FIELD(kfi_domain_attr, resource_mgmt, 28);
FIELD(kfi_domain_attr, av_type, 32);
FIELD(kfi_domain_attr, mr_mode, 36);
FIELD(kfi_domain_attr, mr_key_size, 40);
FIELD(kfi_domain_attr, cq_data_size, 48);
FIELD(kfi_domain_attr, cq_cnt, 56);
FIELD(kfi_domain_attr, ep_cnt, 64);
FIELD(kfi_domain_attr, tx_ctx_cnt, 72);
FIELD(kfi_domain_attr, rx_ctx_cnt, 80);
FIELD(kfi_domain_attr, max_ep_tx_ctx, 88);
FIELD(kfi_domain_attr, max_ep_rx_ctx, 96);
FIELD(kfi_domain_attr, max_ep_stx_ctx, 104);
FIELD(kfi_domain_attr, max_ep_srx_ctx, 112);
FIELD(kfi_domain_attr, cntr_cnt, 120);
FIELD(kfi_domain_attr, mr_iov_limit, 128);
FIELD(kfi_domain_attr, caps, 136);
FIELD(kfi_domain_attr, mode, 144);
FIELD(kfi_domain_attr, auth_key, 152);
FIELD(kfi_domain_attr, auth_key_size, 160);
FIELD(kfi_domain_attr, max_err_data, 168);
FIELD(kfi_domain_attr, mr_cnt, 176);
FIELD(kfi_domain_attr, tclass, 184);
SIZE(kfi_domain_attr, 192);

FIELD(kfi_fabric_attr, fabric, 0);
FIELD(kfi_fabric_attr, name, 8);
FIELD(kfi_fabric_attr, prov_name, 16);
FIELD(kfi_fabric_attr, prov_version, 24);
FIELD(kfi_fabric_attr, api_version, 28);
SIZE(kfi_fabric_attr, 32);

FIELD(kfi_info, next, 0);
FIELD(kfi_info, caps, 8);
FIELD(kfi_info, mode, 16);
FIELD(kfi_info, addr_format, 24);
FIELD(kfi_info, src_addrlen, 32);
FIELD(kfi_info, dest_addrlen, 40);
FIELD(kfi_info, src_addr, 48);
FIELD(kfi_info, dest_addr, 56);
FIELD(kfi_info, handle, 64);
FIELD(kfi_info, tx_attr, 72);
FIELD(kfi_info, rx_attr, 80);
FIELD(kfi_info, ep_attr, 88);
FIELD(kfi_info, domain_attr, 96);
FIELD(kfi_info, fabric_attr, 104);
SIZE(kfi_info, 112);

FIELD(kfi_alias, fid, 0);
FIELD(kfi_alias, flags, 8);
SIZE(kfi_alias, 16);

FIELD(kfi_mr_raw_attr, flags, 0);
FIELD(kfi_mr_raw_attr, base_addr, 8);
FIELD(kfi_mr_raw_attr, raw_key, 16);
FIELD(kfi_mr_raw_attr, key_size, 24);
SIZE(kfi_mr_raw_attr, 32);

FIELD(kfi_mr_map_raw, flags, 0);
FIELD(kfi_mr_map_raw, base_addr, 8);
FIELD(kfi_mr_map_raw, raw_key, 16);
FIELD(kfi_mr_map_raw, key_size, 24);
FIELD(kfi_mr_map_raw, key, 32);
SIZE(kfi_mr_map_raw, 40);

FIELD(kfi_param, name, 0);
FIELD(kfi_param, type, 8);
FIELD(kfi_param, help_string, 16);
FIELD(kfi_param, value, 24);
SIZE(kfi_param, 32);

SIZE(kfi_context, 32);
SIZE(kfi_context2, 64);

/* --- kfi_domain.h --------------------------------------------------------------------------- */

FIELD(kfi_av_attr, type, 0);
FIELD(kfi_av_attr, rx_ctx_bits, 4);
FIELD(kfi_av_attr, count, 8);
FIELD(kfi_av_attr, ep_per_node, 16);
FIELD(kfi_av_attr, name, 24);
FIELD(kfi_av_attr, map_addr, 32);
FIELD(kfi_av_attr, flags, 40);
SIZE(kfi_av_attr, 48);

FIELD(kfid_av, fid, 0);
MEMBER(kfid_av, ops, 0);
OBJECT(kfid_av, 8);

FIELD(kfid_mr, fid, 0);
MEMBER(kfid_mr, mem_desc, 0);
MEMBER(kfid_mr, key, 8);
MEMBER(kfid_mr, iova, 16);
OBJECT(kfid_mr, 24);

FIELD(kfi_mr_attr, type, 0);
FIELD(kfi_mr_attr, mr_iov, 8);
FIELD(kfi_mr_attr, mr_biov, 8);
FIELD(kfi_mr_attr, mr_sgl, 8);
FIELD(kfi_mr_attr, iov_count, 16);
FIELD(kfi_mr_attr, access, 24);
FIELD(kfi_mr_attr, offset, 32);
FIELD(kfi_mr_attr, requested_key, 40);
FIELD(kfi_mr_attr, context, 48);
FIELD(kfi_mr_attr, auth_key_size, 56);
FIELD(kfi_mr_attr, auth_key, 64);
SIZE(kfi_mr_attr, 72);

FIELD(kfi_mr_modify, flags, 0);
FIELD(kfi_mr_modify, attr, 8);
SIZE(kfi_mr_modify, 80);

FIELD(kfid_domain, fid, 0);
MEMBER(kfid_domain, ops, 0);
MEMBER(kfid_domain, mr, 8);
OBJECT(kfid_domain, 16);

/* --- kfi_eq.h ------------------------------------------------------------------------------- */

FIELD(kfi_wait_attr, wait_obj, 0);
FIELD(kfi_wait_attr, flags, 8);
SIZE(kfi_wait_attr, 16);

FIELD(kfid_wait, kfid, 0);
MEMBER(kfid_wait, ops, 0);
OBJECT(kfid_wait, 8);

SIZE(kfi_poll_attr, 8);

FIELD(kfid_poll, fid, 0);
MEMBER(kfid_poll, ops, 0);
OBJECT(kfid_poll, 8);

FIELD(kfi_eq_attr, size, 0);
FIELD(kfi_eq_attr, flags, 8);
FIELD(kfi_eq_attr, wait_obj, 16);
FIELD(kfi_eq_attr, signaling_vector, 20);
FIELD(kfi_eq_attr, wait_set, 24);
SIZE(kfi_eq_attr, 32);

FIELD(kfi_eq_entry, fid, 0);
FIELD(kfi_eq_entry, context, 8);
FIELD(kfi_eq_entry, data, 16);
SIZE(kfi_eq_entry, 24);

FIELD(kfi_eq_err_entry, fid, 0);
FIELD(kfi_eq_err_entry, context, 8);
FIELD(kfi_eq_err_entry, data, 16);
FIELD(kfi_eq_err_entry, err, 24);
FIELD(kfi_eq_err_entry, prov_errno, 28);
FIELD(kfi_eq_err_entry, err_data, 32);
FIELD(kfi_eq_err_entry, err_data_size, 40);
SIZE(kfi_eq_err_entry, 48);

FIELD(kfi_eq_cm_entry, fid, 0);
FIELD(kfi_eq_cm_entry, info, 8);
FIELD(kfi_eq_cm_entry, data, 16);
SIZE(kfi_eq_cm_entry, 16);

FIELD(kfid_eq, fid, 0);
MEMBER(kfid_eq, ops, 0);
MEMBER(kfid_eq, event_handler, 8);
OBJECT(kfid_eq, 16);

FIELD(kfi_cq_entry, op_context, 0);
SIZE(kfi_cq_entry, 8);

FIELD(kfi_cq_msg_entry, op_context, 0);
FIELD(kfi_cq_msg_entry, flags, 8);
FIELD(kfi_cq_msg_entry, len, 16);
SIZE(kfi_cq_msg_entry, 24);

FIELD(kfi_cq_data_entry, op_context, 0);
FIELD(kfi_cq_data_entry, flags, 8);
FIELD(kfi_cq_data_entry, len, 16);
FIELD(kfi_cq_data_entry, buf, 24);
FIELD(kfi_cq_data_entry, data, 32);
SIZE(kfi_cq_data_entry, 40);

FIELD(kfi_cq_tagged_entry, op_context, 0);
FIELD(kfi_cq_tagged_entry, flags, 8);
FIELD(kfi_cq_tagged_entry, len, 16);
FIELD(kfi_cq_tagged_entry, buf, 24);
FIELD(kfi_cq_tagged_entry, data, 32);
FIELD(kfi_cq_tagged_entry, tag, 40);
SIZE(kfi_cq_tagged_entry, 48);

FIELD(kfi_cq_err_entry, op_context, 0);
FIELD(kfi_cq_err_entry, flags, 8);
FIELD(kfi_cq_err_entry, len, 16);
FIELD(kfi_cq_err_entry, buf, 24);
FIELD(kfi_cq_err_entry, data, 32);
FIELD(kfi_cq_err_entry, tag, 40);
FIELD(kfi_cq_err_entry, olen, 48);
FIELD(kfi_cq_err_entry, err, 56);
FIELD(kfi_cq_err_entry, prov_errno, 60);
FIELD(kfi_cq_err_entry, err_data, 64);
FIELD(kfi_cq_err_entry, err_data_size, 72);
SIZE(kfi_cq_err_entry, 80);

FIELD(kfi_cq_attr, size, 0);
FIELD(kfi_cq_attr, flags, 8);
FIELD(kfi_cq_attr, format, 16);
FIELD(kfi_cq_attr, wait_obj, 20);
FIELD(kfi_cq_attr, signaling_vector, 24);
FIELD(kfi_cq_attr, wait_cond, 28);
FIELD(kfi_cq_attr, wait_set, 32);
SIZE(kfi_cq_attr, 40);

FIELD(kfid_cq, fid, 0);
MEMBER(kfid_cq, ops, 0);
MEMBER(kfid_cq, comp_handler, 8);
OBJECT(kfid_cq, 16);

FIELD(kfi_cntr_attr, events, 0);
FIELD(kfi_cntr_attr, wait_obj, 4);
FIELD(kfi_cntr_attr, wait_set, 8);
FIELD(kfi_cntr_attr, flags, 16);
SIZE(kfi_cntr_attr, 24);

FIELD(kfid_cntr, fid, 0);
MEMBER(kfid_cntr, ops, 0);
OBJECT(kfid_cntr, 8);

/* --- kfi_endpoint.h ------------------------------------------------------------------------- */

FIELD(kfi_msg, type, 0);
FIELD(kfi_msg, msg_iov, 8);
FIELD(kfi_msg, msg_biov, 8);
FIELD(kfi_msg, msg_sgl, 8);
FIELD(kfi_msg, desc, 16);
FIELD(kfi_msg, iov_count, 24);
FIELD(kfi_msg, addr, 32);
FIELD(kfi_msg, context, 40);
FIELD(kfi_msg, data, 48);
SIZE(kfi_msg, 56);

FIELD(kfid_ep, fid, 0);
MEMBER(kfid_ep, ops, 0);
MEMBER(kfid_ep, cm, 8);
MEMBER(kfid_ep, msg, 16);
MEMBER(kfid_ep, rma, 24);
MEMBER(kfid_ep, tagged, 32);
MEMBER(kfid_ep, atomic, 40);
OBJECT(kfid_ep, 48);

FIELD(kfid_pep, fid, 0);
MEMBER(kfid_pep, ops, 0);
MEMBER(kfid_pep, cm, 8);
OBJECT(kfid_pep, 16);

FIELD(kfid_stx, fid, 0);
MEMBER(kfid_stx, ops, 0);
OBJECT(kfid_stx, 8);

/* --- kfi_rma.h ------------------------------------------------------------------------------ */

FIELD(kfi_rma_iov, addr, 0);
FIELD(kfi_rma_iov, len, 8);
FIELD(kfi_rma_iov, key, 16);
SIZE(kfi_rma_iov, 24);

FIELD(kfi_msg_rma, type, 0);
FIELD(kfi_msg_rma, msg_iov, 8);
FIELD(kfi_msg_rma, msg_biov, 8);
FIELD(kfi_msg_rma, msg_sgl, 8);
FIELD(kfi_msg_rma, desc, 16);
FIELD(kfi_msg_rma, iov_count, 24);
FIELD(kfi_msg_rma, addr, 32);
FIELD(kfi_msg_rma, rma_iov, 40);
FIELD(kfi_msg_rma, rma_iov_count, 48);
FIELD(kfi_msg_rma, context, 56);
FIELD(kfi_msg_rma, data, 64);
SIZE(kfi_msg_rma, 72);

/* --- kfi_tagged.h --------------------------------------------------------------------------- */

FIELD(kfi_msg_tagged, type, 0);
FIELD(kfi_msg_tagged, msg_iov, 8);
FIELD(kfi_msg_tagged, msg_biov, 8);
FIELD(kfi_msg_tagged, msg_sgl, 8);
FIELD(kfi_msg_tagged, desc, 16);
FIELD(kfi_msg_tagged, iov_count, 24);
FIELD(kfi_msg_tagged, addr, 32);
FIELD(kfi_msg_tagged, tag, 40);
FIELD(kfi_msg_tagged, ignore, 48);
FIELD(kfi_msg_tagged, context, 56);
FIELD(kfi_msg_tagged, data, 64);
SIZE(kfi_msg_tagged, 72);

/* --- kfi_cm.h ------------------------------------------------------------------------------- */

FIELD(kfid_mc, fid, 0);
MEMBER(kfid_mc, addr, 0);
OBJECT(kfid_mc, 8);

/* --- kfi_atomic.h --------------------------------------------------------------------------- */

FIELD(kfi_ioc, addr, 0);
FIELD(kfi_ioc, count, 8);
SIZE(kfi_ioc, 16);

FIELD(kfi_rma_ioc, addr, 0);
FIELD(kfi_rma_ioc, count, 8);
FIELD(kfi_rma_ioc, key, 16);
SIZE(kfi_rma_ioc, 24);

FIELD(kfi_atomic_attr, count, 0);
FIELD(kfi_atomic_attr, size, 8);
SIZE(kfi_atomic_attr, 16);

FIELD(kfi_msg_atomic, msg_iov, 0);
FIELD(kfi_msg_atomic, desc, 8);
FIELD(kfi_msg_atomic, iov_count, 16);
FIELD(kfi_msg_atomic, addr, 24);
FIELD(kfi_msg_atomic, rma_iov, 32);
FIELD(kfi_msg_atomic, rma_iov_count, 40);
FIELD(kfi_msg_atomic, datatype, 48);
FIELD(kfi_msg_atomic, op, 52);
FIELD(kfi_msg_atomic, context, 56);
FIELD(kfi_msg_atomic, data, 64);
SIZE(kfi_msg_atomic, 72);

FIELD(kfi_msg_fetch, msg_iov, 0);
FIELD(kfi_msg_fetch, desc, 8);
FIELD(kfi_msg_fetch, iov_count, 16);
SIZE(kfi_msg_fetch, 24);

FIELD(kfi_msg_compare, msg_iov, 0);
FIELD(kfi_msg_compare, desc, 8);
FIELD(kfi_msg_compare, iov_count, 16);
SIZE(kfi_msg_compare, 24);

/* --- kfi_trigger.h -------------------------------------------------------------------------- */

FIELD(kfi_triggered_context, event_type, 0);
FIELD(kfi_triggered_context, trigger, 8);
FIELD(kfi_triggered_context2, event_type, 0);
FIELD(kfi_triggered_context2, trigger, 8);

FIELD(kfi_deferred_work, context, 0);
FIELD(kfi_deferred_work, threshold, 64);
FIELD(kfi_deferred_work, triggering_cntr, 72);
FIELD(kfi_deferred_work, completion_cntr, 80);
FIELD(kfi_deferred_work, op_type, 88);
FIELD(kfi_deferred_work, op, 96);
SIZE(kfi_deferred_work, 104);

/* --- kfi_prov.h ----------------------------------------------------------------------------- */

FIELD(kfi_provider, version, 0);
FIELD(kfi_provider, kfi_version, 4);
FIELD(kfi_provider, context, 8);
FIELD(kfi_provider, name, 40);
FIELD(kfi_provider, kgetinfo, 48);
FIELD(kfi_provider, kfabric, 56);
FIELD(kfi_provider, cleanup, 64);
FIELD(kfi_provider, comp, 72);
FIELD(kfi_provider, ref_cnt, 72 + sizeof(struct completion));

#endif /* CONFIG_64BIT */
