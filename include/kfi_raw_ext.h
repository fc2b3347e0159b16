/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric: what is in a raw key, and the extension that looks into a mapped one.
 *
 * kfi_mr_raw_attr() gives the raw key of a region. The consumer brings it to the peer together with
 * the base address, and the peer maps it by kfi_mr_map_raw(). A region can be several regions of
 * its device, each with a key of its own. So an access by the mapped key may have to be split. A
 * peer that splits accesses itself, for instance with verbs of its own, asks this extension for the
 * parts:
 *
 *	struct kfi_rma_iov iov[4];
 *	size_t count = ARRAY_SIZE(iov);
 *	void *p;
 *
 *	rc = kfi_mr_map_raw(domain, base_addr, raw_key, key_size, &key, 0);
 *	rc = kfi_open_ops(&domain->fid, KFI_RAW_OPS_1, 0, &p, NULL);
 *	ops = p;
 *	rc = ops->resolve(&domain->fid, key, base_addr + offset, len, iov, &count);
 *	... write to or read from iov[0] to iov[count - 1], in this order ...
 *	kfi_mr_unmap_key(domain, key);
 *
 * Domains of every provider that is written in Rust have it.
 */
#ifndef _KFI_RAW_EXT_H_
#define _KFI_RAW_EXT_H_

#include <linux/types.h>

#include "kfabric.h"
#include "kfi_rma.h"

/* The extension's name, for kfi_open_ops() on a domain's fid. */
#define KFI_RAW_OPS_1		"kfi_raw_ops_v1"

/* The first bytes of a raw key: "KFRK". */
#define KFI_RAW_KEY_MAGIC	0x4b52464b
#define KFI_RAW_KEY_VERSION	1

/* Most pieces of a raw key. */
#define KFI_RAW_KEY_MOST	4096

/* Length of a raw key of @pieces pieces, in bytes. */
#define KFI_RAW_KEY_SIZE(pieces)	(24 + 24 * (size_t)(pieces))

/* Set in a key that kfi_mr_map_raw() gave, and never in a key of a provider. */
#define KFI_RAW_KEY_MAPPED	(1ULL << 63)

/**
 * struct kfi_raw_key_piece - A piece of a region, as it is in the raw key.
 * @rkey: Its key, which never has KFI_RAW_KEY_MAPPED set.
 * @base: Where its first byte is for a peer.
 * @length: How many bytes it has, at least 1. @base plus @length doesn't wrap.
 */
struct kfi_raw_key_piece {
	__le64	rkey;
	__le64	base;
	__le64	length;
};

/**
 * struct kfi_raw_key - What is in a raw key.
 * @magic: KFI_RAW_KEY_MAGIC.
 * @version: KFI_RAW_KEY_VERSION.
 * @reserved: 0.
 * @count: How many pieces, 1 to KFI_RAW_KEY_MOST; nothing follows them.
 * @reserved2: 0.
 * @total: How many bytes the region has: the sum of its pieces.
 * @piece: The pieces, in the order of the region.
 *
 * All numbers are little-endian. A raw key that is anything else is refused when it is mapped. One
 * that is well-formed but false can be mapped: then it's the target that refuses every access.
 *
 * It is for the wire: there needn't be a raw key at an aligned address.
 */
struct kfi_raw_key {
	__le32				magic;
	__le16				version;
	__le16				reserved;
	__le32				count;
	__le32				reserved2;
	__le64				total;
	struct kfi_raw_key_piece	piece[];
};

/**
 * struct kfi_raw_ops - Look into mapped raw keys.
 * @size: Size of this table in bytes, as its provider was built.
 * @resolve: Find the parts that an access by a mapped key has to be split into: of the peer's
 *	memory from @addr on, @len bytes. @key is what kfi_mr_map_raw() gave, and @addr counts from
 *	the base address that was given to it, through all pieces in order. In *@count comes the
 *	room at @iov, in parts; it goes back with how many parts there are. Each gets the address,
 *	the length and the key that the target knows, in order of @addr.
 *	Nothing is asked of the target: whether it lets the access through is seen by doing it.
 *	Process context; may sleep. How long it takes depends little on the number of mapped keys.
 *	Returns 0, or
 *	-KFI_EINVAL (@domain_fid isn't a domain of a provider written in Rust; @count is NULL, or
 *	@iov is NULL and *@count isn't 0),
 *	-KFI_ENOKEY (@key is not mapped in this domain),
 *	-KFI_EINVAL (@len is 0, or the access is not wholly inside the region), or
 *	-KFI_ETOOSMALL (more parts than *@count, which is set to what is needed).
 */
struct kfi_raw_ops {
	size_t	size;
	int	(*resolve)(struct kfid *domain_fid, u64 key, u64 addr, u64 len,
			   struct kfi_rma_iov *iov, size_t *count);
};

#endif /* _KFI_RAW_EXT_H_ */
