#include "collect/stacks/goroutines.h"

#include "base/clock.h"
#include "base/hash.h"
#include "lang/go_cell.h"
#include "proc/blocked_call.h"
#include "proc/peek.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	MAPPINGS_MAX = 256,
	AT_ONCE = 1024,  /* goroutines of a process in one look, about             */
	SEEN_MAX = 4096, /* of a process that are known again at the next look    */
	USES_MAX = 16384,
	PEERS_MAX = 64,   /* by name, of all processes                               */
	DESCRIPTORS = 64, /* of which it is asked what they are, in one look         */
	PIECES = 256,
	LABELS_MAX = 12,
};

#define LOOK_LEAST_NS  80000000ULL /* between two looks at a process; the half more, on average … */
#define LOOK_VARIES_NS 160000000ULL
#define TOKENS_MOST_NS                                                                             \
	40e6 /* of CPU time that was not used; and for the first looks, which know nothing yet */
#define ASK_AGAIN_NS                                                                               \
	5000000000ULL /* for the peer of a descriptor: the kernel's table of connections is slow to read */

struct go_file {
	uint32_t module;
	struct go_program *program; /* NULL: none that is read */
	bool gave_up;               /* no cell that read it said where its frames end */
	UT_hash_handle hh;
};

struct use_key {
	uint32_t stack, labels;
};

struct use {
	struct use_key key;
	struct goroutine_use is;
	pid_t pid;
	UT_hash_handle hh;
};

/* A goroutine as it was at the last look. */
struct seen {
	uint64_t id;
	uint8_t seq;
	int32_t fd;
	uint32_t look;     /* the last one in which it was there */
	uint64_t since_ns; /* this wait has lasted since then at least */
	string_id peer;    /* of fd, when that is not -1, as asked at … */
	uint64_t asked_ns;
	struct use *in;
	UT_hash_handle hh;
};

struct go_target {
	pid_t pid;
	struct proc_id id;
	module_id module;
	struct go_process process;
	uint64_t last_ns, next_ns; /* of looks */
	uint32_t looks;
	uint64_t seed;
	struct seen *seen;
	int64_t now, running, system;
	bool gone;
	UT_hash_handle hh;
};

struct goroutines {
	struct dict *dict;
	struct proc_table *procs;
	struct ingest *ingest; /* NULL: nobody knows of containers */
	struct go_file *files;
	struct go_target *targets;
	struct use *uses;
	struct go_look *look;
	struct goroutines_figures figures;
	char why[256];
	double tokens_ns;
	uint64_t last_tick_ns;
	uint64_t random;
	string_id peers[PEERS_MAX];
	uint32_t n_peers;
};

/* --- reading --- */

/* A call stops at the first piece that is not there: the rest is read by another one. */
static void read_pieces(void *ctx, struct go_piece *pieces, uint32_t n)
{
	pid_t pid = *(const pid_t *)ctx;
	uint32_t at = 0;

	while (at < n) {
		struct iovec to[PIECES], from[PIECES];
		uint32_t end = n - at < PIECES ? n : at + PIECES, i;
		ssize_t got;

		for (i = at; i < end; i++) {
			to[i - at] = (struct iovec){ pieces[i].to, pieces[i].len };
			/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process */
			from[i - at] =
				(struct iovec){ (void *)(uintptr_t)pieces[i].addr, pieces[i].len };
			pieces[i].there = false;
			if (!peek_may(pid, pieces[i].addr, pieces[i].len))
				break;
		}
		end = i; /* one that may not be read ends the call as one that is not there does */
		if (end == at) {
			at++;
			continue;
		}
		got = process_vm_readv(pid, to, end - at, from, end - at, 0);
		for (i = at; i < end && got >= (ssize_t)pieces[i].len; i++) {
			got -= (ssize_t)pieces[i].len;
			pieces[i].there = true;
		}
		at = i < end ? i + 1 : end;
	}
}

struct file_of {
	const struct goroutines *g;
	module_id module;
};

static int open_file(void *ctx)
{
	const struct file_of *of = ctx;

	return proc_table_open_module(of->g->procs, of->module, NULL);
}

static void refuse(struct goroutines *g, const struct err *e)
{
	if (!g->figures.refused++)
		snprintf(g->why, sizeof(g->why), "%.*s", (int)sizeof(g->why) - 1, e->msg);
}

static struct go_program *program_of(struct goroutines *g, module_id module)
{
	_cleanup_(closep) int fd = -1;
	struct err e = { 0 };
	struct go_file *f;

	HASH_FIND(hh, g->files, &module.ix, sizeof(module.ix), f);
	if (f)
		return f->program;
	f = hash_new(g->files, module, &module.ix);
	fd = f ? proc_table_open_module(g->procs, module, NULL) : -1;
	if (fd >= 0 && go_program_ask(fd, &f->program, &e) < 0 && *e.msg)
		refuse(g, &e);
	return f ? f->program : NULL;
}

void goroutines_begin(struct goroutines *g, struct ingest *in)
{
	g->ingest = in;
}

/* --- processes --- */

static void target_free(struct goroutines *g, struct go_target *t)
{
	HASH_DEL(g->targets, t);
	hash_free(t->seen);
	free(t);
}

static bool find_bias(struct goroutines *g, struct proc *proc, module_id module, uint64_t *ret_bias)
{
	struct proc_mapping maps[MAPPINGS_MAX];
	uint32_t n = proc_mappings(g->procs, proc, maps, MAPPINGS_MAX);

	for (uint32_t i = 0; i < n && i < MAPPINGS_MAX; i++)
		if (maps[i].module.ix == module.ix && maps[i].readable) {
			*ret_bias = maps[i].bias;
			return true;
		}
	return false;
}

bool goroutines_add(struct goroutines *g, pid_t pid, uint64_t now_ns)
{
	struct proc *proc = proc_table_live(g->procs, pid);
	const struct go_memory mem = { read_pieces, &pid };
	struct go_process process;
	struct proc_image image;
	struct go_program *program;
	struct go_target *t;
	struct err e = { 0 };
	uint64_t bias, n;
	int r;

	HASH_FIND(hh, g->targets, &pid, sizeof(pid), t);
	if (t && go_process_size(&t->process, &mem, &n))
		return true; /* known already */
	if (t)
		target_free(g, t);
	if (!proc)
		return true;
	if (!proc_images(g->procs, proc, &image, 1))
		return false; /* it has just begun: its mappings come */
	program = program_of(g, image.module);
	if (!program || !find_bias(g, proc, image.module, &bias))
		return true;
	r = go_process_find(program, bias, &mem, &process, &e);
	if (r == -EAGAIN)
		return false;
	if (r < 0) {
		refuse(g, &e);
		return true;
	}
	t = hash_new(g->targets, pid, &pid);
	if (!t)
		return true;
	t->process = process;
	t->module = image.module;
	t->last_ns = now_ns;
	t->seed = ++g->random * 0x9e3779b97f4a7c15ULL;
	if (!g->figures.processes++)
		g->figures.version = go_program_version(program);
	g->figures.untested |= go_program_untested(program);
	return true;
}

/* --- a look --- */

struct looking {
	struct goroutines *g;
	struct go_target *t;
	struct proc *proc;
	uint64_t now_ns, stands_for_ns; /* of each goroutine */
	int64_t weight;
	uint32_t asked; /* descriptors */
	char *tcp;
	bool tcp_read;
};

static string_id name_peer(struct goroutines *g, const char *name)
{
	string_id id = dict_string(g->dict, name);

	for (uint32_t i = 0; i < g->n_peers; i++)
		if (g->peers[i].ix == id.ix)
			return id;
	if (g->n_peers == PEERS_MAX)
		return dict_string(g->dict, "other peers");
	g->peers[g->n_peers++] = id;
	return id;
}

/* The peer of one of its descriptors, where the program has made the connection. */
static string_id ask_for_peer(struct looking *k, const struct goroutine *g, int32_t *ret_fd)
{
	char name[ENDPOINT_NAME_MAX];

	for (int i = 0; i < 2 && k->asked < DESCRIPTORS; i++) {
		enum endpoint_kind kind;

		if (g->fds[i] <= 0)
			continue;
		k->asked++;
		if (!k->tcp_read)
			k->tcp = endpoint_tcp_read(k->t->pid);
		k->tcp_read = true;
		kind = k->tcp ? endpoint_of(k->t->pid, g->fds[i], k->tcp, name, sizeof(name))
			      : ENDPOINT_NONE;
		if (kind == ENDPOINT_NONE)
			continue;
		*ret_fd = g->fds[i];
		return kind == ENDPOINT_PEER ? name_peer(k->g, name) : (string_id){ 0 };
	}
	return (string_id){ 0 };
}

static string_id peer_of(struct looking *k, const struct goroutine *g, struct seen *seen)
{
	int32_t fd = g->fds[0] > 0 ? g->fds[0] : g->fds[1];
	string_id peer;

	if (fd <= 0)
		return (string_id){ 0 };
	if (seen && seen->fd > 0 && (seen->fd == g->fds[0] || seen->fd == g->fds[1]) &&
	    k->now_ns - seen->asked_ns < ASK_AGAIN_NS)
		return seen->peer;
	peer = ask_for_peer(k, g, &fd);
	if (seen) {
		seen->fd = fd;
		seen->peer = peer;
		seen->asked_ns = k->now_ns;
	}
	return peer;
}

static const char *reason_of(const struct go_target *t, const struct goroutine *g)
{
	switch (g->state) {
	case GOROUTINE_WAITING:
		return t->process.reasons[g->reason];
	case GOROUTINE_SYSCALL:
		return "system call";
	default:
		return "runnable";
	}
}

static stack_id stack_of(struct looking *k, const struct goroutine *g)
{
	uint32_t gen = proc_generation(k->proc);
	location_id frames[GO_FRAMES_MAX];

	for (uint32_t i = 0; i < g->n; i++) {
		module_id module;
		uint64_t vaddr;

		proc_resolve(k->g->procs, k->proc, gen, g->pcs[i], &module, &vaddr);
		frames[i] = dict_location(k->g->dict, module, vaddr);
	}
	return dict_stack(k->g->dict, frames, g->n);
}

static uint32_t process_labels(struct looking *k, struct label set[LABELS_MAX])
{
	struct dict *d = k->g->dict;
	const struct label *of;
	struct proc_id id;
	uint32_t n;

	if (k->g->ingest && proc_id_of(k->proc, &id)) {
		of = dict_labels_get(d, ingest_process_labels(k->g->ingest, &id), &n);
		n = n < LABELS_MAX - 2 ? n : LABELS_MAX - 2;
		memcpy(set, of, n * sizeof(*set));
		return n;
	}
	set[0] = (struct label){ .key = dict_string(d, "pid"), .num = k->t->pid };
	set[1] = (struct label){ .key = dict_string(d, "comm"),
				 .str = dict_string(d, proc_comm(k->proc)) };
	return 2;
}

static struct use *use_of(struct looking *k, const struct goroutine *g, const char *reason,
			  string_id peer)
{
	struct dict *d = k->g->dict;
	struct label set[LABELS_MAX];
	uint32_t n = process_labels(k, set);
	struct use_key key;
	struct use *u;

	set[n++] = (struct label){ .key = dict_string(d, "state"), .str = dict_string(d, reason) };
	if (peer.ix)
		set[n++] = (struct label){ .key = dict_string(d, "peer"), .str = peer };
	key.stack = stack_of(k, g).ix;
	key.labels = dict_labels(d, set, n).ix;
	HASH_FIND(hh, k->g->uses, &key, sizeof(key), u);
	if (u || HASH_COUNT(k->g->uses) >= USES_MAX)
		return u;
	u = hash_new(k->g->uses, key, &key);
	if (!u)
		return NULL;
	u->pid = k->t->pid;
	u->is.stack.ix = key.stack;
	u->is.labels.ix = key.labels;
	u->is.reason = dict_str(d, dict_string(d, reason));
	u->is.peer = dict_str(d, peer);
	u->is.waits = g->state == GOROUTINE_WAITING;
	return u;
}

static struct seen *seen_of(struct looking *k, const struct goroutine *g)
{
	struct seen *s;

	HASH_FIND(hh, k->t->seen, &g->id, sizeof(g->id), s);
	if (s || HASH_COUNT(k->t->seen) >= SEEN_MAX)
		return s;
	s = hash_new(k->t->seen, id, &g->id);
	if (s)
		s->fd = -1;
	return s;
}

/* How often it has stopped running since the last look, wherever that was; and since when it waits. */
static uint32_t waits_since(struct looking *k, const struct goroutine *g, struct seen *s,
			    const struct use *u)
{
	uint32_t n = 1;

	if (s && s->in) {
		n = g->has_seq ? (uint8_t)(g->seq - s->seq) : s->in != u;
		n += !n && s->in != u;
	}
	if (s && (n || !s->in))
		s->since_ns = k->now_ns;
	return n;
}

static void on_goroutine(void *ctx, const struct goroutine *g)
{
	struct looking *k = ctx;
	uint64_t since_ns = k->now_ns;
	struct seen *s;
	struct use *u;
	uint32_t waits;

	k->g->figures.looked++;
	k->t->now += k->weight;
	if (g->system) {
		k->t->system += k->weight;
		return;
	}
	if (g->state == GOROUTINE_RUNNING)
		k->t->running += k->weight;
	if (!g->n)
		return;
	k->g->figures.cut += !g->whole;
	s = seen_of(k, g);
	u = use_of(k, g, reason_of(k->t, g), peer_of(k, g, s));
	if (!u) {
		k->g->figures.left_out++;
		return;
	}
	waits = waits_since(k, g, s, u);
	if (s) {
		s->in = u;
		s->seq = g->seq;
		s->look = k->t->looks;
		since_ns = s->since_ns;
	}
	u->is.now += k->weight;
	u->is.time_ns += (int64_t)k->stands_for_ns * k->weight;
	if (!u->is.waits)
		return;
	if (g->since_ns > 0 && (uint64_t)g->since_ns < since_ns)
		since_ns = (uint64_t)g->since_ns;
	u->is.waits_n += waits * k->weight;
	if ((int64_t)(k->now_ns - since_ns) > u->is.longest_ns)
		u->is.longest_ns = (int64_t)(k->now_ns - since_ns);
}

static void forget_unseen(struct go_target *t)
{
	struct seen *s, *next;

	HASH_ITER (hh, t->seen, s, next)
		if (s->look != t->looks) {
			HASH_DEL(t->seen, s);
			free(s);
		}
}

/* For how long another process was waited for, ns: it took no more CPU time. */
static uint64_t look_at(struct goroutines *g, struct go_target *t, uint64_t now_ns)
{
	struct looking k = {
		g, t, proc_table_live(g->procs, t->pid), now_ns, 0, 1, 0, NULL, false
	};
	struct file_of of = { g, t->module };
	struct go_places places = GO_PLACES(open_file, &of);
	const struct go_memory mem = { read_pieces, &t->pid };
	const struct go_tables tables = { go_places_find, &places };
	struct goroutines_stats st;
	struct go_file *file;
	uint64_t all;

	t->gone = !k.proc || !go_process_size(&t->process, &mem, &all);
	if (t->gone)
		return 0;
	while (all >> __builtin_ctzll((uint64_t)k.weight) > AT_ONCE)
		k.weight *= 2;
	k.stands_for_ns = now_ns - t->last_ns;
	t->looks++;
	for (struct use *u = g->uses; u; u = u->hh.next)
		if (u->pid == t->pid)
			u->is.now = 0;
	t->now = t->running = t->system = 0;
	HASH_FIND(hh, g->files, &t->module.ix, sizeof(t->module.ix), file);
	places.gave_up = file && file->gave_up;
	if (go_look(g->look, &t->process, &mem, &tables,
		    (uint32_t)__builtin_ctzll((uint64_t)k.weight), t->seed, on_goroutine, &k,
		    &st) == 0) {
		g->figures.looks++;
		g->figures.moved += st.moved;
		g->figures.unreadable += st.unreadable;
		if ((uint32_t)k.weight > g->figures.most_part)
			g->figures.most_part = (uint32_t)k.weight;
	}
	go_places_end(&places);
	if (file)
		file->gave_up = places.is_bad;
	free(k.tcp);
	forget_unseen(t);
	t->last_ns = now_ns;
	return GO_PLACES_NS - places.left_ns;
}

static uint64_t next_random(struct goroutines *g)
{
	g->random = g->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return g->random >> 33;
}

/* The one that has waited longest among those that are due. */
static struct go_target *due(struct goroutines *g, uint64_t now_ns, bool all)
{
	struct go_target *first = NULL;

	for (struct go_target *t = g->targets; t; t = t->hh.next)
		if (!t->gone && (all ? t->last_ns < now_ns : t->next_ns <= now_ns) &&
		    (!first || t->last_ns < first->last_ns))
			first = t;
	return first;
}

void goroutines_start(struct goroutines *g, uint64_t now_ns)
{
	for (struct go_target *t = g->targets; t; t = t->hh.next)
		t->last_ns = now_ns;
}

void goroutines_tick(struct goroutines *g, uint64_t now_ns, bool all)
{
	struct go_target *t;

	if (g->last_tick_ns)
		g->tokens_ns += (double)(now_ns - g->last_tick_ns) * GOROUTINES_SHARE;
	if (g->tokens_ns > TOKENS_MOST_NS)
		g->tokens_ns = TOKENS_MOST_NS;
	g->last_tick_ns = now_ns;
	while ((all || g->tokens_ns > 0) && (t = due(g, now_ns, all))) {
		uint64_t began = thread_cpu_ns(), took = look_at(g, t, now_ns);

		took += thread_cpu_ns() - began;
		g->figures.took_ns += took;
		g->tokens_ns -= (double)took;
		t->next_ns = now_ns + LOOK_LEAST_NS + next_random(g) % LOOK_VARIES_NS;
	}
}

/* --- the result --- */

uint32_t goroutines_n_uses(const struct goroutines *g)
{
	return HASH_COUNT(g->uses);
}

void goroutines_uses(const struct goroutines *g, struct goroutine_use *ret_uses)
{
	for (const struct use *u = g->uses; u; u = u->hh.next)
		*ret_uses++ = u->is;
}

struct goroutines_figures goroutines_figures(const struct goroutines *g)
{
	struct goroutines_figures f = g->figures;

	f.why = g->why;
	for (const struct go_target *t = g->targets; t; t = t->hh.next) {
		f.now += t->now;
		f.running += t->running;
		f.system += t->system;
	}
	return f;
}

struct goroutines *goroutines_new(struct dict *d, struct proc_table *procs)
{
	struct goroutines *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->dict = d;
	g->procs = procs;
	g->tokens_ns = TOKENS_MOST_NS;
	g->figures.most_part = 1;
	if (getrandom(&g->random, sizeof(g->random), GRND_NONBLOCK) < 0)
		g->random = now_ns();
	g->look = go_look_new();
	if (!g->look) {
		free(g);
		return NULL;
	}
	return g;
}

void goroutines_free(struct goroutines *g)
{
	struct go_file *f, *next_file;
	struct go_target *t, *next;

	if (!g)
		return;
	HASH_ITER (hh, g->targets, t, next)
		target_free(g, t);
	HASH_ITER (hh, g->files, f, next_file)
		go_program_free(f->program);
	hash_free(g->files);
	hash_free(g->uses);
	go_look_free(g->look);
	free(g);
}
