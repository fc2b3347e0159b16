/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the configuration says of a compiler is said of the kernel's, which may be GCC. Here is what is to be taken
 * back of it for clang, which inlined.c is compiled by; it is included behind the configuration, before all else.
 *
 * Of all that GCC and clang are configured differently for, headers use one thing: clang has the names of address spaces,
 * but not in operands of an asm, which lose their segment, so that a counter of this CPU would be one anywhere. A
 * kernel that clang compiles has neither of these.
 */
#undef CONFIG_CC_HAS_NAMED_AS
#undef CONFIG_USE_X86_SEG_SUPPORT
