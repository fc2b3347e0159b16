// SPDX-License-Identifier: GPL-2.0
/* Connecting: private data, being refused, nobody there. */
#include "pair.h"

/* Both sides check what comes with a request and with its acceptance. */
void pair_data_case(struct kfi_test *t)
{
	struct pair_link *l;
	int i;

	for (i = 0; i < 3 && !t->failures; i++) {
		l = pair_link(t, 0);
		if (!l)
			return;
		if (i == 2)
			pair_server_is_content(t, l);
		else if (i == 1 && EXPECT_EQ(t, kfi_shutdown(l->side.ep, 0), 0))
			pair_ended(t, l);
		pair_close(t, l);
	}
}

void pair_reject_case(struct kfi_test *t)
{
	struct pair_link *l = pair_open(t);
	struct kfi_eq_err_entry err;

	if (!l)
		return;
	if (pair_connect(t, l, PAIR_REFUSE)) {
		ep_failed(t, l->side.eq, &l->side.ep->fid, KFI_ECONNREFUSED, &err);
		if (EXPECT(t, err.err_data && err.err_data_size >= PAIR_REJECT, "no private data"))
			EXPECT(t, pair_is(err.err_data, PAIR_REJECT, l->seed + 1),
			       "other private data");
	}
	pair_close(t, l);
	pair_works(t);
}

/* The listener goes, connections stay; and comes again. */
void pair_nobody_case(struct kfi_test *t)
{
	static const struct pair_msg deaf = { .op = PAIR_DEAF }, listen = { .op = PAIR_LISTEN };
	struct pair_link *l = pair_link(t, 0), *in_vain;
	struct kfi_eq_err_entry err;

	if (!l)
		return;
	if (pair_ask(t, l, &deaf)) {
		in_vain = pair_open(t);
		if (in_vain) {
			if (pair_connect(t, in_vain, 0))
				ep_failed(t, in_vain->side.eq, &in_vain->side.ep->fid,
					  KFI_ECONNREFUSED, &err);
			pair_close(t, in_vain);
		}
		if (pair_ask(t, l, &listen))
			pair_works(t);
	}
	pair_server_is_content(t, l);
	pair_close(t, l);
}
