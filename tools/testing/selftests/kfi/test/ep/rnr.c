// SPDX-License-Identifier: GPL-2.0
/*
 * Holding the timer of rxe's queue pairs that expires before messages are repeated (rnr.h). Tests force by
 * this what comes before the repetition.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/timer.h>

#include "rnr.h"

#ifdef CONFIG_KPROBES

/* The timer, its function in rxe, whether that may be called, and whether it has been kept from that. */
static struct timer_list *held;
static void (*expires)(struct timer_list *timer);
static bool released, waits;

/* Stands for the function of rxe. Softirq. */
static void hold(struct timer_list *timer)
{
	if (READ_ONCE(released))
		return expires(timer);
	WRITE_ONCE(waits, true);
	mod_timer(timer, jiffies + 1);
}

/* The first expiry is rxe's own, and tells which timer it is. Softirq. */
static int expired(struct kprobe *probe, struct pt_regs *regs)
{
	struct timer_list *timer = (void *)regs_get_kernel_argument(regs, 0);

	if (!READ_ONCE(held)) {
		expires = timer->function;
		timer->function = hold;
		/* Pairs with the wait in rnr_hold(): the functions are swapped. */
		smp_store_release(&held, timer);
	}
	return 0;
}

static void *ctx(unsigned long n)
{
	return (void *)(0x44400000 + n);
}

bool rnr_hold(struct kfi_test *t, struct ep_pair *p, u8 *mem)
{
	struct kprobe probe = { .symbol_name = "rnr_nak_timer", .pre_handler = expired };
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);
	struct ep_side *s = p->side;

	WRITE_ONCE(held, NULL);
	WRITE_ONCE(released, true);
	if (!EXPECT_EQ(t, register_kprobe(&probe), 0))
		return false;
	EXPECT_EQ(t, kfi_send(s[1].ep, mem, 8, NULL, 0, ctx(0)), 0);
	/* Pairs with expired(). */
	while (!smp_load_acquire(&held) && time_before(jiffies, end))
		usleep_range(100, 1000);
	unregister_kprobe(&probe);
	if (!EXPECT(t, held, "rxe has repeated nothing") ||
	    !EXPECT_EQ(t, kfi_recv(s[0].ep, mem + 8, 8, NULL, 0, ctx(1)), 0) ||
	    !ep_completed(t, s[0].rx, ctx(1), KFI_MSG | KFI_RECV, NULL) ||
	    !ep_completed(t, s[1].tx, ctx(0), KFI_MSG | KFI_SEND, NULL))
		return false;
	WRITE_ONCE(waits, false);
	WRITE_ONCE(released, false);
	return true;
}

bool rnr_waits(struct kfi_test *t)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);

	while (!READ_ONCE(waits) && time_before(jiffies, end))
		usleep_range(100, 1000);
	return EXPECT(t, READ_ONCE(waits), "nothing waits to be repeated");
}

void rnr_release(void)
{
	WRITE_ONCE(released, true);
}

#else

bool rnr_hold(struct kfi_test *t, struct ep_pair *p, u8 *mem)
{
	ktap_skip(t, "the kernel has no kprobes");
	return false;
}

bool rnr_waits(struct kfi_test *t)
{
	return false;
}

void rnr_release(void)
{
}

#endif
