#include "collect/stream/inprocess.h"

#include "collect/session/unwind_maps.h"
#include "collect/stream/ingest_wire.h"
#include "collect/stream/thread_ids.h"
#include "collect/wire.h"
#include "lang/lang.h"
#include "preload/exact_area.h"
#include "proc/proc_seccomp.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE        4096ULL
#define ROOT        1
#define NODES       (1u << 19)
#define NODE_SLOTS  (1u << 20)
#define SITES       (1u << 17)
#define SITE_SLOTS  (1u << 18)
#define LINES_MIN   (1u << 12)
#define LINE_BYTES  sizeof(struct exact_line)
#define AHEAD       (1ULL << 20)  /* bytes of nodes and sites that are there before they are used */
#define TABLES_MORE (16ULL << 20) /* room for libraries that are loaded later, at least */
#define DEEPEST     16384         /* frames of one stack that are looked at */
/* A walk in the process may be reading what a set of tables was: it is not overwritten sooner. */
#define SET_GRACE_NS MS_POOL_GRACE_NS

struct inprocess {
	struct ingest *ingest;
	struct unwind_maps *maps; /* NULL: stacks are not walked */
	int langs_fd;             /* rows of runtimes of languages; only with `maps` */
	struct ms_lang_row lang;  /* this process's, as of the last look            */
	pid_t pid;
	struct ms_proc proc;
	struct exact_area *area; /* shared: the process may write to it */
	uint64_t bytes;
	struct exact_area is; /* as we have made it: places and room */
	/* Ours. */
	struct ms_alloc_site
		*sites; /* 2 × SITES: those in use are too few for any to be used again */
	struct alloc_table *table;
	uint8_t verdicts[SITES];           /* of their stacks */
	uint32_t n_sites;                  /* seen so far, with the root */
	uint64_t ready_nodes, ready_sites; /* bytes that are there */
	/* Tables. */
	uint64_t set_at[2], set_bytes;
	uint64_t signature, set_ns;
	uint32_t seq;
	uint32_t lang_gen;
	bool no_tables, filtered;
	uint32_t known_filters; /* of seccomp, that were there when it began */
	const char *
		unread; /* the image's language, whose frames the library does not read; NULL: none */
	struct thread_ids *tids; /* NULL: its numbers are ours */
};

static void *in_area(const struct inprocess *ip, uint64_t at)
{
	return (char *)ip->area + at;
}

/* --- unwind tables ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t a, uint64_t b)
{
	return (a ^ b) * 0x9e3779b97f4a7c15ULL + (a >> 29);
}

static const struct ms_span *spans_of(const struct publish_mem *mem, const struct ms_space *space)
{
	uint64_t end = space->spans + (uint64_t)space->n_spans * MS_SPAN_WORDS;

	return end <= mem->n_words ? (const void *)(mem->pool + space->spans) : NULL;
}

static uint32_t table_rows(const struct publish_mem *mem, const struct ms_table *t)
{
	uint64_t last = (uint64_t)t->dir + t->n_pages;

	return last < mem->n_words ? mem->pool[last] : 0;
}

static uint32_t n_rules(const struct publish_mem *mem)
{
	uint32_t n = mem->n_rules;

	while (n) {
		const struct ms_rule *r =
			(const void *)((const char *)mem->rules + (n - 1) * mem->rule_stride);

		if (r->kind || r->off || r->ra_off)
			break;
		n--;
	}
	return n;
}

/* What the process's tables are now, as a number; they are in use, as if walked in the kernel. */
static uint64_t look(struct publish_mem *mem, const struct ms_space *space, uint64_t now_ns)
{
	const struct ms_span *spans = spans_of(mem, space);
	uint64_t signature = mix(space->spans, space->n_spans) ^ space->as_gen;

	for (uint32_t i = 0; spans && i < space->n_spans; i++) {
		struct ms_table *t;

		signature = mix(signature, spans[i].start);
		if (spans[i].kind != MS_SPAN_TABLE || spans[i].table >= mem->n_tables)
			continue;
		t = &mem->tables[spans[i].table];
		t->used = (uint32_t)(now_ns / 1000000000);
		signature = mix(signature, (uint64_t)t->serial << 32 | t->n_pages);
	}
	return signature;
}

/* Units of pool words are those of spans, so that each begins where a span may. */
static uint64_t round_words(uint64_t n)
{
	return (n + MS_SPAN_WORDS - 1) & ~(uint64_t)(MS_SPAN_WORDS - 1);
}

/* The spans and all that they refer to, copied behind one another; `to` NULL: how much it is. */
static uint64_t copy_tables(const struct publish_mem *mem, const struct ms_space *space, char *to,
			    uint64_t at, struct exact_tables *ret_set)
{
	const struct ms_span *spans = spans_of(mem, space);
	uint32_t *map = calloc(mem->n_tables, sizeof(*map)), n_tables = 0, rules = n_rules(mem);
	uint64_t words = round_words((uint64_t)space->n_spans * MS_SPAN_WORDS), bytes, tables_at,
		 rules_at;
	struct ms_table *tables = NULL;
	struct ms_span *ours = (void *)to;

	if (!spans || !map) {
		free(map);
		return 0;
	}
	for (uint32_t i = 0; i < space->n_spans; i++) {
		uint32_t ix = spans[i].table;

		if (to)
			ours[i] = spans[i];
		if (spans[i].kind != MS_SPAN_TABLE || ix >= mem->n_tables)
			continue;
		if (!map[ix]) {
			const struct ms_table *t = &mem->tables[ix];
			uint64_t dir = t->n_pages ? t->n_pages + 1ULL : 0;
			uint64_t rows = t->n_pages ? table_rows(mem, t) : 0;
			struct ms_table *more = realloc(tables, (n_tables + 1) * sizeof(*tables));

			if (!more || t->dir + dir > mem->n_words || t->rows + rows > mem->n_words)
				break;
			tables = more;
			tables[n_tables] = *t;
			tables[n_tables].dir = (uint32_t)words;
			tables[n_tables].rows = (uint32_t)(words + dir);
			if (to) {
				memcpy(to + words * 4, mem->pool + t->dir, dir * 4);
				memcpy(to + (words + dir) * 4, mem->pool + t->rows, rows * 4);
			}
			words = round_words(words + dir + rows);
			map[ix] = ++n_tables;
		}
		if (to)
			ours[i].table = map[ix] - 1;
	}
	words = (words + MS_POOL_PAGE_WORDS - 1) & ~(uint64_t)(MS_POOL_PAGE_WORDS - 1);
	tables_at = words * 4;
	rules_at = tables_at + n_tables * sizeof(*tables);
	bytes = rules_at + rules * sizeof(struct ms_rule);
	if (to && n_tables)
		memcpy(to + tables_at, tables, n_tables * sizeof(*tables));
	for (uint32_t i = 0; to && i < rules; i++)
		memcpy(to + rules_at + i * sizeof(struct ms_rule),
		       (const char *)mem->rules + i * mem->rule_stride, sizeof(struct ms_rule));
	if (ret_set)
		*ret_set = (struct exact_tables){
			at, at + tables_at, at + rules_at, (uint32_t)words, n_tables, rules,
			0,  space->n_spans, space->as_gen
		};
	free(tables);
	free(map);
	return bytes;
}

static void put_tables(struct inprocess *ip, struct publish_mem *mem, const struct ms_space *space,
		       uint64_t signature, uint64_t now_ns)
{
	uint32_t next = ip->seq + 1 ? ip->seq + 1 : 2;
	uint64_t at = ip->set_at[next & 1];

	ip->signature = signature;
	ip->set_ns = now_ns;
	if (copy_tables(mem, space, NULL, 0, NULL) > ip->set_bytes) {
		ip->no_tables = true;
		return;
	}
	copy_tables(mem, space, in_area(ip, at), at, &ip->area->sets[next & 1]);
	ip->area->sets[next & 1].lang = ip->lang;
	ip->area->sets[next & 1].lang_gen = ip->lang_gen;
	__atomic_store_n(&ip->area->tables_seq, next, __ATOMIC_RELEASE);
	ip->seq = next;
}

/* The image's own; another one's are of no use. */
static bool space_now(const struct inprocess *ip, struct ms_space *ret_space)
{
	return unwind_maps_space(ip->maps, ip->pid, ret_space) &&
	       (!ip->proc.tgid || (ret_space->start_ns == ip->proc.start_ns &&
				   ret_space->exec_id == ip->proc.exec_id));
}

/* The runtime of the image's language, as the kernel's walker has it. Of CPython alone: where others are, the library sees
 * native frames. */
static void lang_look(struct inprocess *ip, const struct ms_space *space)
{
	struct ms_lang_row row;
	uint32_t key = (uint32_t)ip->pid;

	if (bpf_map_lookup_elem(ip->langs_fd, &key, &row) < 0 || row.start_ns != space->start_ns ||
	    row.exec_id != space->exec_id)
		memset(&row, 0, sizeof(row));
	if (row.lang && row.lang != MS_LANG_PYTHON) {
		ip->unread = lang_title((enum ms_lang)row.lang);
		memset(&row, 0, sizeof(row));
	}
	if (!memcmp(&row, &ip->lang, sizeof(row)))
		return;
	ip->lang = row;
	ip->lang_gen++;
}

static void tables_tick(struct inprocess *ip, uint64_t now_ns)
{
	struct publish_mem mem = unwind_maps_mem(ip->maps);
	struct ms_space space;
	uint64_t signature;

	if (!space_now(ip, &space))
		return;
	lang_look(ip, &space);
	signature = mix(look(&mem, &space, now_ns), ip->lang_gen);
	if (signature != ip->signature && now_ns - ip->set_ns >= SET_GRACE_NS)
		put_tables(ip, &mem, &space, signature, now_ns);
}

/* --- the area ----------------------------------------------------------------------------------- */

/* There before the process touches it: it is then memory of ours, and costs it no fault. */
static void populate(const struct inprocess *ip, uint64_t at, uint64_t bytes)
{
	uint64_t from = at & ~(PAGE - 1), to = (at + bytes + PAGE - 1) & ~(PAGE - 1);

	madvise(in_area(ip, from), to - from, MADV_POPULATE_WRITE);
}

static void populate_ahead(struct inprocess *ip)
{
	uint32_t used_nodes = __atomic_load_n(&ip->area->used_nodes, __ATOMIC_RELAXED);
	uint32_t used_sites = __atomic_load_n(&ip->area->used_sites, __ATOMIC_RELAXED);
	uint64_t nodes, sites;

	used_nodes = used_nodes > NODES ? NODES : used_nodes;
	used_sites = used_sites > SITES ? SITES : used_sites;
	nodes = used_nodes * sizeof(struct exact_node) + AHEAD;
	sites = used_sites * sizeof(struct ms_alloc_site) + AHEAD;
	nodes = nodes > NODES * sizeof(struct exact_node) ? NODES * sizeof(struct exact_node)
							  : nodes;
	sites = sites > SITES * sizeof(struct ms_alloc_site) ? SITES * sizeof(struct ms_alloc_site)
							     : sites;
	if (nodes >= ip->ready_nodes + AHEAD / 2) {
		populate(ip, ip->is.nodes + ip->ready_nodes, nodes - ip->ready_nodes);
		ip->ready_nodes = nodes;
	}
	if (sites >= ip->ready_sites + AHEAD / 2) {
		populate(ip, ip->is.sites + ip->ready_sites, sites - ip->ready_sites);
		ip->ready_sites = sites;
	}
}

static uint64_t place(uint64_t *end, uint64_t bytes)
{
	uint64_t at = *end;

	*end = (at + bytes + PAGE - 1) & ~(PAGE - 1);
	return at;
}

static void lay_out(struct inprocess *ip, uint64_t budget, uint64_t tables)
{
	uint64_t end = (sizeof(struct exact_area) + PAGE - 1) & ~(PAGE - 1);
	struct exact_area *a = &ip->is;

	a->n_lines = LINES_MIN;
	while (a->n_lines < 1u << 26 && 2ULL * a->n_lines * LINE_BYTES <= budget)
		a->n_lines *= 2;
	a->n_nodes = NODES;
	a->n_node_slots = NODE_SLOTS;
	a->n_sites = SITES;
	a->n_site_slots = SITE_SLOTS;
	a->node_slots = place(&end, NODE_SLOTS * sizeof(uint32_t));
	a->site_slots = place(&end, SITE_SLOTS * sizeof(uint32_t));
	a->lines = place(&end, a->n_lines * sizeof(struct exact_line));
	a->nodes = place(&end, NODES * sizeof(struct exact_node));
	a->sites = place(&end, SITES * sizeof(struct ms_alloc_site));
	ip->set_bytes = 2 * tables + TABLES_MORE;
	ip->set_at[0] = place(&end, ip->set_bytes);
	ip->set_at[1] = place(&end, ip->set_bytes);
	a->magic = EXACT_MAGIC;
	a->bytes = ip->bytes = end;
	a->used_nodes = 1; /* node 0 is nobody */
	a->used_sites = ROOT + 1;
}

static int make_area(struct inprocess *ip, int fd, struct err *e)
{
	struct stat st;
	void *at;

	if (ftruncate(fd, (off_t)ip->bytes) < 0)
		return err_set(e, -errno, "no memory to share with process %d: %s", (int)ip->pid,
			       strerror(errno));
	/* Who could cut it short could end us. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_set(e, -errno,
			       "the memory to share with process %d cannot be sealed: %s",
			       (int)ip->pid, strerror(errno));
	/* It may have been cut before that. */
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != ip->bytes)
		return err_set(e, -EBADF, "the memory to share with process %d has another size",
			       (int)ip->pid);
	at = mmap(NULL, ip->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return err_set(e, -errno, "no memory to share with process %d: %s", (int)ip->pid,
			       strerror(errno));
	ip->area = at;
	populate(ip, 0, ip->is.nodes);
	*ip->area = ip->is;
	populate_ahead(ip);
	return 0;
}

static bool same_namespace(pid_t pid)
{
	struct stat a, b;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &a) == 0 && stat("/proc/self/ns/pid", &b) == 0 && a.st_ino == b.st_ino;
}

int inprocess_new(struct session *s, struct ingest *in, pid_t pid, int area_fd, uint64_t bytes,
		  const struct alloc_table_fns *fns, struct inprocess **ret_ip, struct err *e)
{
	/* Not calloc(): the area's copy in it wants its alignment. */
	_cleanup_(inprocess_freep) struct inprocess *ip =
		aligned_alloc(_Alignof(struct inprocess), sizeof(*ip));
	struct publish_mem mem = { 0 };
	struct ms_space space = { 0 };
	int r;

	if (!ip)
		return err_set(e, -ENOMEM, "out of memory");
	memset(ip, 0, sizeof(*ip));
	ip->ingest = in;
	ip->pid = pid;
	ip->known_filters = proc_seccomp_least(pid);
	if (s) {
		r = unwind_maps_open(s, &ip->maps, e);
		if (r < 0)
			return r;
		mem = unwind_maps_mem(ip->maps);
	}
	if (s && !space_now(ip, &space))
		return err_set(e, -EAGAIN, "process %d has no unwind tables", (int)pid);
	if (s) {
		ip->langs_fd = session_map_fd(s, SESSION_LANGS);
		lang_look(ip, &space);
	}
	ip->proc = (struct ms_proc){ space.start_ns, (uint32_t)pid, space.exec_id };
	if (!same_namespace(pid)) {
		ip->tids = thread_ids_new("/proc", pid);
		if (!ip->tids)
			return err_set(e, -ENOMEM, "out of memory");
	}
	ip->n_sites = ROOT;
	lay_out(ip, bytes, s ? copy_tables(&mem, &space, NULL, 0, NULL) : 0);
	r = make_area(ip, area_fd, e);
	if (r < 0)
		return r;
	ip->sites = mmap(NULL, 2 * SITES * sizeof(*ip->sites), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ip->sites == MAP_FAILED)
		ip->sites = NULL;
	ip->table = ip->sites ? alloc_table_over(ip->sites, 2 * SITES, fns) : NULL;
	if (!ip->table)
		return err_set(e, -ENOMEM, "out of memory");
	if (s)
		put_tables(ip, &mem, &space, mix(look(&mem, &space, 0), ip->lang_gen), 0);
	*ret_ip = TAKE_PTR(ip);
	return 0;
}

void inprocess_free(struct inprocess *ip)
{
	if (!ip)
		return;
	alloc_table_close(ip->table);
	unwind_maps_close(ip->maps);
	thread_ids_free(ip->tids);
	if (ip->sites)
		munmap(ip->sites, 2 * SITES * sizeof(*ip->sites));
	if (ip->area) {
		/* Where a thread was in the middle of a call, the process has it mapped for good. */
		madvise(in_area(ip, ip->is.node_slots), ip->bytes - ip->is.node_slots, MADV_REMOVE);
		munmap(ip->area, ip->bytes);
	}
	free(ip);
}

void inprocess_gate(struct inprocess *ip, bool open)
{
	__atomic_store_n(&ip->area->on, open, __ATOMIC_SEQ_CST);
}

/*
 * What a filter does to a system call that it does not expect is not known: it may end the process. Those that were
 * there when the library came are known (inject/filter.h).
 */
void inprocess_tick(struct inprocess *ip, uint64_t now_ns)
{
	uint32_t filters = 0;
	int mode = ip->filtered ? 0 : proc_seccomp(ip->pid, ip->pid, &filters);

	if (mode == SECCOMP_MODE_STRICT || filters > ip->known_filters) {
		ip->filtered = true;
		__atomic_store_n(&ip->area->no_syscalls, 1, __ATOMIC_RELAXED);
	}
	if (mode == SECCOMP_MODE_STRICT)
		inprocess_gate(ip, false); /* not even the clock may be read */
	if (ip->maps)
		tables_tick(ip, now_ns);
	populate_ahead(ip);
}

/* --- stacks ------------------------------------------------------------------------------------- */

/* The stack of a leaf is new to us: it is handed on. false: there is no such stack. */
static int stack_take(struct inprocess *ip, uint64_t leaf, struct ms_hash *ret_hash,
		      uint32_t *ret_as_gen, uint8_t *ret_verdict)
{
	static uint64_t frames[MS_MAX_FRAMES];
	const struct exact_node *nodes = in_area(ip, ip->is.nodes);
	struct ms_stack_rec rec = { .kind = MS_EV_STACK, .flags = MS_STACK_AT_ENTRY };
	struct ms_hash hash = { ip->proc.start_ns, ip->proc.tgid };
	uint32_t n = 0, at = (uint32_t)leaf, left = DEEPEST;
	bool cut = false;

	*ret_as_gen = 0;
	for (; at && at < NODES && left; left--) {
		struct exact_node node = nodes[at];

		if ((node.pc & EXACT_GENERATION) == EXACT_GENERATION) {
			*ret_as_gen = (uint32_t)node.pc;
			break;
		}
		if (!n) {
			rec.verdict = node.pc >> EXACT_VERDICT_SHIFT & 0xff;
			node.pc &= EXACT_LEAF_ADDR_MASK;
		}
		cut |= n == MS_MAX_FRAMES;
		if (n < MS_MAX_FRAMES)
			frames[n++] = node.pc;
		at = node.caller;
	}
	if (rec.verdict >= MS_N_VERDICTS)
		rec.verdict = MS_LOST;
	if (cut)
		rec.verdict = MS_TRUNCATED;
	for (uint32_t i = 0; i < n; i++)
		ms_hash_step(&hash, frames[i]);
	ms_hash_end(&hash, n);
	rec.hash = *ret_hash = hash;
	rec.n_frames = (uint16_t)n;
	*ret_verdict = rec.verdict;
	return ingest_stack(ip->ingest, &rec, frames);
}

/* --- threads ------------------------------------------------------------------------------------ */

/* A thread's number here: in a container it knows another. */
static uint32_t tid_here(struct inprocess *ip, uint32_t there)
{
	return ip->tids ? thread_ids_here(ip->tids, there) : there;
}

/* --- sites -------------------------------------------------------------------------------------- */

static uint64_t now(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* In the order in which alloc_table.c reads: a free is not counted before its allocation. */
static void copy_counts(struct ms_alloc_site *to, const struct ms_alloc_site *from)
{
	for (int i = 0; i < MS_LIFE_CLASSES; i++)
		to->lives[i] = now(&from->lives[i]);
	to->temporary = now(&from->temporary);
	to->life_ns = now(&from->life_ns);
	to->cross_frees = now(&from->cross_frees);
	to->cross_bytes = now(&from->cross_bytes);
	to->frees = now(&from->frees);
	to->freed_bytes = now(&from->freed_bytes);
	to->untracked = now(&from->untracked);
	to->untracked_bytes = now(&from->untracked_bytes);
	to->peaks_seen = now(&from->peaks_seen);
	to->peak_objects = now(&from->peak_objects);
	to->peak_bytes = now(&from->peak_bytes);
	to->allocs = now(&from->allocs);
	to->bytes = now(&from->bytes);
}

static void copy_root(struct inprocess *ip)
{
	const struct ms_alloc_site *from = (struct ms_alloc_site *)in_area(ip, ip->is.sites) + ROOT;
	struct ms_alloc_site *to = &ip->sites[ROOT];

	copy_counts(to, from);
	to->live = (int64_t)now((const __u64 *)&from->live);
	to->highest_ns = now(&from->highest_ns);
	to->highest = (int64_t)now((const __u64 *)&from->highest);
	to->peaks = now(&from->peaks);
	to->root = ROOT;
	to->key.user = MS_ROOT_STACK;
	to->key.proc = ip->proc;
}

/* Its key, once: the last word that the library writes is the stack's. */
static int meet(struct inprocess *ip, struct ms_alloc_site *to, const struct ms_alloc_site *from)
{
	uint64_t leaf = now(&from->key.user.lo);
	int r;

	if (!leaf)
		return 0;
	r = stack_take(ip, leaf, &to->key.user, &to->key.as_gen, &ip->verdicts[to - ip->sites]);
	if (r < 0)
		return r;
	to->key.tid = tid_here(ip, from->key.tid);
	to->root = ROOT;
	to->key.proc = ip->proc;
	return 0;
}

static int refresh(struct inprocess *ip)
{
	const struct ms_alloc_site *from = in_area(ip, ip->is.sites);
	uint32_t used = __atomic_load_n(&ip->area->used_sites, __ATOMIC_ACQUIRE);
	int r = 0;

	copy_root(ip);
	if (ip->tids)
		thread_ids_refresh(ip->tids);
	used = used > SITES ? SITES : used;
	for (uint32_t i = ROOT + 1; i < used && r == 0; i++) {
		if (!ip->sites[i].root)
			r = meet(ip, &ip->sites[i], &from[i]);
		if (ip->sites[i].root)
			copy_counts(&ip->sites[i], &from[i]);
	}
	/* What the process says may become less; what was met stays. */
	ip->n_sites = used > ip->n_sites ? used : ip->n_sites;
	return r;
}

int inprocess_read(struct inprocess *ip)
{
	int r = refresh(ip);

	return r < 0 ? r : alloc_table_read(ip->table);
}

void inprocess_blocks(const struct inprocess *ip, inprocess_block_fn fn, void *ctx)
{
	const struct exact_line *lines = in_area(ip, ip->is.lines);
	struct drain_block block = { .proc = wire_id(&ip->proc) };

	for (uint32_t at = 0; at < ip->is.n_lines; at++)
		for (uint32_t i = 0; i < EXACT_WAYS; i++) {
			struct exact_block b = lines[at].value[i];

			block.addr = now(&lines[at].key[i]);
			block.size = b.size;
			block.born_ns = b.born_ns;
			block.site = b.site;
			if (block.addr && !(block.addr & EXACT_TAKEN))
				fn(ctx, &block);
		}
}

const struct site_key *inprocess_site(const struct inprocess *ip, uint32_t site,
				      const struct proc_id *proc)
{
	return alloc_table_key(ip->table, site, proc);
}

struct finished {
	struct inprocess *ip;
	int (*block)(void *ctx, const struct site_key *site, uint64_t size, uint64_t born_ns);
	void *ctx;
	int r;
};

static void finish_block(void *ctx, const struct drain_block *b)
{
	struct finished *f = ctx;
	const struct site_key *site = f->r == 0 ? inprocess_site(f->ip, b->site, &b->proc) : NULL;

	if (site)
		f->r = f->block(f->ctx, site, b->size, b->born_ns);
}

int inprocess_finish(struct inprocess *ip,
		     int (*block)(void *ctx, const struct site_key *site, uint64_t size,
				  uint64_t born_ns),
		     void *ctx)
{
	struct finished f = { ip, block, ctx, refresh(ip) };

	if (f.r == 0)
		f.r = alloc_table_finish(ip->table, ip->n_sites);
	if (f.r == 0)
		inprocess_blocks(ip, finish_block, &f);
	return f.r;
}

void inprocess_stats(const struct inprocess *ip, struct inprocess_stats *ret_stats)
{
	const __u64 *counts = ip->area->counts;
	struct inprocess_stats s = {
		.failed = now(&counts[EXACT_FAILED]),
		.unknown_frees = now(&counts[EXACT_UNKNOWN]),
		.reused = now(&counts[EXACT_REUSED]),
		.full = now(&counts[EXACT_FULL]),
		.full_bytes = now(&counts[EXACT_FULL_BYTES]),
		.sites_full = now(&counts[EXACT_SITES_FULL]),
		.missed = now(&counts[EXACT_REENTERED]) + now(&counts[EXACT_LEFT]) +
			  now(&counts[EXACT_NO_THREAD]),
		.timed = now(&counts[EXACT_TIMED]),
		.timed_ns = now(&counts[EXACT_TIMED_NS]),
		.room = ip->is.n_lines * EXACT_WAYS,
		.no_tables = ip->no_tables,
		.filtered = ip->filtered,
		.unread = ip->unread,
	};

	for (uint32_t i = ROOT; i < ip->n_sites; i++) {
		s.verdicts[i == ROOT ? MS_LOST : ip->verdicts[i]] += ip->sites[i].allocs;
		s.calls += ip->sites[i].allocs + ip->sites[i].frees + ip->sites[i].cross_frees;
	}
	for (uint32_t i = 0; i < 16; i++)
		for (uint32_t j = 0; j < ALLOC_SIZES; j++)
			s.sizes[j] += now(&ip->area->sizes[i][j]);
	*ret_stats = s;
}
