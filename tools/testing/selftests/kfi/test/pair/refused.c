// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses that the server's region doesn't allow: the requester is told, and the connection is
 * over.
 */
#include "pair.h"

#define LEN	64

static const struct {
	const char *what;
	u32 flags;
	bool write;
	size_t at;
	u64 key;
} tries[] = {
	{ "a write where one may read", PAIR_READ, true, 0, 0 },
	{ "a read where one may write", PAIR_WRITE, false, 0, 0 },
	{ "a write beyond the end", PAIR_READ | PAIR_WRITE, true, PAIR_REGION - LEN + 1, 0 },
	{ "a read beyond the end", PAIR_READ | PAIR_WRITE, false, PAIR_REGION - LEN + 1, 0 },
	{ "a write far behind it", PAIR_READ | PAIR_WRITE, true, 16 * PAIR_REGION, 0 },
	{ "a read with another key", PAIR_READ | PAIR_WRITE, false, 0, 0x100 },
};

void pair_refused_case(struct kfi_test *t)
{
	struct kfi_cq_err_entry err;
	struct pair_link *l;
	unsigned int i;
	ssize_t ret;

	for (i = 0; i < ARRAY_SIZE(tries) && !t->failures; i++) {
		u64 addr, key;

		/* The server reports the region's content in the end. */
		l = pair_link(t, tries[i].flags | PAIR_UNTOUCHED);
		if (!l)
			return;
		addr = l->welcome.addr + tries[i].at;
		key = l->welcome.key ^ tries[i].key;
		memset(l->out, 0x5a, LEN);
		EXPECT_EQ(t, kfi_recv(l->side.ep, l->in[0], PAIR_MESSAGE, NULL, 0, l->in[0]), 0);
		if (tries[i].write)
			ret = kfi_write(l->side.ep, l->out, LEN, NULL, 0, addr, key, l);
		else
			ret = kfi_read(l->side.ep, l->out, LEN, NULL, 0, addr, key, l);
		if (EXPECT_EQ(t, ret, 0) &&
		    ep_failed_op(t, l->side.tx, l, KFI_EACCES, &err) &&
		    ep_failed_op(t, l->side.rx, l->in[0], KFI_ECANCELED, &err) &&
		    pair_ended(t, l))
			EXPECT_EQ(t, kfi_send(l->side.ep, l->out, LEN, NULL, 0, l), -KFI_ENOTCONN);
		EXPECT(t, !memchr_inv(l->out, 0x5a, LEN), "own bytes have changed");
		pair_close(t, l);
		if (t->failures)
			ktap_note("%s", tries[i].what);
	}
	l = pair_link(t, 0);
	if (l) {
		pair_server_is_content(t, l);
		pair_close(t, l);
	}
}
