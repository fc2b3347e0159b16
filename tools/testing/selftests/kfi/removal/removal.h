/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfi_removal.ko: two domains on a device that goes away, and what their consumer does meanwhile.
 *
 * A scenario is opened when the module is loaded; then a script takes the device away, and asks
 * what came of it.
 */
#ifndef KFI_REMOVAL_H
#define KFI_REMOVAL_H

#include <linux/completion.h>
#include <linux/kthread.h>
#include <rdma/ib_verbs.h>

#include <kfabric.h>
#include <kfi_domain.h>
#include <kfi_verbs_ext.h>

#include "../inject/kfi_inject.h"

#define ACCESS		(KFI_REMOTE_READ | KFI_REMOTE_WRITE)

/* For what must come, on any machine; and for what must not come meanwhile. */
#define PATIENCE	(60 * HZ)
#define A_WHILE_MS	300

/* The return value of closing a region that the device would not let go of. */
#define LEAKED		(-KFI_EIO)

/* The open objects. A domain that has been closed is NULL. */
extern struct kfi_info *info;
extern struct kfid_fabric *fabric;
extern struct kfid_domain *domain[2];
extern struct kfi_verbs_dom_ops *verbs;

/* Something came out that must not. Printed and counted. */
extern unsigned int unexpected;

#define UNEXPECTED(fmt, ...)							\
do {										\
	unexpected++;								\
	pr_err("kfi_removal: unexpected: " fmt "\n", ##__VA_ARGS__);		\
} while (0)

#define EXPECT_EQ(is, want)							\
do {										\
	long _is = (is), _want = (want);					\
										\
	if (_is != _want)							\
		UNEXPECTED(#is " is %ld, not %ld", _is, _want);			\
} while (0)

/* Closes a domain, which must give @want. */
void close_domain(unsigned int i, int want);

/* Begins a thread, or returns NULL and says so; waits until it has returned, if there is one. */
struct task_struct *begin_thread(int (*run)(void *arg), void *arg);
void wait_for_thread(struct task_struct *thread);

/**
 * struct scenario - what a consumer does
 * @name: Its name.
 * @open: Gets everything ready, with both domains open.
 * @gone: The device has gone: was all as it is to be?
 * @close: Lets go of what @open has got ready; the domains that are left are closed next.
 */
struct scenario {
	const char *name;
	int (*open)(void);
	void (*gone)(void);
	void (*close)(void);
};

extern const struct scenario pair_scenarios[];
extern const struct scenario order_scenarios[];
extern const struct scenario leak_scenarios[];
extern const struct scenario meet_scenarios[];

#endif /* KFI_REMOVAL_H */
