/* What the questions of memscope heap are asked of: a process, the process of a container, or a file. */
#include "base/clock.h"
#include "base/large.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/anchor.h"
#include "heap/snapshot/chain.h"
#include "heap/snapshot/exact.h"
#include "heap/snapshot/file.h"
#include "heap/snapshot/stop.h"
#include "model/dict.h"
#include "proc/variable.h"
#include "run/about.h"
#include "run/group.h"
#include "screen/runtimes.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS_MAX = 4096, MEMBERS_SHOWN = 5 };

/* --- the process of a container --- */

/* Resident pages that are its own, as far as the kernel counts them for free. */
static uint64_t own_pages(pid_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	unsigned long long size, resident = 0, shared = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return 0;
	return resident > shared ? resident - shared : 0;
}

static void say_others(struct heap_view *v, const char *container, const pid_t *pids, uint32_t n)
{
	_cleanup_(strbuf_free) struct strbuf others = { 0 };
	uint32_t shown = 0;

	for (uint32_t i = 0; i < n && shown < MEMBERS_SHOWN; i++)
		if (pids[i] != v->pid)
			strbuf_printf(&others, "%s%d", shown++ ? ", " : "", (int)pids[i]);
	if (n > 1 && !strbuf_oom(&others))
		answer_say(
			v->out,
			"of the %u processes of container %s the one with most memory; -p takes another one: %s%s",
			n, container, others.s, shown < n - 1 ? ", …" : "");
}

/*
 * Containers mostly have one process that matters, beside a shell or an init that started it: the one with most memory is
 * meant, and the others are said.
 */
static int find_member(struct heap_view *v, const char *container, struct err *e)
{
	struct cgroup_mounts mounts = { 0 };
	struct group group[GROUPS_MAX] = { 0 };
	_cleanup_(freep) pid_t *pids = calloc(MEMBERS_MAX, sizeof(*pids));
	uint64_t most = 0;
	uint32_t n = 0;
	int r = pids ? cgroup_mounts_read(&mounts, e) : err_set(e, -ENOMEM, "out of memory");

	if (r >= 0)
		r = groups_of_containers(&mounts, container, group, e);
	if (r > 1)
		r = err_set(e, -EINVAL, "-c %s: one container at a time", container);
	if (r == 1)
		n = groups_processes(&mounts, group, 1, pids, MEMBERS_MAX);
	if (r == 1 && !n)
		r = err_set(e, -ESRCH, "container %s has no process", container);
	if (n > MEMBERS_MAX)
		n = MEMBERS_MAX;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t pages = own_pages(pids[i]);

		if (!v->pid || pages > most) {
			v->pid = pids[i];
			most = pages;
		}
	}
	if (n)
		say_others(v, container, pids, n);
	groups_free(group, GROUPS_MAX);
	cgroup_mounts_fini(&mounts);
	return r < 0 ? r : 0;
}

/* --- the snapshot --- */

static int put_labels(struct heap_view *v, struct err *e)
{
	const struct opt_list *labels = &v->args->labels;
	struct snapshot_facts *f = &v->s->facts;

	for (uint32_t i = 0; i < labels->n; i++) {
		const char *value = strchr(labels->items[i], '=') + 1;
		char *key = strndup(labels->items[i], (size_t)(value - labels->items[i]) - 1);

		if (!key)
			return err_set(e, -ENOMEM, "out of memory");
		v->keys[f->n_labels] = key;
		f->labels[f->n_labels++] = (struct snapshot_label){ key, value };
	}
	return 0;
}

/* In a user's terms: what a file of /proc has said. */
static int cannot_look(const struct heap_view *v, int r, struct err *e)
{
	if ((r == -EACCES || r == -EPERM) && stop_is_barred())
		return err_set(e, r, "process %d cannot be read: " STOP_BARRED, (int)v->pid);
	if ((r == -EACCES || r == -EPERM) && geteuid() != 0)
		return err_set(
			e, r,
			"explaining a heap needs root, to stop another process and read its memory: run it with sudo");
	/* Of a twin and of tracing the sentence has the reason. */
	if ((r == -EACCES || r == -EPERM) && !v->args->twin && v->args->trace_s <= 0)
		return err_set(
			e, r,
			"process %d cannot be read: it has capabilities that memscope lacks here, or a security module forbids it",
			(int)v->pid);
	if (r == -ESRCH && kill(v->pid, 0) == 0)
		return err_set(
			e, r,
			"process %d has no memory of its own: it is a kernel thread, or has ended",
			(int)v->pid);
	return r;
}

static int take(struct heap_view *v, struct err *e)
{
	const struct heap_args *a = v->args;
	struct snapshot_how how = { .folder = a->folder, .twin = a->twin };
	int r = 0;

	v->pid = (pid_t)a->pid;
	if (a->container)
		r = find_member(v, a->container, e);
	if (r == 0)
		r = proc_table_scan(v->procs, v->pid, 0, now_ns(), e);
	if (r == 0 && v->before_stop)
		r = v->before_stop(v, e);
	if (r == 0)
		r = a->core          ? copy_take(v->pid, a->folder, a->twin, &v->copy, e)
		    : a->trace_s > 0 ? heap_trace_take(v, &how, e)
				     : snapshot_take(v->pid, &how, &v->s, e);
	if (r < 0 || a->core)
		return cannot_look(v, r, e);
	if (a->container)
		snprintf(v->s->facts.container, sizeof(v->s->facts.container), "%s", a->container);
	return put_labels(v, e);
}

static bool has(const char *folder, const char *name)
{
	char path[4096];

	return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* The directory of a recording knows which blocks are alive by who allocated them, and nothing of what refers to them. */
static int open_file(struct heap_view *v, const char *path, struct snapshot **ret, struct err *e)
{
	if (!has(path, "summary.json"))
		return snapshot_file_open(path, v->args->folder, ret, e);
	if (!has(path, "heap.pb.gz"))
		return err_set(
			e, -EISDIR,
			"%s is a recording without allocations, not a heap snapshot; use memscope heap census -p PID --trace 30 --by site, "
			"or make a file with memscope heap snapshot",
			path);
	return err_set(
		e, -EISDIR,
		"%s is a recording, which has live bytes by allocation site (memscope report %s/heap.pb.gz) but no references; use "
		"-p PID --trace 30, or a file made with memscope heap snapshot -p PID --trace 30",
		path, path);
}

static int open_before(struct heap_view *v, char *const *files, uint32_t n, struct err *e)
{
	for (uint32_t i = 0; i < n; i++) {
		int r = open_file(v, files[i], &v->before[i], e);

		if (r < 0)
			return r;
		v->n_before++;
	}
	return 0;
}

static bool name_of(void *ctx, const struct snapshot_root *root, char *name, size_t cap)
{
	return heap_root_name(ctx, root, name, cap);
}

static int set_anchors(struct heap_view *v, struct err *e)
{
	int r = 0;

	for (uint32_t i = 0; i < v->args->anchors.n && r == 0; i++)
		r = snapshot_anchor(v->s, v->args->anchors.items[i], name_of, v, e);
	return r;
}

/* --- notes printed with each answer --- */

static void note_caveat(void *ctx, const char *sentence)
{
	snapshot_say(ctx, sentence);
}

/* Other runtimes keep their objects in their own heap: without a note, the rest would look like the whole. */
static void note_runtime(struct heap_view *v)
{
	static const char *const explained[] = { "-", "native", "CPython", "GHC", "Perl" };
	struct runtimes *all = runtimes_new();
	const char *runtime = all ? runtimes_look(all, v->pid).runtime : "-";
	bool is_explained = !runtime;
	char text[300];

	for (size_t i = 0; runtime && i < sizeof(explained) / sizeof(*explained); i++)
		is_explained |= strcmp(runtime, explained[i]) == 0;
	if (!is_explained) {
		snprintf(
			text, sizeof(text),
			"%.60s keeps its objects in its own heap, which is not read: only native memory is shown, and blocks that only such "
			"objects refer to appear as lost",
			runtime);
		snapshot_say(v->s, text);
	}
	runtimes_free(all);
}

/* The losses that each answer must name, whether it is of a file or of the process. */
static void note_losses(struct heap_view *v)
{
	struct copy_facts f = copy_facts(v->s->copy);
	char text[300];

	for (uint32_t i = 0; i < v->s->census.n; i++) {
		const struct heap_use *u = &v->s->census.use[i];

		if (!u->unknown.bytes)
			continue;
		snprintf(text, sizeof(text), "of %s, %s could not be walked and are left out",
			 u->allocator, unit_bytes((int64_t)u->unknown.bytes).s);
		snapshot_say(v->s, text);
	}
	if (f.twin_stays)
		snapshot_say(
			v->s,
			"the process could not be made to reap its twin, which stays a zombie until the process ends");
	exact_caveats(v->s->exact, note_caveat, v->s);
	if (v->s->debug_unread) {
		snprintf(
			text, sizeof(text),
			"the debug info of %u images was not read completely: some blocks have no type",
			v->s->debug_unread);
		snapshot_say(v->s, text);
	}
	if (f.n_missed) {
		snprintf(
			text, sizeof(text),
			"%u threads did not stop: blocks that only their registers refer to appear as lost",
			f.n_missed);
		snapshot_say(v->s, text);
	}
	note_runtime(v);
}

int heap_view_open(struct heap_view *v, const struct heap_args *a, const char *file,
		   char *const *before, uint32_t n, struct err *e)
{
	int r;

	v->args = a;
	v->out = answer_begin(a->json ? ANSWER_JSON : ANSWER_TEXT);
	v->dict = dict_new();
	v->procs = v->dict ? proc_table_new(v->dict) : NULL;
	v->variables = v->procs ? variable_names_new(v->procs) : NULL;
	if (!v->out || !v->variables)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < a->labels.n; i++)
		if (about_check_label(a->labels.items[i], e) < 0)
			return -EINVAL;
	large_use(a->folder, LARGE_LEAST);
	r = open_before(v, before, n, e);
	if (r < 0)
		return r;
	r = file ? open_file(v, file, &v->s, e) : take(v, e);
	if (r < 0 || !v->s)
		return r;
	v->pid = v->s->facts.pid;
	if (!file)
		note_losses(v);
	return set_anchors(v, e);
}

void heap_view_fini(struct heap_view *v)
{
	answer_free(v->out);
	snapshot_free(v->s);
	for (uint32_t i = 0; i < v->n_before; i++)
		snapshot_free(v->before[i]);
	copy_close(v->copy);
	variable_names_free(v->variables);
	proc_table_free(v->procs);
	dict_free(v->dict);
	for (uint32_t i = 0; i < SNAPSHOT_LABELS_MAX; i++)
		free(v->keys[i]);
}

bool heap_root_name(const struct heap_view *v, const struct snapshot_root *root, char *name,
		    size_t cap)
{
	struct proc *proc;

	if (root->name)
		return snprintf(name, cap, "%s", root->name) > 0;
	if (v->s->stored)
		return false;
	if (root->kind == SNAPSHOT_ROOT_MODULE)
		return chain_module_name(v->s, root->at, name, cap);
	proc = proc_table_first(v->procs, v->pid);
	return root->kind == SNAPSHOT_ROOT_GLOBAL &&
	       variable_name(v->variables, proc, root->at, name, cap);
}

/* --- what is said of it first --- */

/* When a file was written, where, and what it was called. */
static void put_origin(const struct heap_view *v)
{
	static const char *const contents[] = { "none", "words", "all" };
	const struct snapshot_facts *f = &v->s->facts;
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	time_t at = (time_t)(f->taken_ns / 1000000000);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&at, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	strbuf_printf(&text, "snapshot of %s UTC, %s", when, f->kernel);
	if (f->container[0])
		strbuf_printf(&text, ", container %s", f->container);
	for (uint32_t i = 0; i < f->n_labels; i++)
		strbuf_printf(&text, "; %s=%s", f->labels[i].key, f->labels[i].value);
	answer_say(v->out, "%s", text.s ? text.s : "");
	answer_word(v->out, "taken", when);
	answer_word(v->out, "kernel", f->kernel);
	answer_word(v->out, "contents", contents[f->contents]);
	strbuf_reset(&text);
	for (uint32_t i = 0; i < f->n_labels; i++)
		strbuf_printf(&text, "%s%s=%s", i ? ", " : "", f->labels[i].key,
			      f->labels[i].value);
	answer_word(v->out, "labels", text.s ? text.s : "");
}

/* Blocks that were made while that was traced, and whose stack never came. */
static uint64_t without_stack(const struct snapshot *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->blocks.n; i++)
		n += !s->sites->stack_of[i] && s->sites->age_ms[i] != SITES_OLDER;
	return n;
}

/* Of how much of it is known who allocated it. */
static void put_sites(const struct heap_view *v)
{
	const struct sites *sites = v->s->sites;
	uint64_t stackless;

	if (!sites)
		return;
	stackless = without_stack(v->s);
	answer_say(
		v->out,
		"every allocation was traced for %s: %s of these blocks, %s, were made in it; the others are older",
		unit_ns((int64_t)sites->traced_ns).s, unit_count((int64_t)sites->known).s,
		unit_bytes((int64_t)sites->known_bytes).s);
	if (stackless)
		answer_say(v->out, "of %s more the stack was lost",
			   unit_count((int64_t)stackless).s);
	if (sites->lost)
		answer_say(
			v->out,
			"of the others up to %s are not older, but were missed: there was no room for them",
			unit_count((int64_t)sites->lost).s);
	answer_figure(v->out, "traced_ns", sites->traced_ns);
	answer_figure(v->out, "traced_blocks", sites->known);
	answer_figure(v->out, "traced_bytes", sites->known_bytes);
	answer_figure(v->out, "missed_calls", sites->lost);
}

void heap_put_header(const struct heap_view *v)
{
	struct copy_facts f = copy_facts(v->s->copy);
	const char *name = v->s->facts.comm[0] ? v->s->facts.comm : "process";
	uint64_t bytes = 8 * v->s->blocks.all.words;

	if (v->s->stored)
		put_origin(v);
	answer_say(v->out,
		   "%s (%d): %s blocks in use, %s, with %s references between them; stopped for %s",
		   name, (int)v->pid, unit_count((int64_t)v->s->blocks.n).s,
		   unit_bytes((int64_t)bytes).s, unit_count((int64_t)graph_edges(v->s->graph)).s,
		   unit_ns((int64_t)f.pause_ns).s);
	answer_word(v->out, "process", name);
	answer_figure(v->out, "pid", (uint64_t)v->pid);
	answer_figure(v->out, "heap_blocks", v->s->blocks.n);
	answer_figure(v->out, "heap_bytes", bytes);
	answer_figure(v->out, "heap_references", graph_edges(v->s->graph));
	answer_figure(v->out, "pause_ns", f.pause_ns);
	if (!v->s->stored) {
		answer_figure(v->out, "stop_ns", f.stop_ns);
		answer_figure(v->out, "twin_ns", f.twin_ns);
		answer_figure(v->out, "copy_ns", f.copy_ns);
		answer_figure(v->out, "release_ns", f.release_ns);
		answer_figure(v->out, "copied_bytes", f.bytes);
		answer_figure(v->out, "copied_again", v->s->n_changing);
	}
	put_sites(v);
	for (uint32_t i = 0; i < v->s->n_said; i++)
		answer_say(v->out, "%s", v->s->said[i]);
	answer_say(v->out, "%s", "");
}
