#include "world.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { POOL_WORDS = 64 << 20, TABLES = 4096, RULES = 1 << 18 };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static int sink_put(void *ctx, uint32_t pid, const struct ms_space *space)
{
	return 0;
}

static void sink_drop(void *ctx, uint32_t pid)
{
}

static void *zeroes(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int world_init(struct world *w, struct err *e)
{
	static const struct space_sink sink = { .put = sink_put, .drop = sink_drop };

	w->mem = (struct publish_mem){
		.pool = zeroes(POOL_WORDS * 4ULL),
		.n_words = POOL_WORDS,
		.tables = zeroes(TABLES * sizeof(struct ms_table)),
		.n_tables = TABLES,
		.rules = zeroes(RULES * 48ULL),
		.n_rules = RULES,
		.rule_stride = 48,
	};
	if (!w->mem.pool || !w->mem.tables || !w->mem.rules)
		return err_set(e, -ENOMEM, "out of memory for unwind tables");
	return publish_new(&w->mem, &sink, &w->publish, e);
}

static void image_free(struct image *i)
{
	unwind_table_free(i->table);
	elf_file_close(i->elf);
	closep(&i->fd);
	free(i->name);
	free(i);
}

void world_fini(struct world *w)
{
	struct image *i, *next_i;
	struct process *p, *next_p;

	HASH_ITER (hh, w->processes, p, next_p) {
		HASH_DEL(w->processes, p);
		if (p->other)
			w->drop_other(p->other);
		free(p->maps);
		free(p);
	}
	HASH_ITER (hh, w->images, i, next_i) {
		HASH_DEL(w->images, i);
		image_free(i);
	}
	publish_free(w->publish);
	munmap(w->mem.pool, POOL_WORDS * 4ULL);
	munmap(w->mem.tables, TABLES * sizeof(struct ms_table));
	munmap(w->mem.rules, RULES * 48ULL);
}

/* The kernel's image of the vDSO, the same in every process, as a file. */
static int vdso_fd(void)
{
	const uint8_t *at = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *h = (const void *)at;
	size_t len;
	int fd;

	if (!at)
		return -1;
	len = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, at, len) != (ssize_t)len) {
		close(fd);
		return -1;
	}
	return fd;
}

static void image_load(struct world *w, struct image *i)
{
	struct publish_key key = { 0 };
	uint64_t begin_ns = now_ns();
	size_t len = strlen(i->name);
	struct err e = { 0 };

	i->fd = !strcmp(i->name, "[vdso]") ? vdso_fd() : open(i->name, O_RDONLY | O_CLOEXEC);
	if (i->fd < 0 || elf_file_open(i->fd, i->name, &i->elf, &e) < 0)
		return;
	if (unwind_table_build(i->elf, &i->table, &e) < 0) {
		fprintf(stderr, "# %s\n", e.msg);
		return;
	}
	i->build_ns = now_ns() - begin_ns;
	key.len = (uint32_t)(len < PUBLISH_KEY_MAX ? len : PUBLISH_KEY_MAX);
	memcpy(key.bytes, i->name + len - key.len, key.len);
	if (publish_table(w->publish, &key, now_ns(), &i->table_ix) < 0 ||
	    publish_table_put(w->publish, i->table_ix, i->table, true, now_ns(), &e) < 0) {
		fprintf(stderr, "# %s: %s\n", i->name, e.msg);
		unwind_table_free(i->table);
		i->table = NULL;
	}
}

static struct image *image_get(struct world *w, const char *name)
{
	struct image *i;

	HASH_FIND_STR(w->images, name, i);
	if (i)
		return i;
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	i->fd = -1;
	i->name = strdup(name);
	if (!i->name) {
		free(i);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, w->images, i->name, strlen(i->name), i);
	if (!hash_added(i)) {
		image_free(i);
		return NULL;
	}
	image_load(w, i);
	return i;
}

struct process *world_process(struct world *w, uint32_t pid)
{
	struct process *p;

	HASH_FIND(hh, w->processes, &pid, sizeof(pid), p);
	return p;
}

static struct process *process_get(struct world *w, uint32_t pid)
{
	struct process *p = world_process(w, pid);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->gen = 1;
	HASH_ADD(hh, w->processes, pid, sizeof(p->pid), p);
	if (hash_added(p))
		return p;
	free(p);
	return NULL;
}

/* Takes [start, end) out of all mappings. */
static int maps_cut(struct process *p, uint64_t start, uint64_t end)
{
	if (p->n + 2 > p->cap) {
		uint32_t cap = p->cap ? 2 * p->cap : 64;
		void *maps = realloc(p->maps, cap * sizeof(*p->maps));

		if (!maps)
			return -ENOMEM;
		p->maps = maps;
		p->cap = cap;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		struct mapping *m = &p->maps[i];

		if (m->end <= start || m->start >= end)
			continue;
		if (m->start < start && m->end > end) {
			p->maps[p->n] = *m;
			p->maps[p->n++].start = end;
			m->end = start;
		} else if (m->start < start) {
			m->end = start;
		} else if (m->end > end) {
			m->start = end;
		} else {
			*m = p->maps[--p->n];
			i--;
		}
	}
	return 0;
}

/* By the executable segment: the page on which it begins in the file may be another's, too (lld). */
static uint64_t bias_of(struct elf_file *elf, const struct mapping *m, uint64_t off)
{
	const struct elf_segment *segs;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n; i++)
		if (segs[i].flags & PF_X && segs[i].off < off + (m->end - m->start) &&
		    segs[i].off + segs[i].filesz > off)
			return m->start - off + segs[i].off - segs[i].vaddr;
	return 0;
}

static int take_mmap(struct world *w, const struct mmap2_rec *r)
{
	struct process *p = process_get(w, r->pid);
	struct mapping m = { .start = r->addr, .end = r->addr + r->len };
	int err;

	if (!p)
		return -ENOMEM;
	err = maps_cut(p, m.start, m.end);
	if (err < 0)
		return err;
	p->gen++;
	if (!(r->prot & PROT_EXEC))
		return 0;
	if (r->file[0] == '/' ? strncmp(r->file, "//", 2) != 0 : !strcmp(r->file, "[vdso]")) {
		m.image = image_get(w, r->file);
		if (!m.image)
			return -ENOMEM;
		if (m.image->elf)
			m.bias = bias_of(m.image->elf, &m, r->pgoff);
	}
	p->maps[p->n++] = m;
	return 0;
}

static int take_fork(struct world *w, const struct task_rec *r)
{
	struct process *from = world_process(w, r->ppid), *p;

	if (r->pid == r->ppid || !from)
		return 0;
	p = process_get(w, r->pid);
	if (!p)
		return -ENOMEM;
	free(p->maps);
	p->gen++;
	p->n = p->cap = 0;
	p->maps = calloc(from->n + 2, sizeof(*p->maps));
	if (!p->maps)
		return -ENOMEM;
	p->n = from->n;
	p->cap = from->n + 2;
	if (from->n)
		memcpy(p->maps, from->maps, from->n * sizeof(*p->maps));
	return 0;
}

int world_take(struct world *w, const struct perf_event_header *h)
{
	struct process *p;

	switch (h->type) {
	case PERF_RECORD_MMAP2:
		return take_mmap(w, (const void *)h);
	case PERF_RECORD_FORK:
		return take_fork(w, (const void *)h);
	case PERF_RECORD_COMM:
		if (!(h->misc & PERF_RECORD_MISC_COMM_EXEC))
			return 0;
		p = process_get(w, ((const struct comm_rec *)h)->pid);
		if (!p)
			return -ENOMEM;
		p->n = 0;
		p->gen++;
		return 0;
	}
	return 0;
}

int world_space(struct world *w, struct process *p, struct ms_space *ret_space, struct err *e)
{
	struct ms_proc proc = { .tgid = p->pid, .start_ns = 1 };
	struct ms_span *spans;
	int r;

	if (p->published != p->gen) {
		spans = calloc(p->n + 1, sizeof(*spans));
		if (!spans)
			return err_set(e, -ENOMEM, "out of memory");
		for (uint32_t i = 0; i < p->n; i++) {
			const struct mapping *m = &p->maps[i];
			bool rows = m->image && m->image->table;

			spans[i] = (struct ms_span){
				.start = m->start,
				.end = m->end,
				.bias = m->bias,
				.table = rows ? m->image->table_ix : 0,
				.kind = rows ? MS_SPAN_TABLE : MS_SPAN_GUESS,
			};
		}
		r = publish_space_put(w->publish, &proc, p->gen, spans, p->n, false, now_ns());
		free(spans);
		if (r < 0)
			return err_set(e, r, "no room for the spans of a process");
		p->published = p->gen;
		publish_tick(w->publish, now_ns());
	}
	if (!publish_space(w->publish, &proc, ret_space))
		return err_set(e, -ENOENT, "the spans of a process are not there");
	return 0;
}

const struct mapping *process_at(const struct process *p, uint64_t addr)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (addr >= p->maps[i].start && addr < p->maps[i].end)
			return &p->maps[i];
	return NULL;
}
