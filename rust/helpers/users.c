// SPDX-License-Identifier: GPL-2.0
/*
 * A per-CPU count of the users of an object that is taken away. It adds two things to percpu_ref: a wait for
 * the last user, and memory ordering between opening the gate and entering it.
 */
#include <linux/completion.h>
#include <linux/percpu-refcount.h>
#include <linux/wait_bit.h>

#include "inline.h"
#include "kfabric_helpers.h"

/* Any context. The last to touch @ref: who waits for this may free it. */
static void none_left(struct percpu_ref *ref)
{
	complete_all(&container_of(ref, struct kfi_helper_users, ref)->none);
}

/* May sleep. */
int kfi_helper_users_init(struct kfi_helper_users *users, bool open)
{
	init_completion(&users->none);
	if (!open)
		complete_all(&users->none);
	return percpu_ref_init(&users->ref, none_left,
			       open ? PERCPU_REF_ALLOW_REINIT : PERCPU_REF_INIT_DEAD, GFP_KERNEL);
}

/* Counts one more, if it is open. Any context. */
KFI_HELPER bool kfi_helper_users_enter(struct kfi_helper_users *users)
{
	if (!percpu_ref_tryget_live(&users->ref))
		return false;
	/* Pairs with the barrier in kfi_helper_users_open(). */
	smp_acquire__after_ctrl_dep();
	return true;
}

/* Any context. */
KFI_HELPER void kfi_helper_users_leave(struct kfi_helper_users *users)
{
	percpu_ref_put(&users->ref);
}

/* Any context; if it is open, and by one at a time. */
void kfi_helper_users_shut(struct kfi_helper_users *users)
{
	percpu_ref_kill(&users->ref);
}

/* Sleeps until all who were counted have left, and at least for an RCU grace period. */
void kfi_helper_users_drain(struct kfi_helper_users *users)
{
	wait_for_completion(&users->none);
}

/* Any context; if nobody was let in yet, or all have left since it was shut. */
void kfi_helper_users_open(struct kfi_helper_users *users)
{
	reinit_completion(&users->none);
	/* A user that finds the gate open sees the object behind it. */
	smp_wmb();
	percpu_ref_reinit(&users->ref);
}

/* Shuts it, if that was not done, and sleeps as kfi_helper_users_drain() does. */
void kfi_helper_users_exit(struct kfi_helper_users *users)
{
	if (!percpu_ref_is_dying(&users->ref))
		percpu_ref_kill(&users->ref);
	wait_for_completion(&users->none);
	percpu_ref_exit(&users->ref);
}

/* Sleeps until a count of users has no bit set but the lowest. */
void kfi_helper_wait_left(unsigned long *users)
{
	wait_var_event(users, !(READ_ONCE(*users) & ~1UL));
	/* Pairs with the full order of the user that leaves. */
	smp_mb();
}

/* Uses only the address. Any context. */
void kfi_helper_wake_left(unsigned long *users)
{
	wake_up_var(users);
}
