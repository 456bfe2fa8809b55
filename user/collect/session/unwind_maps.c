#include "collect/session/unwind_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { POOL, TABLES, RULES, N_AREAS };

struct unwind_maps {
	struct session *session;
	int spaces_fd;
	struct area {
		void *at;
		size_t len;
		uint32_t n;    /* elements               */
		size_t stride; /* bytes from one to next */
	} areas[N_AREAS];
};

/* An array's elements lie one behind the other, each rounded up to 8 bytes. */
static int map_area(const struct session *s, enum session_map map, size_t elem_size,
		    struct area *ret_area)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct area a = { .n = session_map_max(s, map), .stride = (elem_size + 7) & ~(size_t)7 };

	a.len = (a.n * a.stride + page - 1) & ~(page - 1);
	a.at = mmap(NULL, a.len, PROT_READ | PROT_WRITE, MAP_SHARED, session_map_fd(s, map), 0);
	if (a.at == MAP_FAILED)
		return -errno;
	*ret_area = a;
	return 0;
}

int unwind_maps_open(struct session *s, struct unwind_maps **ret_maps, struct err *e)
{
	_cleanup_(unwind_maps_closep) struct unwind_maps *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return err_set(e, -ENOMEM, "out of memory for unwind tables");
	m->session = s;
	m->spaces_fd = session_map_fd(s, SESSION_SPACES);
	r = map_area(s, SESSION_UNWIND_POOL, sizeof(struct ms_pool_page), &m->areas[POOL]);
	if (r == 0)
		r = map_area(s, SESSION_UNWIND_TABLES, sizeof(struct ms_table), &m->areas[TABLES]);
	if (r == 0)
		r = map_area(s, SESSION_UNWIND_RULES, sizeof(struct ms_rule), &m->areas[RULES]);
	if (r < 0)
		return err_set(e, r, "cannot map the unwind tables: %s", strerror(-r));
	*ret_maps = TAKE_PTR(m);
	return 0;
}

void unwind_maps_close(struct unwind_maps *m)
{
	for (int i = 0; m && i < N_AREAS; i++)
		if (m->areas[i].at)
			munmap(m->areas[i].at, m->areas[i].len);
	free(m);
}

struct publish_mem unwind_maps_mem(const struct unwind_maps *m)
{
	return (struct publish_mem){
		.pool = m->areas[POOL].at,
		.n_words = m->areas[POOL].n * MS_POOL_PAGE_WORDS,
		.tables = m->areas[TABLES].at,
		.n_tables = m->areas[TABLES].n,
		.rules = m->areas[RULES].at,
		.n_rules = m->areas[RULES].n,
		.rule_stride = m->areas[RULES].stride,
	};
}

static int put_space(void *ctx, uint32_t pid, const struct ms_space *space)
{
	const struct unwind_maps *m = ctx;
	struct timespec now;

	/* Words of the pool may be used again: what was walked by what they said is not cached now. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	session_clock(m->session, (uint64_t)now.tv_sec * 1000000000);
	return bpf_map_update_elem(m->spaces_fd, &pid, space, BPF_ANY) < 0 ? -errno : 0;
}

static void drop_space(void *ctx, uint32_t pid)
{
	const struct unwind_maps *m = ctx;

	bpf_map_delete_elem(m->spaces_fd, &pid);
}

struct space_sink unwind_maps_sink(struct unwind_maps *m)
{
	return (struct space_sink){ put_space, drop_space, m };
}

bool unwind_maps_space(const struct unwind_maps *m, pid_t pid, struct ms_space *ret_space)
{
	struct ms_space space;
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(m->spaces_fd, &key, &space) < 0)
		return false;
	*ret_space = space;
	return true;
}

uint32_t unwind_maps_caches(uint64_t budget, uint64_t bytes)
{
	uint64_t all = budget / 64 < 1 << 20 ? budget / 64 : 1 << 20;
	uint64_t each = all / bytes / (uint64_t)libbpf_num_possible_cpus() / UNWIND_MAPS_CACHES;

	each = each > 64 ? 64 : each < 8 ? 8 : each;
	return (uint32_t)each * UNWIND_MAPS_CACHES;
}
