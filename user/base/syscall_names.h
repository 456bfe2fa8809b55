/*
 * The names of system calls, by their numbers on this architecture; and of errors.
 */
#ifndef MEMSCOPE_BASE_SYSCALL_NAMES_H
#define MEMSCOPE_BASE_SYSCALL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define SYSCALL_NAME_MAX 48

/* "openat"; "syscall_999" where it has no name here; "32bit_open" of a 32-bit program (`compat`), "32bit_5" where its numbers have no header. Written to `room` where it
 * is not constant. */
const char *syscall_name(uint32_t nr, bool compat, char room[SYSCALL_NAME_MAX]);
/* -1: there is none of that name. */
int syscall_number(const char *name);
/* "ENOENT", with those that the kernel keeps to itself ("ERESTARTSYS"); NULL: none of that number. */
const char *errno_name(int error);

#endif
