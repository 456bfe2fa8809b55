/*
 * The sites where a profiler listens: USDT sites of the otel_memory contract.
 *
 *   otel_memory:alloc(ptr, size, weight)  a sampled allocation: the bytes asked for, and the bytes
 *                                         that it represents (unbiased: their sum over samples
 *                                         is right on average)
 *   otel_memory:free(ptr)                 such a block is about to be freed
 *   memscope:untracked(ptr, size, weight) a sampled allocation whose free is not reported: there
 *                                         was no room in the set
 *
 * A site is an instruction that does nothing, and a note (section .note.stapsdt, the form of
 * SystemTap's sys/sdt.h, version 3) that says where it is and where its arguments are: in the
 * registers of a call's first arguments. There is no semaphore: nobody is asked, nothing waits.
 *
 * On x86-64 it is the short nop, which every kernel emulates when it is probed. Not the one of five
 * bytes, which costs a probe a third less on Linux 6.18: the kernel makes a call of that one, to a
 * page that a forked child does not have, and the child dies of it.
 */
#ifndef MEMSCOPE_PRELOAD_SITES_H
#define MEMSCOPE_PRELOAD_SITES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define SITE_NOP   "nop\n"
#define SITE_ARG_1 "8@%%rdi"
#define SITE_ARG_3 "8@%%rdi 8@%%rsi 8@%%rdx"
#define SITE_REG_1 "rdi"
#define SITE_REG_2 "rsi"
#define SITE_REG_3 "rdx"
#elif defined(__aarch64__)
#define SITE_NOP   "nop\n"
#define SITE_ARG_1 "8@x0"
#define SITE_ARG_3 "8@x0 8@x1 8@x2"
#define SITE_REG_1 "x0"
#define SITE_REG_2 "x1"
#define SITE_REG_3 "x2"
#else
#error "sites.h: which registers hold the arguments here is not known"
#endif

/* note: namesz descsz type "stapsdt"; desc: place, base, semaphore, provider, name, arguments */
#define SITE(provider, name, args)                                                                 \
	"990:\t" SITE_NOP                                                                          \
	"\t.pushsection .note.stapsdt, \"\", \"note\"\n"                                           \
	"\t.balign 4\n"                                                                            \
	"\t.4byte 992f-991f, 994f-993f, 3\n"                                                       \
	"991:\t.asciz \"stapsdt\"\n"                                                               \
	"992:\t.balign 4\n"                                                                        \
	"993:\t.8byte 990b, _.stapsdt.base, 0\n"                                                   \
	"\t.asciz \"" provider "\", \"" name "\", \"" args "\"\n"                                  \
	"994:\t.balign 4\n"                                                                        \
	"\t.popsection\n"                                                                          \
	".ifndef _.stapsdt.base\n"                                                                 \
	"\t.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"              \
	"\t.weak _.stapsdt.base\n"                                                                 \
	"\t.hidden _.stapsdt.base\n"                                                               \
	"_.stapsdt.base: .space 1\n"                                                               \
	"\t.size _.stapsdt.base, 1\n"                                                              \
	"\t.popsection\n"                                                                          \
	".endif\n"

#define SITE_OF_THREE(provider, name, a, b, c)                                                     \
	do {                                                                                       \
		register uintptr_t r1 asm(SITE_REG_1) = (uintptr_t)(a);                            \
		register uintptr_t r2 asm(SITE_REG_2) = (b);                                       \
		register uintptr_t r3 asm(SITE_REG_3) = (c);                                       \
		asm volatile(SITE(provider, name, SITE_ARG_3) : : "r"(r1), "r"(r2), "r"(r3));      \
	} while (0)

#define SITE_OF_ONE(provider, name, a)                                                             \
	do {                                                                                       \
		register uintptr_t r1 asm(SITE_REG_1) = (uintptr_t)(a);                            \
		asm volatile(SITE(provider, name, SITE_ARG_1) : : "r"(r1));                        \
	} while (0)

/* The unit test listens in its own way. */
#ifndef SITE_ALLOC
#define SITE_ALLOC(p, size, weight)     SITE_OF_THREE("otel_memory", "alloc", p, size, weight)
#define SITE_FREE(p)                    SITE_OF_ONE("otel_memory", "free", p)
#define SITE_UNTRACKED(p, size, weight) SITE_OF_THREE("memscope", "untracked", p, size, weight)
#endif

#endif
