// SPDX-License-Identifier: GPL-2.0
/* Every call, the bytes verified at both sides. */
#include <kfi_atomic.h>
#include <kfi_pair_calls.h>

#include "pair.h"

#define LEN	(3 * PAGE_SIZE + 100)

/* A message and an answer by each call: what the server got, and what came back. */
void pair_messages_case(struct kfi_test *t)
{
	static const size_t sizes[] = { 0, 1, 100, PAGE_SIZE, PAIR_MESSAGE - sizeof(struct pair_msg) };
	struct pair_link *l = pair_link(t, 0);
	struct pair_msg echo = { .op = PAIR_ECHO };
	size_t injected;
	unsigned int i;

	if (!l)
		return;
	injected = l->info->tx_attr->inject_size;
	if (!EXPECT(t, injected >= sizeof(echo), "inject_size is %zu", injected))
		goto out;
	for (echo.call = 0; echo.call < PAIR_SENDS; echo.call++) {
		for (i = 0; i < ARRAY_SIZE(sizes) && !t->failures; i++) {
			echo.len = sizes[i];
			if (pair_call_injects(echo.call))
				echo.len = min(echo.len, injected - sizeof(echo));
			echo.seed = l->seed + 8 * i + echo.call;
			echo.data = 0xf0000000 + echo.seed % 0x1000000;
			if (!pair_ask(t, l, &echo))
				ktap_note("by call %u, %u bytes", echo.call, echo.len);
		}
	}
	pair_server_is_content(t, l);
out:
	pair_close(t, l);
}

/* Memory of this side: with guards, and registered if the server is to reach it. */
struct own {
	u8 *mem;
	u8 *at;
	struct kfid_mr *mr;
};

static bool own_open(struct kfi_test *t, struct pair_link *l, struct own *o, u64 access)
{
	o->mem = kmalloc(LEN + 2 * GUARD, GFP_KERNEL);
	if (!EXPECT(t, o->mem, "no memory"))
		return false;
	o->at = o->mem + GUARD;
	return !access || EXPECT_EQ(t, kfi_mr_reg(l->side.domain, o->at, LEN, access, 0, 0, 0,
						  &o->mr, NULL), 0);
}

static void own_close(struct kfi_test *t, struct own *o)
{
	if (o->mr)
		EXPECT_EQ(t, kfi_close(&o->mr->fid), 0);
	kfree(o->mem);
}

/* Parts of a region: all, its ends, and pieces within, on pages and off. */
struct part {
	size_t at;
	size_t len;
};

static const struct part parts[] = {
	{ 0, LEN }, { 0, 1 }, { LEN - 1, 1 }, { 100, 5000 }, { PAGE_SIZE, PAGE_SIZE },
};

static bool filled(struct kfi_test *t, struct pair_link *l, u32 seed)
{
	struct pair_msg fill = { .op = PAIR_FILL, .seed = seed };

	return pair_ask(t, l, &fill);
}

void pair_reads_case(struct kfi_test *t)
{
	struct pair_link *l = pair_link(t, PAIR_READ | PAIR_UNTOUCHED);
	struct own o = {};
	unsigned int i, call;
	u8 *want;

	if (!l)
		return;
	want = kmalloc(PAIR_REGION + PAIR_GUARD, GFP_KERNEL);
	if (!EXPECT(t, want, "no memory") || !own_open(t, l, &o, 0))
		goto out;
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		/* The pattern begins with the guard that is in front of the region. */
		pair_fill(want, PAIR_REGION + PAIR_GUARD, l->seed + i);
		if (!filled(t, l, l->seed + i))
			break;
		for (call = 0; call < PAIR_READS && !t->failures; call++) {
			size_t at = parts[i].at, len = parts[i].len;

			memset(o.mem, 0x5a, LEN + 2 * GUARD);
			if (!EXPECT_EQ(t, pair_read(l->side.ep, call, o.at, len,
						    l->welcome.addr + at, l->welcome.key, &o), 0) ||
			    !ep_completed(t, l->side.tx, &o, KFI_RMA | KFI_READ, NULL))
				break;
			EXPECT(t, !memcmp(o.at, want + PAIR_GUARD + at, len) &&
					  !memchr_inv(o.mem, 0x5a, GUARD) &&
					  !memchr_inv(o.at + len, 0x5a, LEN + GUARD - len),
			       "call %u, %zu bytes at %zu: others", call, len, at);
		}
	}
out:
	own_close(t, &o);
	kfree(want);
	pair_close(t, l);
}

void pair_writes_case(struct kfi_test *t)
{
	struct pair_link *l = pair_link(t, PAIR_WRITE);
	struct own o = {};
	unsigned int i, call;

	if (!l)
		return;
	if (!own_open(t, l, &o, 0))
		goto out;
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		for (call = 0; call < PAIR_WRITES && !t->failures; call++) {
			struct pair_msg check = {
				.op = PAIR_CHECK,
				.addr = parts[i].at,
				.len = parts[i].len,
				.base = l->seed + 2 * call,
				.seed = l->seed + 2 * call + 1,
			};
			u64 data = 0xabcd0000 + 100 * i + call;
			const struct pair_msg *in;

			if (pair_call_injects(call))
				check.len = min(parts[i].len, l->info->tx_attr->inject_size);
			pair_fill(o.at, check.len, check.seed);
			if (!filled(t, l, check.base) ||
			    !EXPECT_EQ(t, pair_write(l->side.ep, call, o.at, check.len, data,
						     l->welcome.addr + check.addr, l->welcome.key,
						     &o), 0))
				break;
			if (pair_call_injects(call))
				memset(o.at, 0, check.len);
			else if (!ep_completed(t, l->side.tx, &o, KFI_RMA | KFI_WRITE, NULL))
				break;
			in = pair_ask(t, l, &check);
			if (!in)
				ktap_note("call %u, %u bytes at %zu", call, check.len, parts[i].at);
			else if (pair_call_has_data(call))
				EXPECT_EQ(t, in->data, data);
		}
	}
out:
	own_close(t, &o);
	pair_close(t, l);
}

/* Words of the server's memory: added to, and swapped for others, which the server finds then. */
void pair_atomics_case(struct kfi_test *t)
{
	static const size_t at[] = { 0, 8, PAGE_SIZE - 8, PAIR_REGION - 8 };
	struct pair_link *l = pair_link(t, PAIR_READ | PAIR_WRITE);
	u64 by = 3, new, sum, want, addr, *before;
	unsigned int i;
	u8 *region;

	if (!l)
		return;
	before = kzalloc_obj(*before);
	region = kmalloc(PAIR_REGION + PAIR_GUARD, GFP_KERNEL);
	if (!EXPECT(t, before && region, "no memory"))
		goto out;
	for (i = 0; i < ARRAY_SIZE(at) && !t->failures; i++) {
		struct pair_msg check = {
			.op = PAIR_CHECK,
			.addr = at[i],
			.len = sizeof(new),
			.base = l->seed + 2 * i,
			.seed = l->seed + 2 * i + 1,
		};

		pair_fill(region, PAIR_REGION + PAIR_GUARD, check.base);
		memcpy(&want, region + PAIR_GUARD + at[i], sizeof(want));
		pair_fill((u8 *)&new, sizeof(new), check.seed);
		addr = l->welcome.addr + at[i];
		sum = want + by;
		if (!filled(t, l, check.base) ||
		    !EXPECT_EQ(t, kfi_fetch_atomic(l->side.ep, &by, 1, NULL, before, NULL, 0, addr,
						   l->welcome.key, KFI_UINT64, KFI_SUM, before), 0) ||
		    !ep_completed(t, l->side.tx, before, KFI_ATOMIC | KFI_READ, NULL) ||
		    !EXPECT(t, *before == want, "word at %zu: %llx instead of %llx", at[i], *before,
			    want) ||
		    !EXPECT_EQ(t, kfi_compare_atomic(l->side.ep, &new, 1, NULL, &sum, NULL, before,
						     NULL, 0, addr, l->welcome.key, KFI_UINT64,
						     KFI_CSWAP, before), 0) ||
		    !ep_completed(t, l->side.tx, before, KFI_ATOMIC | KFI_READ, NULL))
			break;
		EXPECT(t, *before == sum, "word at %zu: %llx instead of %llx", at[i], *before, sum);
		pair_ask(t, l, &check);
	}
out:
	kfree(before);
	kfree(region);
	pair_close(t, l);
}

/* The server reads this side's memory. */
void pair_pulled_case(struct kfi_test *t)
{
	struct pair_link *l = pair_link(t, 0);
	struct own o = {};
	unsigned int i;

	if (!l)
		return;
	if (!own_open(t, l, &o, KFI_REMOTE_READ))
		goto out;
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		struct pair_msg pull = {
			.op = PAIR_PULL,
			.addr = o.mr->iova + parts[i].at,
			.key = kfi_mr_key(o.mr),
			.len = parts[i].len,
			.seed = l->seed + i,
		};

		memset(o.mem, 0x5a, LEN + 2 * GUARD);
		pair_fill(o.at + parts[i].at, pull.len, pull.seed);
		for (pull.call = 0; pull.call < PAIR_READS && !t->failures; pull.call++)
			if (!pair_ask(t, l, &pull))
				ktap_note("call %u, %u bytes at %zu", pull.call, pull.len,
					  parts[i].at);
	}
out:
	own_close(t, &o);
	pair_close(t, l);
}

/* The server writes to it; data that come with that take a receive of this side's. */
void pair_pushed_case(struct kfi_test *t)
{
	struct pair_link *l = pair_link(t, 0);
	struct own o = {};
	unsigned int i;

	if (!l)
		return;
	if (!own_open(t, l, &o, KFI_REMOTE_WRITE))
		goto out;
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		struct pair_msg push = {
			.op = PAIR_PUSH,
			.addr = o.mr->iova + parts[i].at,
			.key = kfi_mr_key(o.mr),
			.seed = l->seed + i,
			.data = 0x98760000 + i,
		};

		for (push.call = 0; push.call < PAIR_WRITES && !t->failures; push.call++) {
			push.len = parts[i].len;
			if (pair_call_injects(push.call))
				push.len = min(parts[i].len, l->info->tx_attr->inject_size);
			pair_fill(o.mem, LEN + 2 * GUARD, push.seed + 1000);
			pair_ask(t, l, &push);
			EXPECT(t, pair_holds(o.mem, LEN + 2 * GUARD, push.seed + 1000,
					     GUARD + parts[i].at, push.len, push.seed),
			       "call %u, %u bytes at %zu: others", push.call, push.len, parts[i].at);
		}
	}
out:
	own_close(t, &o);
	pair_close(t, l);
}
