/* SPDX-License-Identifier: GPL-2.0 */
/* Connections to a server in another module, or in another kernel: what the files share. */
#ifndef KFI_TEST_PAIR_H
#define KFI_TEST_PAIR_H

#include <kfi_pair.h>

#include "../ep/ep.h"

/* Where the server is: module parameters. */
extern char *kfi_peer_address;
extern char *kfi_port;

/* Receives that a client may have posted: for an answer, and for data that come before it. */
#define PAIR_SLOTS	2

/**
 * struct pair_link - a connection to the server
 * @side: The objects of the link. Several links may have all but the endpoint in common.
 * @info: The info of kfi_getinfo() for the server's address.
 * @seed: The connection's own.
 * @welcome: The server's message: where its region is.
 * @out: The message to send.
 * @in: The receives' memory.
 */
struct pair_link {
	struct ep_side side;
	struct kfi_info *info;
	u32 seed;
	struct pair_welcome welcome;
	u8 *out;
	u8 *in[PAIR_SLOTS];
};

/* Opens what a connection needs; then the endpoint; asks for the connection, and has it. */
struct pair_link *pair_open(struct kfi_test *t);
bool pair_connect(struct kfi_test *t, struct pair_link *l, u32 flags);
bool pair_connected(struct kfi_test *t, struct pair_link *l);
void pair_close(struct kfi_test *t, struct pair_link *l);

/* All of it, with a region whose rights are in @flags (PAIR_READ and so on). */
struct pair_link *pair_link(struct kfi_test *t, u32 flags);

/* A connection is there, and bytes come over it; used after another one has broken. */
void pair_works(struct kfi_test *t);

/* The connection has ended, as the endpoint's events tell. */
bool pair_ended(struct kfi_test *t, struct pair_link *l);

/* Asks the server for something; its answer, or NULL, which was reported. */
const struct pair_msg *pair_ask(struct kfi_test *t, struct pair_link *l, const struct pair_msg *m);

/* The server has no other connection any more; and nothing has been wrong there. */
void pair_server_is_content(struct kfi_test *t, struct pair_link *l);

/* connect.c */
void pair_data_case(struct kfi_test *t);
void pair_reject_case(struct kfi_test *t);
void pair_nobody_case(struct kfi_test *t);

/* many.c */
void pair_many_case(struct kfi_test *t);
void pair_shared_case(struct kfi_test *t);

/* calls.c */
void pair_messages_case(struct kfi_test *t);
void pair_reads_case(struct kfi_test *t);
void pair_writes_case(struct kfi_test *t);
void pair_atomics_case(struct kfi_test *t);
void pair_pulled_case(struct kfi_test *t);
void pair_pushed_case(struct kfi_test *t);

/* refused.c */
void pair_refused_case(struct kfi_test *t);

/* stream.c */
void pair_dropped_case(struct kfi_test *t);
void pair_killed_case(struct kfi_test *t);
void pair_cut_case(struct kfi_test *t);

#endif /* KFI_TEST_PAIR_H */
