/* memscope heap snapshot: the heap as a file, of which the same questions can be asked elsewhere and later. */
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/file.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static bool root_name(void *ctx, const struct snapshot_root *root, char *name, size_t cap)
{
	return heap_root_name(ctx, root, name, cap);
}

/* Of a process that has no name yet: heap-COMM-PID-DATE-TIME.snapshot, as UTC. */
static const char *default_name(const struct snapshot_facts *f, char name[128])
{
	time_t at = (time_t)(f->taken_ns / 1000000000);
	char when[32] = "", comm[32];
	struct tm tm;

	snprintf(comm, sizeof(comm), "%.31s", f->comm);
	for (char *c = comm; *c; c++)
		if (*c == '/' || (uint8_t)*c <= ' ' || (uint8_t)*c > '~')
			*c = '_';
	if (gmtime_r(&at, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(name, 128, "heap-%s-%d-%s.snapshot", comm, (int)f->pid, when);
	return name;
}

int heap_snapshot_check(const struct heap_args *a, struct err *e)
{
	_cleanup_(snapshot_writer_freep) struct snapshot_writer *w = NULL;

	return snapshot_writer_new(a->output ? a->output : "heap.snapshot", &w, e);
}

int heap_snapshot(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(snapshot_writer_freep) struct snapshot_writer *w = NULL;
	struct snapshot_write how = { (enum file_contents)v->args->contents, root_name, (void *)v };
	char name[128];
	const char *path = v->args->output ? v->args->output : default_name(&v->s->facts, name);
	uint64_t bytes;
	int r;

	(void)what;
	if (v->s->stored)
		return err_set(e, -EINVAL,
			       "a snapshot is of a process: memscope heap snapshot -p PID");
	r = snapshot_writer_new(path, &w, e);
	if (r == 0)
		r = snapshot_writer_put(w, v->s, &how, &bytes, e);
	if (r < 0)
		return r;
	answer_say(v->out, "%s: %s", path, unit_bytes((int64_t)bytes).s);
	answer_word(v->out, "file", path);
	answer_figure(v->out, "file_bytes", bytes);
	return 0;
}
