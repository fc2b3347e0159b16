/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kfabric error numbers.
 *
 * Every call that can fail returns a negative number out of this file. Those below
 * KFI_ERRNO_OFFSET are the Linux errno of the same name; those from it on are kfabric's own.
 *
 * Beware of one pair: KFI_ENOKEY (266) is kfabric's own and is not the ENOKEY of Linux, whereas
 * KFI_EKEYREJECTED is the EKEYREJECTED of Linux.
 */
#ifndef _KFI_ERRNO_H_
#define _KFI_ERRNO_H_

#include <linux/errno.h>

#define KFI_SUCCESS		0

/* The Linux numbers that API 1.7 names. */
#define KFI_ENOENT		ENOENT
#define KFI_EIO			EIO
#define KFI_E2BIG		E2BIG
#define KFI_EBADF		EBADF
#define KFI_EAGAIN		EAGAIN
#define KFI_ENOMEM		ENOMEM
#define KFI_EACCES		EACCES
#define KFI_EBUSY		EBUSY
#define KFI_ENODEV		ENODEV
#define KFI_EINVAL		EINVAL
#define KFI_EMFILE		EMFILE
#define KFI_ENOSPC		ENOSPC
#define KFI_ENOSYS		ENOSYS
#define KFI_ENOMSG		ENOMSG
#define KFI_ENODATA		ENODATA
#define KFI_EMSGSIZE		EMSGSIZE
#define KFI_ENOPROTOOPT		ENOPROTOOPT
#define KFI_EOPNOTSUPP		EOPNOTSUPP
#define KFI_EADDRINUSE		EADDRINUSE
#define KFI_EADDRNOTAVAIL	EADDRNOTAVAIL
#define KFI_ENETDOWN		ENETDOWN
#define KFI_ENETUNREACH		ENETUNREACH
#define KFI_ECONNABORTED	ECONNABORTED
#define KFI_ECONNRESET		ECONNRESET
#define KFI_EISCONN		EISCONN
#define KFI_ENOTCONN		ENOTCONN
#define KFI_ESHUTDOWN		ESHUTDOWN
#define KFI_ETIMEDOUT		ETIMEDOUT
#define KFI_ECONNREFUSED	ECONNREFUSED
#define KFI_EHOSTUNREACH	EHOSTUNREACH
#define KFI_EALREADY		EALREADY
#define KFI_EINPROGRESS		EINPROGRESS
#define KFI_EREMOTEIO		EREMOTEIO
#define KFI_ECANCELED		ECANCELED
#define KFI_EKEYREJECTED	EKEYREJECTED

/* Further Linux numbers, added by this project. */
#define KFI_EPERM		EPERM
#define KFI_EINTR		EINTR
#define KFI_ENXIO		ENXIO
#define KFI_EFAULT		EFAULT
#define KFI_EEXIST		EEXIST
#define KFI_ERANGE		ERANGE
#define KFI_ENAMETOOLONG	ENAMETOOLONG
#define KFI_EPROTO		EPROTO
#define KFI_EOVERFLOW		EOVERFLOW
#define KFI_EPROTONOSUPPORT	EPROTONOSUPPORT
#define KFI_EAFNOSUPPORT	EAFNOSUPPORT
#define KFI_ENOBUFS		ENOBUFS
#define KFI_EHOSTDOWN		EHOSTDOWN
#define KFI_ENOTRECOVERABLE	ENOTRECOVERABLE

/* kfabric's own numbers start here. */
#define KFI_ERRNO_OFFSET	256

enum {
	KFI_EOTHER	= KFI_ERRNO_OFFSET,	/* no better number fits */
	KFI_ETOOSMALL	= 257,			/* the caller's buffer can't hold the result */
	KFI_EOPBADSTATE	= 258,			/* the object's state doesn't allow it now */
	KFI_EAVAIL	= 259,			/* an error entry waits to be read */
	KFI_EBADFLAGS	= 260,			/* a flag that isn't supported here */
	KFI_ENOEQ	= 261,			/* no event queue bound or available */
	KFI_EDOMAIN	= 262,			/* the wrong domain, or none */
	KFI_ENOCQ	= 263,			/* no completion queue bound or available */
	KFI_ECRC	= 264,			/* a checksum didn't match */
	KFI_ETRUNC	= 265,			/* data was cut off */
	KFI_ENOKEY	= 266,			/* the key is in use, or there is none */
	KFI_ENOAV	= 267,			/* no address vector bound or available */
	KFI_EOVERRUN	= 268,			/* a queue overflowed, entries are lost */
	KFI_ERRNO_MAX,				/* one past the last number */
	FI_ERRNO_MAX	= KFI_ERRNO_MAX		/* the name that API 1.7 has for it */
};

/**
 * kfi_strerror() - Describe an error number.
 * @errnum: A KFI or Linux error number, with either sign.
 *
 * Context: Any; doesn't sleep.
 * Return: A constant string, never NULL and never freed. Numbers without a text of their own
 * share one that says that they are unknown.
 */
const char *kfi_strerror(int errnum);

#endif /* _KFI_ERRNO_H_ */
