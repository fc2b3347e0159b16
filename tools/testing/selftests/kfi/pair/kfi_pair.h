/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The protocol of the two sides of a connection: the server (pair/) and the client (test/pair/),
 * which may run in different kernels.
 *
 * The client asks, by a message; the server does it, answers by a message, and says what it thinks
 * of the bytes that it got. Both kernels are of the same kind of machine: numbers go as they are.
 */
#ifndef KFI_PAIR_H
#define KFI_PAIR_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/string.h>
#include <linux/types.h>

/* How many bytes of the server's memory a client reaches, and in front and behind that it doesn't. */
#define PAIR_REGION	(64 * 1024)
#define PAIR_GUARD	64

/* The longest message, and how many receives the server has posted. */
#define PAIR_MESSAGE	(8 * 1024)
#define PAIR_RECEIVES	8

/* Maximum lengths of private data with a request, an acceptance, a rejection. */
#define PAIR_REQUEST	56
#define PAIR_ACCEPT	196
#define PAIR_REJECT	148

/* Each awaited event comes, in the end: this is no statement on how fast a machine is. */
#define PAIR_WAIT_MS	120000

#define PAIR_MAGIC	0x6b666932

/* The wishes of a client for its connection. */
#define PAIR_REFUSE	BIT(0)	/* it is rejected */
#define PAIR_READ	BIT(1)	/* the region may be read */
#define PAIR_WRITE	BIT(2)	/* the region may be written to */
#define PAIR_UNTOUCHED	BIT(3)	/* in the end it must hold what it held in the beginning */

/**
 * struct pair_hello - private data with a request
 * @magic: PAIR_MAGIC.
 * @flags: The wishes.
 * @seed: Of @rest, and of what the region holds in the beginning.
 * @rest: The pattern @seed.
 */
struct pair_hello {
	u32 magic;
	u32 flags;
	u32 seed;
	u8 rest[PAIR_REQUEST - 12];
};

/**
 * struct pair_welcome - private data with an acceptance
 * @addr: Where the region begins.
 * @key: Its key.
 * @seed: The seed that came with the request.
 * @rest: The pattern @seed + 1.
 */
struct pair_welcome {
	u64 addr;
	u64 key;
	u32 seed;
	u8 rest[PAIR_ACCEPT - 20];
} __packed;

static_assert(sizeof(struct pair_hello) == PAIR_REQUEST);
static_assert(sizeof(struct pair_welcome) == PAIR_ACCEPT);

/* The requests of a client. */
enum pair_op {
	PAIR_ECHO,	/* an answer with as many bytes, the pattern seed + 1, by the same call */
	PAIR_FILL,	/* the region holds the pattern seed */
	PAIR_CHECK,	/* it holds the pattern base, but at addr len bytes of the pattern seed */
	PAIR_PULL,	/* the client's memory is read, by call; it holds the pattern seed */
	PAIR_PUSH,	/* the client's memory is written, by call, the pattern seed */
	PAIR_STATUS,	/* base: open connections; seed: what went wrong so far */
	PAIR_DEAF,	/* nobody listens any more */
	PAIR_LISTEN,	/* somebody does again */
	PAIR_DROP,	/* the endpoint is closed, without an answer */
};

/**
 * struct pair_msg - what a message begins with
 * @op: The operation that is requested, or was.
 * @call: By which call this message was sent, of PAIR_SENDS; or PULL or PUSH are to be done.
 * @status: An answer's: 0, or the errno of what is wrong.
 * @len: How many bytes follow, the pattern @seed, unless @op says something else.
 * @seed: Says @op.
 * @base: Says @op.
 * @data: The remote CQ data that come with it, if @call has any; an answer to PAIR_CHECK: the last
 *	ones that came with a write.
 * @addr: Says @op.
 * @key: Says @op.
 */
struct pair_msg {
	u8 op;
	u8 call;
	u16 status;
	u32 len;
	u32 seed;
	u32 base;
	u64 data;
	u64 addr;
	u64 key;
};

/* Byte number @at of pattern number @seed: no two places, and no two patterns, are alike for long. */
static inline u8 pair_byte(u32 seed, size_t at)
{
	return ((u32)at * 0x9e3779b1 + seed * 0x85ebca6b) >> 24;
}

static inline void pair_fill(void *mem, size_t len, u32 seed)
{
	u8 *p = mem;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = pair_byte(seed, i);
}

static inline bool pair_is(const void *mem, size_t len, u32 seed)
{
	const u8 *p = mem;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != pair_byte(seed, i))
			return false;
	return true;
}

/* The pattern @base, but @len bytes at @at, which are the pattern @seed? @total bytes in all. */
static inline bool pair_holds(const u8 *mem, size_t total, u32 base, size_t at, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i < total; i++) {
		bool inside = i >= at && i - at < len;

		if (mem[i] != (inside ? pair_byte(seed, i - at) : pair_byte(base, i)))
			return false;
	}
	return true;
}

#endif /* KFI_PAIR_H */
