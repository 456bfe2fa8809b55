/*
 * Interpreted languages in the processes that are watched: which runtime each one has goes where the kernel's
 * walker finds it, and the frames that it records get their names, read in the process as soon as its stack
 * arrives.
 *
 * A file is looked at once. A process is looked at whenever its mappings have changed, and again for a while if
 * its interpreter has not been initialized yet. What was named stays named when its process has ended.
 */
#include "collect/stacks/lang_functions.h"
#include "collect/stacks/stacks_parts.h"
#include "lang/image_cell.h"
#include "proc/peek.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define AGAIN_NS 20000000ULL   /* between two looks at an interpreter that is not ready yet … */
#define GIVE_UP  3000          /* … of which there are so many                               */
#define KEEP_NS  5000000000ULL /* how long the runtime of an ended process is kept            */
#define CHECK_NS 100000000ULL  /* between two looks at a process with several interpreters    */
#define RUNTIMES_MAX                                                                               \
	4 /* interpreters in one process: libraries that stay when they are done with */
#define NAMES_MAX     32768         /* of frames that are kept, some 110 bytes each               */
#define NAMING_NS     2000000000ULL /* of CPU time that naming a process's frames may take at once … */
#define NAMING_PART   50            /* … and later a part of all time               */
#define FREED_NS      25000000ULL /* between two looks at frames whose function had been freed … */
#define EXPECTED_MAX  2
#define ASKED_AT_ONCE 8  /* files */
#define FREED_AT_ONCE 64 /* … at so many of them */

struct lang_file {
	bool seen;
	struct lang_image *image; /* NULL: neither a runtime nor a C library */
};

/* The newest image of a process, with or without a runtime. */
struct lang_process {
	uint32_t pid;
	struct proc_id id;
	bool found, counted;
	struct lang_runtime runtime;
	struct python_tasks tasks; /* what is known of them */
	struct candidate {
		struct lang_mapped at;
		module_id module;
	} runtimes[RUNTIMES_MAX]; /* where it is looked for */
	uint32_t n_runtimes;
	uint32_t in; /* of them, the one that was found            */
	struct lang_mapped libc;
	module_id shown; /* its frames' */
	bool not_ready;  /* it is looked at again */
	uint32_t looks;
	uint64_t again_ns, ended_ns;    /* 0: neither */
	uint64_t spent_ns, spent_at_ns; /* what naming its frames took of late, and when that was */
	UT_hash_handle hh;
};

struct named_key {
	struct proc_id id;
	uint64_t words[2];
};

struct named {
	struct named_key key;
	location_id location;
	bool stub;
	UT_hash_handle hh;
};

/* A file that was asked about before anybody had mapped it. */
struct expected {
	dev_t dev;
	ino_t ino;
	int r;
	struct lang_image *image; /* until somebody has */
};

struct langs {
	int rows_fd;
	struct expected expected[EXPECTED_MAX];
	uint32_t n_expected;
	struct lang_file *files; /* index: module_id.ix */
	uint32_t n_files;
	struct lang_process *processes;
	struct named *names;
	struct lang_functions functions;
	uint64_t
		freed_ns; /* when frames of freed functions are looked at again; 0: there are none */
	uint32_t n_waiting; /* processes that are not ready … */
	uint64_t again_ns;  /* … are looked at again          */
	uint64_t retired_ns;
	struct user_stacks_langs stats;
};

/* --- memory --- */

bool langs_read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return peek(*(const pid_t *)ctx, addr, buf, len);
}

/* --- files --- */

/* Of a runtime, or a file that may have one, that cannot be read. */
static void say_trouble(struct langs *l, const char *why)
{
	l->stats.unknown++;
	if (!*l->stats.trouble)
		snprintf(l->stats.trouble, sizeof(l->stats.trouble), "%.250s", why);
}

/* NULL: out of memory. */
static struct lang_file *file_of(struct langs *l, module_id m)
{
	if (m.ix >= l->n_files) {
		uint32_t n = m.ix * 2 + 64;
		struct lang_file *more = reallocarray(l->files, n, sizeof(*more));

		if (!more)
			return NULL;
		memset(more + l->n_files, 0, (n - l->n_files) * sizeof(*more));
		l->files = more;
		l->n_files = n;
	}
	return &l->files[m.ix];
}

/*
 * Files are asked about several at a time: each has a cell of its own, and a program that has just begun is soon where its frames are
 * wanted.
 */
struct question {
	module_id module;
	int fd;
	const char *name;
	pthread_t thread;
	bool has_thread;
	/* The answer. */
	struct lang_image *image;
	int r;
	struct err e;
};

struct questions {
	struct question all[ASKED_AT_ONCE];
	uint32_t n;
};

void user_stacks_expect(struct user_stacks *st, int fd, const char *name)
{
	struct langs *l = st->langs;
	struct expected *x;
	struct stat s;

	if (!l || l->n_expected == EXPECTED_MAX || fstat(fd, &s) < 0)
		return;
	x = &l->expected[l->n_expected++];
	*x = (struct expected){ s.st_dev, s.st_ino, 0, NULL };
	x->r = lang_image_ask(fd, name, &x->image, NULL, NULL);
}

static void take_expected(struct langs *l, int fd, struct lang_file *f)
{
	struct stat s;

	for (uint32_t i = 0; i < l->n_expected; i++) {
		struct expected *x = &l->expected[i];

		if (fd < 0 || fstat(fd, &s) < 0 || x->dev != s.st_dev || x->ino != s.st_ino ||
		    (x->r < 0 && x->r != -ENOENT))
			continue;
		f->image = TAKE_PTR(x->image);
		f->seen = true;
		*x = l->expected[--l->n_expected];
		return;
	}
}

static const struct lang_image *known_image(struct user_stacks *st, module_id m)
{
	struct lang_file *f = file_of(st->langs, m);
	_cleanup_(closep) int fd = -1;

	if (f && !f->seen && st->langs->n_expected) {
		fd = proc_table_open_module(st->env.procs, m, NULL);
		take_expected(st->langs, fd, f);
	}
	return f ? f->image : NULL;
}

static void *ask_one(void *arg)
{
	struct question *q = arg;

	q->r = q->fd < 0 ? -ENOENT : lang_image_ask(q->fd, q->name, &q->image, NULL, &q->e);
	return NULL;
}

static void take_answer(struct langs *l, struct question *q)
{
	struct lang_file *f = file_of(l, q->module);

	closep(&q->fd);
	if (!f) {
		lang_image_free(q->image);
		return;
	}
	f->image = q->image;
	/* Nothing is known of the file where no cell could be had: it is asked about again. */
	f->seen = q->r != -EMFILE && q->r != -ENFILE && q->r != -EAGAIN && q->r != -ENOMEM;
	if (q->r == -ETIMEDOUT || q->r == -EBADMSG)
		say_trouble(l, q->e.msg);
}

static void ask_all(struct langs *l, struct questions *q)
{
	for (uint32_t i = 0; i + 1 < q->n; i++)
		q->all[i].has_thread =
			q->all[i].fd >= 0 &&
			pthread_create(&q->all[i].thread, NULL, ask_one, &q->all[i]) == 0;
	for (uint32_t i = 0; i < q->n; i++)
		if (!q->all[i].has_thread)
			ask_one(&q->all[i]);
	for (uint32_t i = 0; i < q->n; i++) {
		if (q->all[i].has_thread)
			pthread_join(q->all[i].thread, NULL);
		take_answer(l, &q->all[i]);
	}
	q->n = 0;
}

static bool is_asked(const struct questions *q, module_id m)
{
	for (uint32_t i = 0; i < q->n; i++)
		if (q->all[i].module.ix == m.ix)
			return true;
	return false;
}

/* Which of the files that were not looked at yet have a runtime or a C library in them. false: there are no such files. */
static bool read_files(struct user_stacks *st, const struct proc_mapping *maps, uint32_t n)
{
	struct questions q = { 0 };
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		_cleanup_(closep) int fd = -1;
		module_id m = maps[i].module;
		struct lang_file *f;

		if (maps[i].kind != MODULE_ELF || !maps[i].readable || is_asked(&q, m))
			continue;
		f = file_of(st->langs, m);
		if (!f || f->seen)
			continue;
		any = true;
		fd = proc_table_open_module(st->env.procs, m, NULL);
		q.all[q.n++] = (struct question){
			.module = m,
			.fd = TAKE_FD(fd),
			.name = dict_str(st->env.dict, dict_module_get(st->env.dict, m)->path),
		};
		if (q.n == ASKED_AT_ONCE)
			ask_all(st->langs, &q);
	}
	ask_all(st->langs, &q);
	return any;
}

/* --- processes --- */

static struct lang_process *process_of(struct langs *l, uint32_t pid)
{
	struct lang_process *p;

	HASH_FIND(hh, l->processes, &pid, sizeof(pid), p);
	return p;
}

static void wait_no_more(struct langs *l, struct lang_process *p)
{
	if (p->not_ready)
		l->n_waiting--;
	p->not_ready = false;
}

static void put_row(struct user_stacks *st, struct lang_process *p)
{
	struct ms_lang_row *row = &p->runtime.row;

	row->start_ns = p->id.start_ns;
	row->exec_id = p->id.exec_id;
	if (bpf_map_update_elem(st->langs->rows_fd, &p->pid, row, BPF_ANY) < 0)
		st->langs->stats.no_room++;
}

static module_id shown_as(struct user_stacks *st, enum ms_lang lang)
{
	struct module m = { .kind = MODULE_LANG };
	char name[32];

	snprintf(name, sizeof(name), "[%s]", lang_title(lang));
	m.path = dict_string(st->env.dict, name);
	return dict_module(st->env.dict, &m);
}

static bool is_wanted(const struct user_stacks *st, enum ms_lang lang)
{
	return lang != MS_LANG_NONE && (!st->env.only_langs || st->env.only_langs >> lang & 1);
}

/* Which of its mappings are runtimes and the C library. */
static void find_images(struct user_stacks *st, const struct proc_mapping *maps, uint32_t n,
			struct lang_process *p)
{
	p->n_runtimes = 0;
	p->libc = (struct lang_mapped){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		const struct lang_image *image;
		struct candidate *last = p->n_runtimes ? &p->runtimes[p->n_runtimes - 1] : NULL;

		if (maps[i].kind != MODULE_ELF || !maps[i].readable)
			continue;
		image = known_image(st, maps[i].module);
		if (!image)
			continue;
		/* A file may have several mappings with code. */
		if (is_wanted(st, lang_image_lang(image)) && p->n_runtimes < RUNTIMES_MAX &&
		    (!last || last->at.image != image ||
		     (last->at.bias != maps[i].bias && !lang_maps_twice(lang_image_lang(image)))))
			p->runtimes[p->n_runtimes++] =
				(struct candidate){ { image, maps[i].bias }, maps[i].module };
		if (!p->libc.image && lang_image_is_libc(image))
			p->libc = (struct lang_mapped){ image, maps[i].bias };
	}
}

static int find_runtime(const struct lang_process *p, uint32_t which, struct lang_runtime *ret_rt,
			struct err *e)
{
	pid_t pid = (pid_t)p->pid;
	struct lang_memory mem = { langs_read_process, &pid };

	return lang_runtime_find(&p->runtimes[which].at, p->libc.image ? &p->libc : NULL, &mem,
				 ret_rt, e);
}

static void look_again_at(struct langs *l, struct lang_process *p, uint64_t after_ns)
{
	if (!p->not_ready)
		l->n_waiting++;
	p->not_ready = true;
	p->again_ns = now_ns() + after_ns;
}

static bool is_same(const struct lang_runtime *a, const struct lang_runtime *b)
{
	return a->row.range[0].start == b->row.range[0].start && a->row.thread == b->row.thread &&
	       a->row.off == b->row.off && a->row.module == b->row.module;
}

static void take_runtime(struct user_stacks *st, struct lang_process *p, uint32_t which,
			 const struct lang_runtime *rt)
{
	struct langs *l = st->langs;
	bool is_new = !p->found;

	if (!is_new && p->in == which && is_same(rt, &p->runtime))
		return;
	p->found = true;
	p->in = which;
	p->runtime = *rt;
	memset(&p->tasks, 0, sizeof(p->tasks));
	p->shown = shown_as(st, rt->lang);
	put_row(st, p);
	l->stats.processes += is_new && !p->counted;
	p->counted = true;
	l->stats.untested |= rt->untested;
	if (!*l->stats.name)
		snprintf(l->stats.name, sizeof(l->stats.name), "%.31s", rt->name);
}

/*
 * The interpreter that has threads: the one that is known, else another. Of several, that one has frames. An interpreter
 * that has been finalized stays mapped, as long as its modules are.
 */
static void look(struct user_stacks *st, struct lang_process *p)
{
	struct langs *l = st->langs;
	struct lang_runtime rt;
	struct err e = { 0 };
	int rc = -ENOENT, one;

	for (uint32_t i = 0; i < p->n_runtimes && rc < 0; i++) {
		uint32_t which = p->found ? (p->in + i) % p->n_runtimes : i;

		one = find_runtime(p, which, &rt, &e);
		if (one == 0)
			take_runtime(st, p, which, &rt);
		rc = rc == -EAGAIN && one < 0 ? rc : one;
	}
	if (p->found && p->n_runtimes > 1) {
		look_again_at(l, p, rc < 0 ? AGAIN_NS : CHECK_NS);
		return;
	}
	if (rc == -EAGAIN && !p->found && ++p->looks < GIVE_UP) {
		look_again_at(l, p, AGAIN_NS);
		return;
	}
	wait_no_more(l, p);
	if (rc < 0 && !p->found) {
		say_trouble(l, e.msg);
	}
}

/* After its mappings have changed. A library may have been unloaded, or exchanged for another. */
static void keep_found(struct langs *l, struct lang_process *p, const struct candidate *was)
{
	for (uint32_t i = 0; i < p->n_runtimes; i++)
		if (p->runtimes[i].at.image == was->at.image &&
		    p->runtimes[i].at.bias == was->at.bias) {
			p->in = i;
			return;
		}
	bpf_map_delete_elem(l->rows_fd, &p->pid);
	p->found = false;
	p->looks = 0;
}

void langs_mapped(struct user_stacks *st, const struct proc_id *id, const struct proc_mapping *maps,
		  uint32_t n)
{
	struct langs *l = st->langs;
	struct lang_process *p;
	struct candidate was;

	if (!l)
		return;
	p = hash_get(l->processes, pid, &id->pid);
	if (!p)
		return;
	if (memcmp(&p->id, id, sizeof(*id))) {
		wait_no_more(l, p);
		p->found = p->counted = false;
		p->looks = 0;
		p->id = *id;
	}
	p->ended_ns = 0;
	was = p->runtimes[p->in];
	/* What is known already is soon where it is wanted; what is not may take its time. */
	find_images(st, maps, n, p);
	if (p->n_runtimes && !p->found)
		look(st, p);
	if (read_files(st, maps, n))
		find_images(st, maps, n, p);
	if (p->found)
		keep_found(l, p, &was);
	if (p->n_runtimes)
		look(st, p);
	else
		wait_no_more(l, p);
}

void langs_ended(struct user_stacks *st, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	struct lang_process *p = st->langs ? process_of(st->langs, key) : NULL;

	if (!p)
		return;
	if (p->found)
		bpf_map_delete_elem(st->langs->rows_fd, &key);
	wait_no_more(st->langs, p);
	if (p->found) {
		p->ended_ns = now_ns();
		return;
	}
	/* Nothing of it is asked for any more: of compilers there would be thousands. */
	HASH_DEL(st->langs->processes, p);
	free(p);
}

void langs_tick(struct user_stacks *st)
{
	struct langs *l = st->langs;
	struct lang_process *p, *next;
	uint64_t now = now_ns();

	if (!l || (!l->n_waiting && now < l->retired_ns + KEEP_NS))
		return;
	l->again_ns = now + AGAIN_NS;
	HASH_ITER (hh, l->processes, p, next) {
		if (p->ended_ns && now > p->ended_ns + KEEP_NS) {
			HASH_DEL(l->processes, p);
			free(p);
		} else if (p->not_ready && now >= p->again_ns) {
			look(st, p);
		}
	}
	if (now >= l->retired_ns + KEEP_NS)
		l->retired_ns = now;
}

const struct ms_lang_row *langs_row(const struct user_stacks *st, const struct proc_id *id)
{
	struct lang_process *p = st->langs ? process_of(st->langs, id->pid) : NULL;

	return p && p->found && !memcmp(&p->id, id, sizeof(*id)) ? &p->runtime.row : NULL;
}

void langs_each(struct user_stacks *st, enum ms_lang lang, langs_each_fn fn, void *ctx)
{
	struct lang_process *p, *next;

	if (!st->langs)
		return;
	HASH_ITER (hh, st->langs->processes, p, next)
		if (p->found && !p->ended_ns && p->runtime.lang == lang)
			fn(ctx, &p->id, &p->runtime, &p->tasks);
}

/* --- names --- */

/* What stands for a frame without a name. */
static location_id place(struct user_stacks *st, enum ms_lang lang, const char *what)
{
	struct dict *d = st->env.dict;
	char text[64];
	struct line l = { 0 };

	snprintf(text, sizeof(text), "[%s %s]", lang_title(lang), what);
	l.function = dict_string(d, text);
	return dict_location_lines(d, shown_as(st, lang), 0, &l, 1);
}

/* As shown: with the last part of the file's path, as others have a function of that name. */
static struct line line_of_frame(struct dict *d, const struct lang_frame *f)
{
	/* "node:internal/timers" is no path. */
	const char *slash = strncmp(f->file, "node:", 5) ? strrchr(f->file, '/') : NULL;
	const char *base = slash ? slash + 1 : f->file;
	struct line l = { .line = f->line, .start_line = f->first_line };
	char name[LANG_NAME_MAX + 300];

	snprintf(name, sizeof(name), *base ? "%s (%.256s)" : "%s", f->function, base);
	l.function = dict_string(d, name);
	if (*f->file)
		l.file = dict_string(d, f->file);
	return l;
}

static location_id place_of_frames(struct user_stacks *st, const struct lang_process *p,
				   const struct lang_frames *all)
{
	struct line lines[LANG_INLINED_MAX];

	for (uint32_t i = 0; i < all->n; i++)
		lines[i] = line_of_frame(st->env.dict, &all->frame[i]);
	return dict_location_lines(st->env.dict, p->shown, 0, lines, all->n);
}

/* A frame that was named: others of the same function may have been freed before they could be. */
static void learn(struct user_stacks *st, const struct lang_process *p, const uint64_t words[2],
		  const struct lang_frame *frame)
{
	uint32_t number;
	uint64_t key = lang_function_key(words, &number);
	struct line line;
	uint32_t late;

	if (!key)
		return;
	line = line_of_frame(st->env.dict, frame);
	late = lang_functions_learn(&st->langs->functions, st->env.dict, &p->id, key, &line);
	st->langs->stats.gone -= late;
	st->langs->stats.named += late;
}

/* A frame whose function has been freed, perhaps by another one of the same function. */
static location_id freed(struct user_stacks *st, const struct lang_process *p,
			 const uint64_t words[2])
{
	location_id gone = place(st, p->runtime.lang, "code that is gone"), found;
	struct lang_freed frame = { .id = p->id, .words = { words[0], words[1] } };
	struct langs *l = st->langs;

	frame.key = lang_function_key(words, &frame.number);
	if (frame.key &&
	    lang_functions_find(&l->functions, st->env.dict, &frame, p->shown, gone, &found)) {
		l->stats.named++;
		return found;
	}
	l->stats.gone++;
	if (!frame.key)
		return gone;
	l->freed_ns = l->freed_ns ? l->freed_ns : now_ns() + FREED_NS;
	return found;
}

/* Those that had been freed: perhaps they are there again. */
static void look_at_freed(struct user_stacks *st)
{
	static struct lang_frames all;
	struct lang_freed again[FREED_AT_ONCE];
	struct langs *l = st->langs;
	uint32_t n = lang_functions_again(&l->functions, again, FREED_AT_ONCE);

	l->freed_ns = n ? now_ns() + FREED_NS : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct lang_process *p = process_of(l, again[i].id.pid);
		uint64_t begin_ns = thread_cpu_ns();
		pid_t pid = (pid_t)again[i].id.pid;
		struct lang_memory mem = { langs_read_process, &pid };

		if (!p || !p->found || p->ended_ns || p->spent_ns > NAMING_NS ||
		    memcmp(&p->id, &again[i].id, sizeof(p->id)) != 0)
			continue;
		if (lang_decode_all(&p->runtime, &mem, again[i].words, &all) == LANG_DECODED)
			learn(st, p, again[i].words, &all.frame[0]);
		p->spent_ns += thread_cpu_ns() - begin_ns;
	}
}

/* A program's tables are as long as it makes them, and the others' records wait meanwhile: it has so much CPU time at once, and a part of all. */
static bool is_too_slow(struct lang_process *p)
{
	uint64_t now = now_ns(), earned = (now - p->spent_at_ns) / NAMING_PART;

	p->spent_ns -= earned < p->spent_ns ? earned : p->spent_ns;
	p->spent_at_ns = now;
	return p->spent_ns > NAMING_NS;
}

static location_id decode(struct user_stacks *st, struct lang_process *p, const uint64_t words[2],
			  bool *ret_stub)
{
	static struct lang_frames all;
	pid_t pid = (pid_t)p->pid;
	struct lang_memory mem = { langs_read_process, &pid };
	struct langs *l = st->langs;
	uint64_t begin_ns;
	int rc;

	all.frame[0].stub = false;
	begin_ns = thread_cpu_ns();
	rc = lang_decode_all(&p->runtime, &mem, words, &all);
	p->spent_ns += thread_cpu_ns() - begin_ns;
	switch (rc) {
	case LANG_DECODED:
		l->stats.named++;
		*ret_stub = all.frame[0].stub;
		learn(st, p, words, &all.frame[0]);
		return place_of_frames(st, p, &all);
	case LANG_GONE:
		return freed(st, p, words);
	default:
		l->stats.damaged++;
		return place(st, p->runtime.lang, "code that is damaged");
	}
}

static enum ms_lang lang_of(const uint64_t words[2])
{
	return (enum ms_lang)(words[1] >> MS_LANG_SHIFT & 0xf);
}

static location_id gone(struct user_stacks *st, const uint64_t words[2])
{
	st->langs->stats.gone++;
	return place(st, lang_of(words), "code that is gone");
}

location_id langs_named(struct user_stacks *st, const struct proc_id *id, const uint64_t words[2])
{
	struct lang_process *p = process_of(st->langs, id->pid);
	struct langs *l = st->langs;
	struct named_key key;
	struct named *n;
	bool stub = false;

	memset(&key, 0, sizeof(key));
	key.id = *id;
	memcpy(key.words, words, sizeof(key.words));
	HASH_FIND(hh, l->names, &key, sizeof(key), n);
	if (n)
		return n->location;
	if (!p || !p->found || memcmp(&p->id, id, sizeof(*id)) != 0)
		return gone(st, words);
	if (is_too_slow(p)) {
		l->stats.damaged++;
		return place(st, p->runtime.lang, "code that takes too long to name");
	}
	if (HASH_COUNT(l->names) >= NAMES_MAX)
		hash_free(l->names);
	n = hash_new(l->names, key, &key);
	if (!n)
		return decode(st, p, words, &stub);
	n->location = decode(st, p, words, &n->stub);
	return n->location;
}

/* Of a frame that has been named. */
static bool on_stub(void *ctx, const struct proc_id *id, const uint64_t words[2])
{
	const struct user_stacks *st = ctx;
	struct named_key key;
	struct named *n;

	memset(&key, 0, sizeof(key));
	key.id = *id;
	memcpy(key.words, words, sizeof(key.words));
	HASH_FIND(hh, st->langs->names, &key, sizeof(key), n);
	return n && n->stub;
}

static void on_seen(void *ctx, pid_t pid, const uint64_t words[2])
{
	struct user_stacks *st = ctx;
	struct lang_process *p = process_of(st->langs, (uint32_t)pid);

	if (p && p->found && words[0] & MS_FRAME_ADDR_MASK)
		langs_named(st, &p->id, words);
}

void langs_seen(struct user_stacks *st, const struct proc_id *id, const uint64_t words[2])
{
	struct lang_process *p = st->langs ? process_of(st->langs, id->pid) : NULL;

	if (p && p->found && !memcmp(&p->id, id, sizeof(*id)))
		langs_named(st, id, words);
}

void langs_walked(struct user_stacks *st, bool lost, bool misplaced)
{
	if (!st->langs)
		return;
	st->langs->stats.lost += lost;
	st->langs->stats.misplaced += misplaced;
}

static location_id on_place(void *ctx, const struct proc_id *id, const uint64_t words[2])
{
	struct user_stacks *st = ctx;

	if (!(words[0] & MS_FRAME_ADDR_MASK))
		return place(st, lang_of(words), "frames that could not be read");
	return langs_named(st, id, words);
}

static uint64_t due_ns(void *ctx)
{
	const struct user_stacks *st = ctx;

	uint64_t due = LOOP_NEVER;

	if (!st->langs)
		return due;
	if (st->langs->n_waiting)
		due = st->langs->again_ns;
	if (st->langs->freed_ns && st->langs->freed_ns < due)
		due = st->langs->freed_ns;
	return due;
}

static int on_due(void *ctx, struct err *e)
{
	struct user_stacks *st = ctx;

	(void)e;
	langs_tick(st);
	if (st->langs && st->langs->freed_ns && now_ns() >= st->langs->freed_ns)
		look_at_freed(st);
	return 0;
}

static bool on_internal(void *ctx, const struct proc_id *id, module_id module)
{
	struct user_stacks *st = ctx;
	struct lang_process *p = process_of(st->langs, id->pid);

	for (uint32_t i = 0; p && p->found && i < p->n_runtimes; i++)
		if (p->runtimes[i].module.ix == module.ix &&
		    !lang_is_compiled(lang_image_lang(p->runtimes[i].at.image)))
			return true;
	return false;
}

static bool executes(const struct lang_process *p, uint64_t pc)
{
	for (uint32_t i = 0; i < p->n_runtimes; i++)
		if (lang_image_executes(p->runtimes[i].at.image, pc - p->runtimes[i].at.bias))
			return true;
	return false;
}

/* A stack of native frames alone, of which one executes frames of a language. */
static void on_native(void *ctx, const struct proc_id *id, const uint64_t *frames, uint32_t n,
		      uint64_t count)
{
	const struct user_stacks *st = ctx;
	const struct lang_process *p = process_of(st->langs, id->pid);

	if (!p || !(p->found || p->not_ready) || memcmp(&p->id, id, sizeof(*id)) != 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (executes(p, (frames[i] & MS_FRAME_ADDR_MASK) - (i > 0))) {
			st->langs->stats.native += count;
			return;
		}
}

/* --- opening --- */

int langs_open(struct user_stacks *st, struct err *e)
{
	int rc;

	if (!st->env.langs || !st->unwind)
		return 0;
	st->langs = calloc(1, sizeof(*st->langs));
	if (!st->langs)
		return err_set(e, -ENOMEM, "out of memory");
	st->langs->rows_fd = session_map_fd(st->session, SESSION_LANGS);
	rc = loop_at(st->env.loop, due_ns, on_due, st);
	return rc < 0 ? err_set(e, rc, "cannot wait for interpreters: %s", strerror(-rc)) : 0;
}

void langs_begin(struct user_stacks *st, struct ingest *in)
{
	const struct ingest_langs langs = {
		.place = on_place,
		.seen = on_seen,
		.stub = on_stub,
		.internal = on_internal,
		.native = on_native,
		.ctx = st,
		.keep_native = st->env.native_frames,
	};

	if (st->langs)
		ingest_on_langs(in, &langs);
}

void langs_close(struct user_stacks *st)
{
	struct langs *l = st->langs;

	if (!l)
		return;
	for (uint32_t i = 0; i < l->n_files; i++)
		lang_image_free(l->files[i].image);
	free(l->files);
	for (uint32_t i = 0; i < l->n_expected; i++)
		lang_image_free(l->expected[i].image);
	hash_free(l->processes);
	hash_free(l->names);
	lang_functions_free(&l->functions);
	free(l);
	st->langs = NULL;
}

uint32_t user_stacks_lang(const char *name, size_t len)
{
	enum ms_lang lang = lang_named(name, len);

	return lang == MS_LANG_NONE ? 0 : 1u << lang;
}

const char *user_stacks_lang_names(void)
{
	return lang_names();
}

bool user_stacks_langs(const struct user_stacks *st, struct user_stacks_langs *ret_langs)
{
	if (!st->langs)
		return false;
	*ret_langs = st->langs->stats;
	return true;
}
