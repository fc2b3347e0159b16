/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The configuration describes the kernel's compiler, which may be GCC. This file undoes the options that are wrong
 * for clang, which compiles inlined.c. It is included after the configuration, before everything else.
 *
 * Headers use one option that differs: named address spaces. clang has them, but drops the segment in operands of
 * an asm. A counter of this CPU would be at a wrong address. A kernel that clang compiles does not set the option.
 */
#undef CONFIG_CC_HAS_NAMED_AS
#undef CONFIG_USE_X86_SEG_SUPPORT
