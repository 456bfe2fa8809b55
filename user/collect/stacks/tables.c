/*
 * Keeps the unwind tables of the processes that are watched where the kernel's walker finds them.
 *
 *   -p, -- CMD   tables are there before the first sample, and follow every mapping
 *   -a           a process gets its spans when a stack of it could not be walked (tables_space),
 *                and from then on so do its children; of a service (env.lazy) those that are still what
 *                they were forked as when the records have been read: a compiler's are gone by then
 *
 * A table is made once for each file, by the builder's threads; a list of spans names it before it
 * is there. What the kernel's records change in a process is put right once they have all been read
 * (flush_due).
 */
#include "base/grow.h"
#include "collect/session/unwind_maps.h"
#include "collect/stacks/stacks_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>

#define BEGIN_NS  10000000000ULL /* how long a run waits for its first tables              */
#define SETTLE_NS 2000000000ULL  /* and a command that is held, for those of its libraries */
#define AGAIN_NS  50000000ULL    /* between two tries to find room for spans               */
#define LATER_NS  3000000ULL     /* under -a: changes of a process are gathered so long    */

#define POOL_MIN     (4 << 20)
#define POOL_COMMAND (8 << 20) /* nobody knows yet what it will map */

/* Blocks of this size go back to the system as soon as they are free. Making tables takes 10 to 60 MiB
 * that is not needed again; left to itself glibc begins to keep larger and larger ones. */
#define GIVE_BACK_BYTES (1 << 20)

/* Between two trims: twice as long after each. On a busy host some table is always made, and pages that are released are soon
 * faulted in again. */
#define TRIM_FIRST_NS 1000000000ULL
#define TRIM_MOST_NS  16000000000ULL

#define N_ASKED 256

struct asked {
	struct proc_id id;
	uint64_t ns;
	int answer;
};

struct unwind {
	struct unwind_maps *maps;
	struct publish *publish;
	struct builder *builder;
	struct row_cache *cache;
	struct unwind_files files;
	pid_t *changed; /* processes whose spans are to be put again */
	uint32_t n_changed, cap_changed;
	uint64_t flush_ns; /* when                                      */
	uint64_t read_ns;  /* records of before that have been read     */
	struct proc_mapping *maps_buf;
	struct ms_span *spans_buf;
	uint32_t cap_buf;
	struct asked asked[N_ASKED];
	struct proc_id before_exec; /* the command while it is still memscope    */
	uint64_t trimmed;           /* tables made when memory was last released */
	uint64_t trim_ns;           /* from when on it may be again, …             */
	uint64_t trim_pause_ns;     /* … and how long that is put off              */
	uint64_t put, put_ns;       /* lists of spans, and what that took        */
	uint64_t not_put;           /* children and images that were gone before  */
};

/* --- opening --- */

struct size {
	module_id module;
	uint64_t bytes;
};

static int larger_first(const void *pa, const void *pb)
{
	const struct size *a = pa, *b = pb;

	return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/*
 * The files of a process: what their tables will take, and the making of them begun, the largest
 * first, while the main thread has other things to do.
 */
static uint64_t begin_process(struct user_stacks *st, pid_t pid)
{
	struct proc_image images[1024];
	struct size sizes[1024];
	struct proc *p;
	uint64_t sum = 0;
	uint32_t n;

	if (proc_table_scan(st->env.procs, pid, 0, now_ns(), NULL) < 0 ||
	    !(p = proc_table_live(st->env.procs, pid)))
		return 0;
	n = proc_images(st->env.procs, p, images, 1024);
	if (n > 1024)
		n = 1024;
	for (uint32_t i = 0; i < n; i++) {
		_cleanup_(closep) int fd =
			proc_table_open_module(st->env.procs, images[i].module, NULL);

		sizes[i] = (struct size){ images[i].module, fd < 0 ? 0 : unwind_file_estimate(fd) };
		sum += sizes[i].bytes;
	}
	qsort(sizes, n, sizeof(*sizes), larger_first);
	for (uint32_t i = 0; i < n && sizes[i].bytes; i++)
		unwind_files_begin(&st->unwind->files, sizes[i].module);
	return sum;
}

static uint64_t pool_bytes(struct user_stacks *st)
{
	const struct user_stacks_env *env = &st->env;
	uint64_t share = session_unwind_share(env->mem_mb, env->alloc), sum = 0;

	if (env->all)
		return share;
	for (uint32_t i = 0; i < env->n_pids; i++)
		sum += begin_process(st, env->pids[i]);
	/* As much again as a quarter, for what it maps later and for spans. */
	sum = env->command ? POOL_COMMAND : sum + sum / 4 + POOL_MIN / 2;
	if (sum < POOL_MIN)
		sum = POOL_MIN;
	return sum < share ? sum : share;
}

int user_stacks_prepare(struct user_stacks *st, uint64_t *ret_bytes, struct err *e)
{
	struct unwind *u;
	int rc;

	*ret_bytes = 0;
	if (!st->env.wanted)
		return 0;
	u = st->unwind = calloc(1, sizeof(*u));
	if (!u)
		return err_set(e, -ENOMEM, "out of memory");
	u->trim_pause_ns = TRIM_FIRST_NS;
	mallopt(M_MMAP_THRESHOLD, GIVE_BACK_BYTES);
	row_cache_open(NULL, ROW_CACHE_BYTES_MAX, &u->cache, NULL); /* or none */
	rc = builder_new(2, unwind_file_make, u->cache, &u->builder, e);
	if (rc < 0)
		return rc;
	u->files.dict = st->env.dict;
	u->files.procs = st->env.procs;
	u->files.builder = u->builder;
	*ret_bytes = pool_bytes(st);
	return 0;
}

static void take_tables(struct user_stacks *st);
static void flush_due(struct user_stacks *st);

static int on_tables(void *ctx, struct err *e)
{
	(void)e;
	take_tables(ctx);
	return 0;
}

static int on_due(void *ctx, struct err *e)
{
	(void)e;
	flush_due(ctx);
	return 0;
}

/* Changes of processes are gathered for a moment. */
static uint64_t flush_due_ns(void *ctx)
{
	const struct user_stacks *st = ctx;

	return st->unwind->n_changed ? st->unwind->flush_ns : LOOP_NEVER;
}

int tables_open(struct user_stacks *st, struct err *e)
{
	struct unwind *u = st->unwind;
	struct publish_mem mem;
	struct space_sink sink;
	int rc;

	if (!u)
		return 0;
	rc = unwind_maps_open(st->session, &u->maps, e);
	if (rc < 0)
		return rc;
	mem = unwind_maps_mem(u->maps);
	sink = unwind_maps_sink(u->maps);
	rc = publish_new(&mem, &sink, &u->publish, e);
	if (rc < 0)
		return rc;
	u->files.publish = u->publish;
	session_clock(st->session, now_ns());
	rc = loop_fd(st->env.loop, builder_fd(u->builder), on_tables, st);
	if (rc == 0)
		rc = loop_at(st->env.loop, flush_due_ns, on_due, st);
	return rc < 0 ? err_set(e, rc, "cannot wait for unwind tables: %s", strerror(-rc)) : 0;
}

void tables_close(struct user_stacks *st)
{
	struct unwind *u = st->unwind;

	if (!u)
		return;
	builder_free(u->builder);
	row_cache_close(u->cache);
	unwind_files_fini(&u->files);
	publish_free(u->publish);
	unwind_maps_close(u->maps);
	free(u->changed);
	free(u->maps_buf);
	free(u->spans_buf);
	free(u);
	st->unwind = NULL;
}

/* --- one process --- */

static int reserve(struct unwind *u, uint32_t n)
{
	struct proc_mapping *maps;
	struct ms_span *spans;

	if (n <= u->cap_buf)
		return 0;
	maps = reallocarray(u->maps_buf, n, sizeof(*maps));
	if (maps)
		u->maps_buf = maps;
	spans = maps ? reallocarray(u->spans_buf, n, sizeof(*spans)) : NULL;
	if (!spans)
		return -ENOMEM;
	u->spans_buf = spans;
	u->cap_buf = n;
	return 0;
}

struct paths {
	struct user_stacks *st;
	uint32_t n;
};

static const char *path_of(void *ctx, uint32_t i)
{
	const struct paths *p = ctx;
	struct dict *d = p->st->env.dict;

	if (i >= p->n)
		return NULL;
	return dict_str(d, dict_module_get(d, p->st->unwind->maps_buf[i].module)->path);
}

static const struct runtime_row *runtime_of(struct user_stacks *st, struct proc *p, uint32_t n)
{
	struct paths paths = { st, n };
	char path[64], cmdline[4096];
	_cleanup_(closep) int fd = -1;
	ssize_t len = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)proc_pid(p));
	if (!proc_exited(p) && !proc_replaced(p))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		len = read(fd, cmdline, sizeof(cmdline));
	return runtime_find(path_of, &paths, cmdline, len > 0 ? (size_t)len : 0);
}

/* Mappings → spans, in u->spans_buf. */
static int spans_of(struct user_stacks *st, struct proc *p, uint32_t *ret_n)
{
	const struct runtime_row *runtime = NULL;
	struct unwind *u = st->unwind;
	bool runtime_known = false;
	uint64_t now = now_ns();
	uint32_t n = proc_mappings(st->env.procs, p, u->maps_buf, u->cap_buf);

	if (n > u->cap_buf) {
		if (reserve(u, n) < 0)
			return -ENOMEM;
		n = proc_mappings(st->env.procs, p, u->maps_buf, u->cap_buf);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct proc_mapping *m = &u->maps_buf[i];
		struct ms_span *s = &u->spans_buf[i];
		enum code_kind code = CODE_ANON;
		uint32_t table = 0;
		int rc = unwind_files_table(&u->files, m->module, now, &code, &table);

		if (!runtime_known && (code == CODE_ANON || code == CODE_NOT_ELF)) {
			runtime = runtime_of(st, p, n);
			runtime_known = true;
		}
		*s = (struct ms_span){ .start = m->addr,
				       .end = m->end,
				       .bias = m->bias,
				       .table = table,
				       .kind = walker_choose(code, runtime)->span };
		if (rc < 0)
			s->kind = MS_SPAN_PENDING;
		else if (s->kind == MS_SPAN_TABLE && m->kind == MODULE_ELF && !m->readable)
			s->kind = MS_SPAN_GUESS;
	}
	*ret_n = n;
	return 0;
}

static int put_process(struct user_stacks *st, struct proc *p, const struct proc_id *id)
{
	struct unwind *u = st->unwind;
	struct ms_proc proc = wire_proc(id);
	uint64_t began = now_ns();
	uint32_t n;
	int rc;

	rc = spans_of(st, p, &n);
	if (rc < 0)
		return rc;
	if (!proc_exited(p) && !proc_replaced(p))
		langs_mapped(st, id, u->maps_buf, n);
	rc = publish_space_put(u->publish, &proc, proc_generation(p), u->spans_buf, n,
			       proc_exited(p) || proc_replaced(p), now_ns());
	u->put++;
	u->put_ns += now_ns() - began;
	return rc;
}

/* How the kernel names the newest image of a process: known, or in what the kernel has of it. */
static bool id_of(struct user_stacks *st, struct proc *p, struct proc_id *ret_id)
{
	struct proc_id id = { .pid = (uint32_t)proc_pid(p) };
	struct ms_space space;

	if (proc_id_of(p, ret_id))
		return true;
	if (!session_name_of(st->session, proc_pid(p), &id.start_ns, &id.exec_id)) {
		if (!unwind_maps_space(st->unwind->maps, proc_pid(p), &space))
			return false;
		id.start_ns = space.start_ns;
		id.exec_id = space.exec_id;
	}
	/* The child as it was forked; it may have gone through an exec since. */
	return proc_table_find(st->env.procs, &id) && proc_id_of(p, ret_id);
}

/* --- changes --- */

static bool is_changed(const struct unwind *u, pid_t pid)
{
	for (uint32_t i = 0; i < u->n_changed; i++)
		if (u->changed[i] == pid)
			return true;
	return false;
}

/* Its spans are put when records have been read, those of one process once. */
static void put_later(struct user_stacks *st, pid_t pid)
{
	struct unwind *u = st->unwind;

	for (uint32_t i = u->n_changed; i-- > 0;)
		if (u->changed[i] == pid)
			return;
	if (!GROW(u->changed, u->n_changed, u->cap_changed))
		return; /* its stacks will ask for it */
	if (!u->n_changed)
		u->flush_ns = now_ns() + (st->env.all ? LATER_NS : 0);
	u->changed[u->n_changed++] = pid;
}

/* It has ended, or is another image, which asks by itself. */
static void put_no_more(struct unwind *u, pid_t pid)
{
	for (uint32_t i = u->n_changed; i-- > 0;) {
		if (u->changed[i] != pid)
			continue;
		u->changed[i] = u->changed[--u->n_changed];
		u->not_put++;
		return;
	}
}

void user_stacks_changed(struct user_stacks *st, pid_t pid)
{
	struct unwind *u = st->unwind;
	struct ms_space space;
	struct ms_proc proc;

	if (u && (st->env.all ? publish_space_of_pid(u->publish, (uint32_t)pid, &proc, &space)
			      : st->env.is_target(st->env.ctx, pid)))
		put_later(st, pid);
}

void user_stacks_replaced(struct user_stacks *st, pid_t pid)
{
	struct unwind *u = st->unwind;
	struct ms_space space;
	struct ms_proc proc;

	if (!u || !st->env.lazy) {
		user_stacks_changed(st, pid);
		return;
	}
	put_no_more(u, pid);
	if (publish_space_of_pid(u->publish, (uint32_t)pid, &proc, &space))
		publish_space_end(u->publish, (uint32_t)pid, now_ns());
}

void user_stacks_forked(struct user_stacks *st, pid_t pid, pid_t parent)
{
	struct unwind *u = st->unwind;
	struct ms_space space;
	struct ms_proc proc;
	struct proc_id id;
	struct proc *p;

	if (!u)
		return;
	if (!st->env.all) {
		user_stacks_changed(st, pid);
		return;
	}
	/* The kernel has given it its parent's entry: from now on that is ours to keep. */
	if (st->env.lazy) {
		if (publish_space_of_pid(u->publish, (uint32_t)parent, &proc, &space) ||
		    is_changed(u, parent))
			put_later(st, pid);
		return;
	}
	p = proc_table_live(st->env.procs, pid);
	if (p && unwind_maps_space(u->maps, pid, &space) && id_of(st, p, &id))
		put_process(st, p, &id);
}

void user_stacks_ended(struct user_stacks *st, pid_t pid)
{
	if (st->unwind) {
		if (st->env.lazy)
			put_no_more(st->unwind, pid);
		publish_space_end(st->unwind->publish, (uint32_t)pid, now_ns());
	}
	langs_ended(st, pid);
}

/*
 * It ended before what it had mapped last was put: stacks that it has sent, and that wait here, are of those mappings. Not where spans
 * are put when they are asked for (lazy).
 */
static struct proc *ended_with_stacks(const struct user_stacks *st, pid_t pid)
{
	return !st->env.lazy && deferred_of(st, pid) ? proc_table_last(st->env.procs, pid) : NULL;
}

static void flush(struct user_stacks *st)
{
	struct unwind *u = st->unwind;
	uint32_t n = u->n_changed;

	u->n_changed = 0;
	for (uint32_t i = 0; i < n; i++) {
		pid_t pid = u->changed[i];
		struct proc *p = proc_table_live(st->env.procs, pid);
		struct proc_id id;

		if (!p)
			p = ended_with_stacks(st, pid);
		if (!p || !id_of(st, p, &id)) { /* nobody can say whose entry it is */
			publish_space_end(u->publish, (uint32_t)pid, now_ns());
			continue;
		}
		if (put_process(st, p, &id) == -EAGAIN) {
			u->changed[u->n_changed++] = pid;
			u->flush_ns = now_ns() + AGAIN_NS;
		}
	}
}

static void flush_due(struct user_stacks *st)
{
	struct unwind *u = st->unwind;

	if (!u || (u->n_changed && now_ns() < u->flush_ns))
		return;
	flush(st);
	/* What there was no room for has no entry now: its stacks are walked here. */
	session_mappings_known(st->session, u->read_ns);
}

void user_stacks_read(struct user_stacks *st, uint64_t ns)
{
	if (!st->unwind)
		return;
	st->unwind->read_ns = ns;
	flush_due(st);
}

static void take_tables(struct user_stacks *st)
{
	if (st->unwind)
		unwind_files_collect(&st->unwind->files, now_ns());
}

/* The rest of what making tables took is kept by the threads' arenas. */
static void give_back_memory(struct unwind *u)
{
	uint64_t now = now_ns();

	if (u->trimmed == u->files.built)
		return;
	if (now < u->trim_ns)
		return;
	malloc_trim(0);
	u->trimmed = u->files.built;
	u->trim_ns = now + u->trim_pause_ns;
	if (u->trim_pause_ns < TRIM_MOST_NS)
		u->trim_pause_ns *= 2;
}

void user_stacks_tick(struct user_stacks *st)
{
	if (!st->unwind)
		return;
	give_back_memory(st->unwind);
	langs_tick(st);
	session_clock(st->session, now_ns());
	flush_due(st);
	publish_tick(st->unwind->publish, now_ns());
	take_tables(st);
}

/* --- asked for --- */

/* Puts what is known of an image now. */
static int put_anew(struct user_stacks *st, const struct proc_id *id)
{
	struct proc *p = proc_table_find(st->env.procs, id);

	if (!p && proc_table_scan(st->env.procs, (pid_t)id->pid, id->exec_id, now_ns(), NULL) == 0)
		p = proc_table_find(st->env.procs, id);
	return p ? put_process(st, p, id) : -ESRCH;
}

int tables_space(struct user_stacks *st, const struct proc_id *id, struct ms_space *ret_space)
{
	struct unwind *u = st->unwind;
	struct asked *asked;
	struct ms_space space;
	uint64_t now;

	if (!u || !memcmp(id, &u->before_exec, sizeof(*id)))
		return -ESRCH;
	take_tables(st);
	if (is_changed(u, (pid_t)id->pid) || !tables_known(st, id, &space)) {
		/* Many stacks of one image may wait: it is asked for once for all. */
		now = now_ns();
		asked = &u->asked[id->pid % N_ASKED];
		if (memcmp(&asked->id, id, sizeof(*id)) || now > asked->ns + AGAIN_NS ||
		    asked->answer == 0)
			*asked = (struct asked){ *id, now, put_anew(st, id) };
		if (asked->answer < 0)
			return asked->answer;
		if (!tables_known(st, id, &space))
			return -ESRCH;
	}
	*ret_space = space;
	return 0;
}

int tables_need(struct user_stacks *st, const struct ms_space *space, uint64_t addr)
{
	const struct publish_mem *mem = publish_memory(st->unwind->publish);
	const struct ms_span *s = (const struct ms_span *)(const void *)(mem->pool + space->spans);

	for (uint32_t i = 0; i < space->n_spans && s[i].start <= addr; i++)
		if (addr < s[i].end)
			return s[i].kind == MS_SPAN_TABLE
				       ? unwind_files_need(&st->unwind->files, s[i].table, now_ns())
				       : -ENOENT;
	return -ENOENT;
}

bool tables_known(const struct user_stacks *st, const struct proc_id *id,
		  struct ms_space *ret_space)
{
	struct ms_proc proc = wire_proc(id);

	return st->unwind && publish_space(st->unwind->publish, &proc, ret_space);
}

const struct publish_mem *tables_mem(const struct user_stacks *st)
{
	return publish_memory(st->unwind->publish);
}

/* --- the beginning --- */

static void on_name(void *ctx, const struct session_task *task)
{
	struct proc_id id = task->id;
	struct user_stacks *st = ctx;
	struct proc *p;

	st->env.read_processes(st->env.ctx);
	if (proc_table_scan(st->env.procs, (pid_t)id.pid, id.exec_id, task->seen_ns, NULL) < 0)
		return;
	p = proc_table_find(st->env.procs, &id);
	if (st->env.is_before_exec(st->env.ctx, (pid_t)id.pid)) {
		st->unwind->before_exec = id;
		return;
	}
	if (p && put_process(st, p, &id) < 0)
		user_stacks_changed(st, (pid_t)id.pid);
}

/* Until all tables that are being made are there, a signal comes, or it has been long enough. */
static void settle(struct user_stacks *st, uint64_t until_ns)
{
	struct unwind *u = st->unwind;

	while (builder_pending(u->builder) && now_ns() < until_ns && !st->env.in_a_hurry() &&
	       !loop_signal_waits(st->env.loop, 0)) {
		uint64_t soon = now_ns() + 50000000;

		builder_wait(u->builder, soon < until_ns ? soon : until_ns);
		take_tables(st);
	}
}

int user_stacks_begin(struct user_stacks *st, struct ingest *in, struct err *e)
{
	uint64_t began = now_ns();
	int rc;

	st->ingest = in;
	ingest_on_incomplete(in, on_incomplete, st);
	langs_begin(st, in);
	if (!st->unwind || st->env.all)
		return 0;
	rc = session_name_tasks(st->session, on_name, st, e);
	if (rc < 0)
		return rc;
	settle(st, began + BEGIN_NS);
	return 0;
}

void user_stacks_held(struct user_stacks *st)
{
	if (!st->unwind)
		return;
	flush_due(st);
	settle(st, now_ns() + SETTLE_NS);
}

void user_stacks_settle(struct user_stacks *st)
{
	if (st->unwind)
		settle(st, now_ns() + SETTLE_NS);
}

void user_stacks_allow(struct user_stacks *st, uint64_t cpu_ns)
{
	if (st->unwind)
		st->unwind->files.allowed_ns = cpu_ns;
}

bool user_stacks_tables(const struct user_stacks *st, struct user_stacks_tables *ret_tables)
{
	const struct unwind *u = st->unwind;
	struct publish_stats s;

	if (!u || !u->publish)
		return false;
	publish_stats(u->publish, &s);
	*ret_tables = (struct user_stacks_tables){
		.resident = s.tables,
		.known = s.tables_known,
		.pool_bytes = s.pool_bytes,
		.table_bytes = s.table_bytes,
		.span_bytes = s.span_bytes,
		.rows = s.rows,
		.spans = s.spans,
		.rules = s.rules,
		.processes = s.spaces,
		.lists = s.lists,
		.put = u->put,
		.put_ns = u->put_ns,
		.not_put = u->not_put,
		.built = u->files.built,
		.build_ns = u->files.build_ns,
		.put_off = u->files.put_off,
		.evicted = s.evictions,
		.evicted_in_use = s.evicted_in_use,
		.refused = s.too_large,
		.without_room = s.no_room,
		.unreadable = u->files.unreadable,
		.no_rows = u->files.no_rows,
		.trouble = u->files.first_trouble,
	};
	return true;
}
