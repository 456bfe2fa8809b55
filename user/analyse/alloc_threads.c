#include "analyse/alloc_threads.h"

#include <errno.h>
#include <stdlib.h>

static int by_thread(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
				: (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_bytes(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	return x->bytes != y->bytes ? (y->bytes > x->bytes) - (y->bytes < x->bytes)
				    : by_thread(a, b);
}

static struct thread_row row_of(const struct profile *p, uint32_t i)
{
	struct profile_sample s = profile_sample(p, i);
	struct dict *d = profile_dict(p);
	const struct label *pid = dict_label_find(d, s.labels, "pid");
	const struct label *tid = dict_label_find(d, s.labels, "tid");
	const struct label *name = dict_label_find(d, s.labels, "thread");

	if (!name)
		name = dict_label_find(d, s.labels, "comm");
	return (struct thread_row){
		.pid = pid ? (pid_t)pid->num : 0,
		.tid = tid ? (pid_t)tid->num : 0,
		.name = name ? dict_str(d, name->str) : "",
		.objects = s.values[0],
		.bytes = s.values[1],
	};
}

int alloc_threads(const struct profile *alloc, struct thread_row *out, uint32_t cap,
		  uint32_t *ret_seen)
{
	uint32_t samples = profile_n_samples(alloc), n = 0;
	_cleanup_(freep) struct thread_row *rows = calloc(samples ? samples : 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < samples; i++)
		rows[i] = row_of(alloc, i);
	qsort(rows, samples, sizeof(*rows), by_thread);
	for (uint32_t i = 0; i < samples; i++) {
		if (n > 0 && by_thread(&rows[n - 1], &rows[i]) == 0) {
			rows[n - 1].objects += rows[i].objects;
			rows[n - 1].bytes += rows[i].bytes;
		} else {
			rows[n++] = rows[i];
		}
	}
	qsort(rows, n, sizeof(*rows), by_bytes);
	*ret_seen = n;
	for (uint32_t i = 0; i < n && i < cap; i++)
		out[i] = rows[i];
	return (int)(n < cap ? n : cap);
}
