// SPDX-License-Identifier: GPL-2.0
/*
 * The plan for each operation.
 *
 * All of it is under one spinlock, which is innermost: nothing else is taken and nothing is called
 * under it but wake_up_all(). Calls come in any context.
 */
#include <linux/export.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "inject.h"

#define PATIENCE	(KFI_INJECT_SECONDS * HZ)

/**
 * struct some - some of the calls that are to come
 * @skip: The number of calls that are not meant.
 * @count: The number of calls after them that are.
 */
struct some {
	unsigned int skip;
	unsigned int count;
};

/**
 * struct plan - what is planned for an operation
 * @calls: How many there were.
 * @returned: How many of them are over.
 * @fail: The calls that fail.
 * @err: How.
 * @lose: The calls whose requests get lost.
 * @spoil: The calls whose requests the device fails.
 * @defer: The calls whose requests the driver gets later.
 * @held: Calls wait.
 * @waiting: How many do, of the present hold.
 * @releases: How often calls were let go: a hold that comes after that isn't theirs.
 */
struct plan {
	unsigned int calls;
	unsigned int returned;
	struct some fail;
	int err;
	struct some lose;
	struct some spoil;
	struct some defer;
	bool held;
	unsigned int waiting;
	unsigned int releases;
};

static struct plan plans[KFI_INJECT_OPS];
static DEFINE_SPINLOCK(lock);
static DECLARE_WAIT_QUEUE_HEAD(changed);

static bool take(struct some *s)
{
	if (!s->count)
		return false;
	if (s->skip) {
		s->skip--;
		return false;
	}
	if (s->count != UINT_MAX)
		s->count--;
	return true;
}

static bool released_since(struct plan *p, unsigned int releases)
{
	guard(spinlock_irqsave)(&lock);
	return p->releases != releases;
}

/* As far as the kernel can tell. */
static bool may_wait(void)
{
	return IS_ENABLED(CONFIG_PREEMPT_COUNT) ? preemptible() : in_task() && !irqs_disabled();
}

/*
 * Counts a call. Returns whether it must wait; then @releases is the number of releases that it
 * waits to exceed.
 */
static bool enter(struct plan *p, unsigned int *releases)
{
	bool can = may_wait();

	guard(spinlock_irqsave)(&lock);
	p->calls++;
	*releases = p->releases;
	if (!p->held || WARN_ON_ONCE(!can))
		return false;
	p->waiting++;
	return true;
}

static void wait(struct plan *p, unsigned int releases)
{
	wake_up_all(&changed);
	if (wait_event_idle_timeout(changed, released_since(p, releases), PATIENCE))
		return;
	pr_err("kfi_inject: nobody let a call of operation %td go\n", p - plans);
	guard(spinlock_irqsave)(&lock);
	if (p->releases == releases)
		p->waiting--;
}

static int verdict(struct plan *p)
{
	guard(spinlock_irqsave)(&lock);
	if (take(&p->fail))
		return p->err;
	if (take(&p->lose))
		return PLAN_LOSE;
	if (take(&p->spoil))
		return PLAN_SPOIL;
	return take(&p->defer) ? PLAN_DEFER : PLAN_GO;
}

/**
 * plan_ask() - A call has come.
 * @op: Of what.
 *
 * Context: Any; sleeps if the operation is held.
 * Return: A negative errno, or one of the PLAN_*.
 */
int plan_ask(enum kfi_inject_op op)
{
	struct plan *p = &plans[op];
	unsigned int releases;

	if (enter(p, &releases))
		wait(p, releases);
	return verdict(p);
}

/**
 * plan_returned() - A call is over.
 * @op: Of what.
 */
void plan_returned(enum kfi_inject_op op)
{
	guard(spinlock_irqsave)(&lock);
	plans[op].returned++;
	wake_up_all(&changed);
}

/**
 * plan_clear() - Nothing is planned, and no call was counted.
 *
 * Nothing is held at that time.
 */
void plan_clear(void)
{
	guard(spinlock_irqsave)(&lock);
	memset(plans, 0, sizeof(plans));
}

/**
 * plan_release_all() - Let all go that is held.
 */
void plan_release_all(void)
{
	enum kfi_inject_op op;

	for (op = 0; op < KFI_INJECT_OPS; op++)
		kfi_inject_release(op);
}

void kfi_inject_fail(enum kfi_inject_op op, int err, unsigned int skip, unsigned int count)
{
	guard(spinlock_irqsave)(&lock);
	plans[op].err = err;
	plans[op].fail = (struct some){ skip, count };
}
EXPORT_SYMBOL_GPL(kfi_inject_fail);

void kfi_inject_spoil(enum kfi_inject_op op, unsigned int skip, unsigned int count)
{
	if (WARN_ON_ONCE(op != KFI_INJECT_POST_REG && op != KFI_INJECT_POST_INV))
		return;
	guard(spinlock_irqsave)(&lock);
	plans[op].spoil = (struct some){ skip, count };
}
EXPORT_SYMBOL_GPL(kfi_inject_spoil);

void kfi_inject_lose(enum kfi_inject_op op, unsigned int skip, unsigned int count)
{
	if (WARN_ON_ONCE(op != KFI_INJECT_POST_REG && op != KFI_INJECT_POST_INV &&
			 op != KFI_INJECT_POST_TO_PEER && op != KFI_INJECT_POLL_CQ))
		return;
	guard(spinlock_irqsave)(&lock);
	plans[op].lose = (struct some){ skip, count };
}
EXPORT_SYMBOL_GPL(kfi_inject_lose);

void kfi_inject_defer(enum kfi_inject_op op, unsigned int skip, unsigned int count)
{
	if (WARN_ON_ONCE(op != KFI_INJECT_POST_REG && op != KFI_INJECT_POST_INV))
		return;
	guard(spinlock_irqsave)(&lock);
	plans[op].defer = (struct some){ skip, count };
}
EXPORT_SYMBOL_GPL(kfi_inject_defer);

void kfi_inject_hold(enum kfi_inject_op op)
{
	guard(spinlock_irqsave)(&lock);
	plans[op].held = true;
}
EXPORT_SYMBOL_GPL(kfi_inject_hold);

static bool is_held(struct plan *p)
{
	guard(spinlock_irqsave)(&lock);
	return p->held && p->waiting;
}

bool kfi_inject_wait_held(enum kfi_inject_op op)
{
	return wait_event_timeout(changed, is_held(&plans[op]), PATIENCE);
}
EXPORT_SYMBOL_GPL(kfi_inject_wait_held);

void kfi_inject_release(enum kfi_inject_op op)
{
	struct plan *p = &plans[op];

	guard(spinlock_irqsave)(&lock);
	p->held = false;
	p->waiting = 0;
	p->releases++;
	wake_up_all(&changed);
}
EXPORT_SYMBOL_GPL(kfi_inject_release);

unsigned int kfi_inject_calls(enum kfi_inject_op op)
{
	guard(spinlock_irqsave)(&lock);
	return plans[op].calls;
}
EXPORT_SYMBOL_GPL(kfi_inject_calls);

static bool has_returned(struct plan *p, unsigned int count)
{
	guard(spinlock_irqsave)(&lock);
	return p->returned >= count;
}

bool kfi_inject_wait_returned(enum kfi_inject_op op, unsigned int count)
{
	return wait_event_timeout(changed, has_returned(&plans[op], count), PATIENCE);
}
EXPORT_SYMBOL_GPL(kfi_inject_wait_returned);
