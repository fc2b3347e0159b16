/* SPDX-License-Identifier: GPL-2.0 */
/* The timer after which rxe repeats messages that the peer had no receive for. */
#ifndef KFI_TEST_EP_RNR_H
#define KFI_TEST_EP_RNR_H

#include "ep.h"

/**
 * rnr_hold() - Take the timer of the second side of a connection from rxe.
 * @t: The case.
 * @p: The connection. Its second side sends a message, its first side receives it.
 * @mem: Memory for the message: 16 bytes.
 *
 * Until rnr_release() the second side repeats nothing. Close its endpoint before the case
 * ends. Process context, may sleep.
 *
 * Return: Whether that is done. Otherwise the case was skipped or has failed.
 */
bool rnr_hold(struct kfi_test *t, struct ep_pair *p, u8 *mem);

/* Waits until the timer has expired, and is held: the second side waits to repeat its messages. */
bool rnr_waits(struct kfi_test *t);

/* Lets the second side repeat its messages. */
void rnr_release(void);

#endif /* KFI_TEST_EP_RNR_H */
