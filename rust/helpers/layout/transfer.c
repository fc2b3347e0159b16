// SPDX-License-Identifier: GPL-2.0
/* Endpoints, connections and transfers. See layout.h. */
#include <kfi_endpoint.h>
#include <kfi_cm.h>
#include <kfi_rma.h>
#include <kfi_atomic.h>
#include <kfi_tagged.h>
#include <kfi_trigger.h>

#include "layout.h"

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

#ifdef CONFIG_64BIT

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

/* --- kfi_cm.h ------------------------------------------------------------------------------- */

FIELD(kfid_mc, fid, 0);
MEMBER(kfid_mc, addr, 0);
OBJECT(kfid_mc, 8);

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

#endif /* CONFIG_64BIT */
