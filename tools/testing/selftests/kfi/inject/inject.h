/* SPDX-License-Identifier: GPL-2.0 */
/* The declarations that the files of kfi_inject.ko share. */
#ifndef KFI_INJECT_INTERNAL_H
#define KFI_INJECT_INTERNAL_H

#include "kfi_inject.h"

/* The plan for a call, if it is not an errno. */
#define PLAN_GO		0
#define PLAN_LOSE	1
#define PLAN_SPOIL	2
#define PLAN_DEFER	3

/* plan.c */
void plan_clear(void);
void plan_release_all(void);
int plan_ask(enum kfi_inject_op op);
void plan_returned(enum kfi_inject_op op);

/* defer.c */
struct ib_qp;
struct ib_send_wr;
int defer(struct ib_qp *qp, const struct ib_send_wr *wr);
void defer_end(struct ib_qp *qp, int (*post)(struct ib_qp *qp, const struct ib_send_wr *wr,
					     const struct ib_send_wr **bad_wr));
void defer_forget(void);

/* linger.c */
struct ib_cq;
bool linger(struct ib_cq *cq);
void linger_destroy(struct ib_cq *cq);

/* device.c */
struct ib_qp_init_attr;
struct ib_send_wr;
void device_clear(void);
bool device_refuses(const struct ib_qp_init_attr *attr);
void device_gives(struct ib_qp_init_attr *attr);
void device_sees(const struct ib_send_wr *wr);

/* mend.c */
struct ib_mr;
void mend_forget(void);
void mend_note_mr(struct ib_mr *mr, int ret);
void mend_note_qp(struct ib_qp *qp, int ret);

#endif /* KFI_INJECT_INTERNAL_H */
