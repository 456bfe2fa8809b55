/*
 * From what the user typed to process ids: lists, patterns, threads.
 */
#ifndef MEMSCOPE_RUN_TARGET_H
#define MEMSCOPE_RUN_TARGET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* "12,34": distinct ids > 0, at most `cap`. Returns how many, or -EINVAL naming `option`. */
int target_parse_pids(const char *list, const char *option, pid_t *out, uint32_t cap, struct err *e);

/* "0,2-3" → wanted[0], wanted[2], wanted[3]. Returns the number of CPUs named, or -EINVAL. */
int target_parse_cpus(const char *list, bool *wanted, uint32_t cap, struct err *e);

/*
 * 0 when each wanted CPU is online, else -ENXIO with those that are. 0 as well when the kernel does
 * not say which are.
 */
int target_check_cpus(const bool *wanted, uint32_t cap, struct err *e);

/* 0, or -EINVAL: target_find() could not read this as an extended regular expression. */
int target_check_pattern(const char *pattern, struct err *e);

/*
 * The process whose full command line matches an extended regular expression, as pgrep -f
 * does. -ESRCH: none; -EEXIST: several, listed in the sentence. We ourselves never match, nor does
 * a shell that runs us.
 */
int target_find(const char *pattern, pid_t *ret_pid, struct err *e);

/* The longest command line that is compared; what is longer is cut. */
#define TARGET_CMDLINE_MAX 4096

/* Its full command line, a blank between arguments. False: it has none (a zombie), or is gone. */
bool target_cmdline(pid_t pid, char *buf, size_t cap);

/*
 * Of the processes that target_find() could mean, without those that `skip` says, the one that
 * started first. -ESRCH; -EINVAL: no regular expression.
 */
int target_find_oldest(const char *pattern, bool (*skip)(void *ctx, pid_t pid), void *ctx,
		       pid_t *ret_pid);

/* The process a thread belongs to. -ESRCH. */
int target_of_thread(pid_t tid, pid_t *ret_pid, struct err *e);

/* 0 when `pid` can be profiled. -ESRCH: there is none; -EINVAL: a kernel thread, or ourselves. */
int target_check(pid_t pid, struct err *e);

/* Any name, made fit for a file name. */
void target_file_word(const char *name, char *out, uint32_t cap);
/* Its command name; "pid" when it cannot be read. */
void target_comm(pid_t pid, char *out, uint32_t cap);
/* The same, made fit for a file name. */
void target_file_name(pid_t pid, char *out, uint32_t cap);

/* As many descriptors as the hard limit allows: each process, probe and event takes one, and the usual soft
 * limit of 1,024 is soon used up. */
void target_raise_files(void);

#endif
