/*
 * Memory that a process shares with memscope and may write to as it likes while it is read: words of the input are put into the area's
 * head, sites, nodes and blocks, and read in between. The reader ends, and hands on no block that the area does not have, nor one
 * without a site.
 *
 *   input:  { where:1  index:1  offset:1  word:8 } …   where, modulo 6: head, sites, nodes, lines, counts; 5: read now
 */
#include "collect/stream/inprocess.h"
#include "preload/exact_area.h"

#include "base/bytes.h"
#include "collect/session/unwind_maps.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct process {
	struct dict *dict;
	struct proc_table *procs;
	struct ingest *ingest;
	struct inprocess *ip;
	struct exact_area *area;
	uint64_t bytes, blocks;
	int fd;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* There is no session: what would ask it is never called. */
int unwind_maps_open(struct session *s, struct unwind_maps **ret_maps, struct err *e)
{
	(void)s;
	(void)ret_maps;
	(void)e;
	abort();
}

struct publish_mem unwind_maps_mem(const struct unwind_maps *m)
{
	(void)m;
	abort();
}

void unwind_maps_close(struct unwind_maps *m)
{
	if (m)
		abort();
}

bool unwind_maps_space(const struct unwind_maps *m, pid_t pid, struct ms_space *ret_space)
{
	(void)m;
	(void)pid;
	(void)ret_space;
	abort();
}

uint32_t session_map_max(const struct session *s, enum session_map m)
{
	(void)s;
	(void)m;
	abort();
}

int session_map_fd(const struct session *s, enum session_map m)
{
	(void)s;
	(void)m;
	abort();
}

static int on_site(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values,
		   int64_t untracked, int64_t untracked_bytes, bool lost)
{
	(void)ctx;
	(void)key;
	(void)cgroup_id;
	(void)values;
	(void)untracked;
	(void)untracked_bytes;
	(void)lost;
	return 0;
}

static int on_end(void *ctx, const struct site_key *key, uint64_t cgroup_id, const int64_t *values)
{
	(void)ctx;
	(void)key;
	(void)cgroup_id;
	(void)values;
	return 0;
}

static void on_image(void *ctx, const struct table_image *image)
{
	(void)ctx;
	(void)image;
}

static bool is_gone(void *ctx, const struct proc_id *proc)
{
	(void)ctx;
	(void)proc;
	return false;
}

static int on_block(void *ctx, const struct site_key *site, uint64_t size, uint64_t born_ns)
{
	struct process *p = ctx;

	(void)size;
	(void)born_ns;
	if (!site)
		abort();
	p->blocks++;
	return 0;
}

static void process_begin(struct process *p)
{
	const struct alloc_table_fns fns = { on_site, on_end, on_image, is_gone, p };
	const struct ingest_profiles none = { .alloc = NULL };
	struct err e = { 0 };

	p->dict = dict_new();
	p->procs = proc_table_new(p->dict);
	p->ingest = ingest_new(p->dict, p->procs, &none, 0);
	p->fd = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (inprocess_new(NULL, p->ingest, getpid(), p->fd, 1 << 20, &fns, &p->ip, &e) < 0)
		abort();
	p->bytes = (uint64_t)lseek(p->fd, 0, SEEK_END);
	p->area =
		mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, p->fd, 0);
	if (p->area == MAP_FAILED)
		abort();
}

static void process_end(struct process *p)
{
	inprocess_free(p->ip);
	ingest_free(p->ingest);
	proc_table_free(p->procs);
	dict_free(p->dict);
	munmap(p->area, p->bytes);
	close(p->fd);
}

/* Places as memscope laid them out: the process may have written others into the head. */
static void put_words(struct process *p, const struct exact_area *is, struct bytes in)
{
	static const size_t sizes[] = { 64, sizeof(struct ms_alloc_site), sizeof(struct exact_node),
					sizeof(struct exact_line), 8 };
	const uint64_t places[] = { 0, is->sites, is->nodes, is->lines,
				    offsetof(struct exact_area, used_nodes) };
	uint8_t where, index, off;
	uint64_t word;

	while (bytes_u8(&in, &where) == 0 && bytes_u8(&in, &index) == 0 &&
	       bytes_u8(&in, &off) == 0 && bytes_u64(&in, &word) == 0) {
		where %= 6;
		if (where == 5) {
			inprocess_tick(p->ip, word);
			if (inprocess_read(p->ip) < 0)
				abort();
			continue;
		}
		*(uint64_t *)((char *)p->area + places[where] + index * sizes[where] +
			      off % (sizes[where] / 8) * 8) = word;
	}
}

static uint64_t taken_blocks(const struct process *p, const struct exact_area *is)
{
	const struct exact_line *lines = (void *)((char *)p->area + is->lines);
	uint64_t n = 0;

	/* index:1 reaches no further. */
	for (int at = 0; at < 256; at++)
		for (int i = 0; i < EXACT_WAYS; i++)
			n += lines[at].key[i] && !(lines[at].key[i] & EXACT_TAKEN);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct inprocess_stats stats;
	struct process p = { 0 };
	struct exact_area is;

	process_begin(&p);
	is = *p.area;
	put_words(&p, &is, bytes_of(data, size));
	if (inprocess_finish(p.ip, on_block, &p) < 0 || p.blocks > taken_blocks(&p, &is))
		abort();
	inprocess_stats(p.ip, &stats);
	if (stats.room != is.n_lines * EXACT_WAYS)
		abort();
	process_end(&p);
	return 0;
}
