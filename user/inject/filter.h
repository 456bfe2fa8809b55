/*
 * What a thread's seccomp filters would do to the system calls that the injection makes in it: known before
 * any of them is made.
 *
 * A filter is a program of classic BPF that the kernel hands out (PTRACE_SECCOMP_GET_FILTER: a kernel with
 * CONFIG_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, and no filter on memscope itself). It is run here on the same
 * struct seccomp_data that the kernel would give it. Of several filters the most severe answer counts, as in
 * the kernel (seccomp(2)).
 *
 * The calls are those of glibc 2.34 and later on x86-64: of the borrowed thread, and of the one that it
 * starts, which inherits the filters; and those that the library makes in the program's other threads, where it
 * records every call. Filters that come later are watched for (collect/stream/inprocess.h).
 */
#ifndef MEMSCOPE_INJECT_FILTER_H
#define MEMSCOPE_INJECT_FILTER_H

#include "base/cleanup.h"
#include "base/err.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * One program on one call. `known`: bit n says that byte n of `data` is what it will be. 0 and the action with
 * its data (SECCOMP_RET_*); -EDOM: the program looks at a byte that is not known; -EBADMSG: the kernel
 * would not have taken that program.
 */
int filter_run(const struct sock_filter *insns, uint32_t n, const struct seccomp_data *data,
	       uint64_t known, uint32_t *ret_action);

/* --- those of a thread --- */

struct filters {
	struct filter_program {
		struct sock_filter *insns;
		uint32_t n;
	} * programs;
	uint32_t n;
};

/* Of a thread that is stopped under our ptrace. None is fine. -errno with a sentence. */
int filters_read(pid_t tid, struct filters *ret_filters, struct err *e);
void filters_fini(struct filters *f);

/* The most severe answer. `known` as above. 0, -EDOM, -EBADMSG. */
int filters_run(const struct filters *f, const struct seccomp_data *data, uint64_t known,
		uint32_t *ret_action);

/* `memfd`: the library comes by a memfd. 0; -EPERM and a sentence that names the call that is denied. */
int filters_check(const struct filters *f, pid_t pid, bool exact, bool memfd, struct err *e);

/* A tracer may have a system call left out: the kernel then asks the filters about number -1. */
bool filters_allow_skipping(const struct filters *f);

/* The numbers that filters_check() asks about, for tests. Returns how many there are. */
uint32_t filter_calls(bool exact, bool memfd, uint32_t *ret_numbers, uint32_t cap);

#endif
