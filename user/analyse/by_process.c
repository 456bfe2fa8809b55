#include "analyse/by_process.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct process_row row;
	UT_hash_handle hh;
};

static struct entry *entry_of(struct entry **table, pid_t pid)
{
	struct entry *e = hash_get(*table, row.pid, &pid);

	if (e && !e->row.comm)
		e->row.comm = e->row.container = "";
	return e;
}

/* A value type, and the field that it is added to. */
struct column {
	const char *name;
	size_t field;
};

static int take(struct entry **table, const struct profile *p, const struct column columns[2])
{
	const struct dict *d = p ? profile_dict(p) : NULL;

	for (uint32_t i = 0; p && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		const struct label *pid = dict_label_find(d, s.labels, "pid");
		const struct label *comm = dict_label_find(d, s.labels, "comm");
		const struct label *container = dict_label_find(d, s.labels, "container");
		const struct label *ns_pid = dict_label_find(d, s.labels, "ns_pid");
		struct entry *entry;

		if (!pid)
			continue;
		entry = entry_of(table, (pid_t)pid->num);
		if (!entry)
			return -ENOMEM;
		if (comm)
			entry->row.comm = dict_str(d, comm->str);
		if (container)
			entry->row.container = dict_str(d, container->str);
		if (ns_pid)
			entry->row.ns_pid = (pid_t)ns_pid->num;
		for (int j = 0; j < 2; j++) {
			int64_t *field = (int64_t *)((char *)&entry->row + columns[j].field);
			int type = profile_find_type(p, columns[j].name);

			if (type >= 0)
				*field = add_saturating(*field, s.values[type]);
		}
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct process_row *x = a, *y = b;
	int r = (y->cpu_ns > x->cpu_ns) - (y->cpu_ns < x->cpu_ns);

	if (r == 0)
		r = (y->runnable_ns > x->runnable_ns) - (y->runnable_ns < x->runnable_ns);
	if (r == 0)
		r = (y->blocked_ns > x->blocked_ns) - (y->blocked_ns < x->blocked_ns);
	return r ? r : (x->pid > y->pid) - (x->pid < y->pid);
}

/* All processes of both profiles, in no order. */
static int collect(const struct profile *oncpu, const struct profile *offcpu,
		   const struct process_names *names, struct process_row **ret_all, uint32_t *ret_n)
{
	static const struct column on[2] = {
		{ "samples", offsetof(struct process_row, samples) },
		{ "cpu", offsetof(struct process_row, cpu_ns) },
	};
	static const struct column off[2] = {
		{ "blocked/nanoseconds", offsetof(struct process_row, blocked_ns) },
		{ "runnable/nanoseconds", offsetof(struct process_row, runnable_ns) },
	};
	struct process_row *all = NULL;
	struct entry *table = NULL, *entry, *next;
	uint32_t n = 0;
	int r;

	r = take(&table, oncpu, on);
	if (r == 0)
		r = take(&table, offcpu, off);
	if (r == 0) {
		all = calloc(HASH_COUNT(table) + 1, sizeof(*all));
		r = all ? 0 : -ENOMEM;
	}
	HASH_ITER (hh, table, entry, next) {
		const char *name = names ? names->name_of(names->ctx, entry->row.pid) : NULL;

		if (name && *name)
			entry->row.comm = name;
		if (r == 0)
			all[n++] = entry->row;
		HASH_DEL(table, entry);
		free(entry);
	}
	if (r < 0)
		return r;
	*ret_all = all;
	*ret_n = n;
	return 0;
}

int by_process(const struct profile *oncpu, const struct profile *offcpu,
	       const struct process_names *names, struct process_row *out, uint32_t cap,
	       uint32_t *ret_seen)
{
	_cleanup_(freep) struct process_row *all = NULL;
	uint32_t n;
	int r = collect(oncpu, offcpu, names, &all, &n);

	if (r < 0)
		return r;
	qsort(all, n, sizeof(*all), by_time);
	memcpy(out, all, (n < cap ? n : cap) * sizeof(*all));
	*ret_seen = n;
	return (int)(n < cap ? n : cap);
}

static int by_comm(const void *a, const void *b)
{
	const struct process_row *x = a, *y = b;

	return strcmp(x->comm, y->comm);
}

static int by_command_time(const void *a, const void *b)
{
	const struct command_row *x = a, *y = b;
	int r = (y->cpu_ns > x->cpu_ns) - (y->cpu_ns < x->cpu_ns);

	return r ? r : strcmp(x->comm, y->comm);
}

int by_command(const struct profile *oncpu, const struct process_names *names,
	       struct command_row *out, uint32_t cap)
{
	_cleanup_(freep) struct process_row *all = NULL;
	_cleanup_(freep) struct command_row *rows = NULL;
	uint32_t n, n_rows = 0;
	int r = collect(oncpu, NULL, names, &all, &n);

	if (r < 0)
		return r;
	rows = calloc(n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	qsort(all, n, sizeof(*all), by_comm);
	for (uint32_t i = 0; i < n; i++) {
		if (n_rows == 0 || strcmp(rows[n_rows - 1].comm, all[i].comm) != 0)
			rows[n_rows++].comm = all[i].comm;
		rows[n_rows - 1].cpu_ns = add_saturating(rows[n_rows - 1].cpu_ns, all[i].cpu_ns);
		rows[n_rows - 1].processes++;
	}
	qsort(rows, n_rows, sizeof(*rows), by_command_time);
	memcpy(out, rows, (n_rows < cap ? n_rows : cap) * sizeof(*rows));
	return (int)(n_rows < cap ? n_rows : cap);
}
