/* memscope heap snapshot: the heap as a file, of which the same questions can be asked elsewhere and later. */
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/core.h"
#include "heap/snapshot/file.h"
#include "heap/snapshot/room.h"

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

int heap_snapshot_before_stop(const struct heap_view *v, struct err *e)
{
	struct room_plan plan = { v->args->output, v->args->folder, v->args->core };

	if (!plan.path) /* the current folder */
		plan.path = plan.core ? "core" : "heap.snapshot";
	return room_check(v->pid, &plan, e);
}

static int put_core(const struct heap_view *v, struct err *e)
{
	_cleanup_(new_file_close) struct new_file f = { .fd = -1 };
	struct copy_facts facts = copy_facts(v->copy);
	char name[32];
	uint64_t bytes;
	int r;

	snprintf(name, sizeof(name), "core.%d", (int)v->pid);
	r = new_file_open(v->args->output ? v->args->output : name, &f, e);
	if (r == 0)
		r = core_write(v->copy, v->pid, &f, &bytes, e);
	if (r == 0)
		r = new_file_commit(&f, e);
	if (r < 0)
		return r;
	answer_say(v->out, "%s: a core of process %d, %s of memory; stopped for %s", f.path,
		   (int)v->pid, unit_bytes((int64_t)facts.bytes).s,
		   unit_ns((int64_t)facts.pause_ns).s);
	answer_word(v->out, "file", f.path);
	answer_figure(v->out, "file_bytes", bytes);
	answer_figure(v->out, "pause_ns", facts.pause_ns);
	return 0;
}

int heap_snapshot(const struct heap_view *v, const char *what, struct err *e)
{
	_cleanup_(snapshot_writer_freep) struct snapshot_writer *w = NULL;
	struct snapshot_write how = { (enum file_contents)v->args->contents, root_name, (void *)v };
	char name[128];
	const char *path = v->args->output;
	uint64_t bytes;
	int r;

	(void)what;
	if (v->args->core)
		return put_core(v, e);
	if (v->s->stored)
		return err_set(e, -EINVAL,
			       "a snapshot is of a process: memscope heap snapshot -p PID");
	if (!path)
		path = default_name(&v->s->facts, name);
	r = snapshot_writer_new(path, &w, e);
	if (r == 0)
		r = snapshot_writer_put(w, v->s, &how, &bytes, e);
	if (r < 0)
		return r;
	answer_say(v->out, "%s: %s", path, unit_bytes((int64_t)bytes).s);
	answer_say(v->out, "what has changed since, later on: memscope heap diff %s -p %d", path,
		   (int)v->pid);
	answer_word(v->out, "file", path);
	answer_figure(v->out, "file_bytes", bytes);
	return 0;
}
