// SPDX-License-Identifier: GPL-2.0
/* Event queues, completion queues and counters. See layout.h. */
#include <kfi_eq.h>

#include "layout.h"

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

#ifdef CONFIG_64BIT

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

#endif /* CONFIG_64BIT */
