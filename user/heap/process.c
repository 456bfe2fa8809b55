#include "heap/process.h"
#include "base/clock.h"

#include "base/grow.h"
#include "proc/smaps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	MAPS_MAX = 1 << 20,
	PAGES = 512, /* rows of pagemap that are read together: 2 MiB */
	RUNS = 64,   /* of those are kept */
	STACKS_MAX = 1 << 16,
	CLOCK_READS = 16,   /* reads between two looks at the clock, which are a system call each */
	CLOCK_BYTES = 4096, /* … of no more than that                                            */
	GUARD_MAX = 64 << 10, /* a mapping without rights this small, below another: a guard */
};

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_PFN     ((1ULL << 55) - 1)
#define PM_SWAPPED (1ULL << 62)
#define PM_PRESENT (1ULL << 63)

/* Pages from `first` on: words of pagemap, and how many before each are resident. */
struct page_run {
	uint64_t first, n;
	uint64_t read; /* when: heap_process.reads */
	uint64_t page[PAGES];
	uint32_t before[PAGES + 1];
};

struct heap_process {
	struct heap_memory mem;
	struct heap_map *maps;
	uint32_t n, room;
	struct heap_resident resident, proportional;
	struct heap_resident cut; /* of how many mappings smaps cut off part of a kB of PSS */
	const char *unsupported_allocator;
	pid_t pid;
	int pagemap_fd;
	uint64_t zero_pfn; /* of the page that all memory is that was only read; 0: unknown */
	int64_t until_ns;  /* of CPU time of this thread */
	uint64_t *stacks;  /* stack pointers of threads */
	uint32_t n_stacks;
	uint64_t guard_end; /* while mappings are read: of a guard right before */
	uint64_t data_end;
	bool oom;
	struct page_run runs[RUNS];
	uint64_t reads; /* calls of read_memory() so far */
	bool late;      /* the time is up               */
};

/* --- pages --- */

/* The page that reads of untouched memory see is nobody's: ours has it, too. */
static uint64_t find_zero_pfn(void)
{
	_cleanup_(closep) int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	volatile const char *page =
		mmap(NULL, HEAP_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t word = 0;

	if (page == MAP_FAILED)
		return 0;
	(void)*page;
	if (fd < 0 || pread(fd, &word, sizeof(word), (off_t)((uintptr_t)page / HEAP_PAGE * 8)) !=
			      sizeof(word))
		word = 0;
	munmap((void *)page, HEAP_PAGE);
	return word & PM_PRESENT ? word & PM_PFN : 0;
}

static bool is_resident(const struct heap_process *p, uint64_t word)
{
	return word & PM_PRESENT && (!p->zero_pfn || (word & PM_PFN) != p->zero_pfn);
}

static void load_run(struct heap_process *p, struct page_run *run, uint64_t first)
{
	ssize_t len;

	run->first = first;
	run->n = 0;
	run->read = p->reads;
	if ((int64_t)thread_cpu_ns() > p->until_ns)
		return;
	len = pread(p->pagemap_fd, run->page, sizeof(run->page), (off_t)(first * 8));
	run->n = len > 0 ? (uint64_t)len / 8 : 0;
	for (uint64_t i = 0; i < run->n; i++)
		run->before[i + 1] = run->before[i] + is_resident(p, run->page[i]);
}

/* What pagemap says around page `number`, NULL when it does not. */
static struct page_run *run_of(struct heap_process *p, uint64_t number)
{
	uint64_t first = number - number % PAGES;
	struct page_run *run = &p->runs[number / PAGES % RUNS];

	if (run->first != first || !run->n)
		load_run(p, run, first);
	return number - first < run->n ? run : NULL;
}

static uint64_t resident(void *ctx, uint64_t addr, uint64_t len)
{
	struct heap_process *p = ctx;
	uint64_t sum = 0;

	while (len) {
		const struct page_run *run = run_of(p, addr / HEAP_PAGE);
		uint64_t at, end, part = HEAP_PAGE - addr % HEAP_PAGE;

		if (!run)
			return sum;
		at = addr / HEAP_PAGE - run->first;
		if (part >= len) /* all of it in one page: most are */
			return sum + (run->before[at + 1] - run->before[at]) * len;
		if (part < HEAP_PAGE) {
			sum += (run->before[at + 1] - run->before[at]) * part;
		} else {
			/* Whole pages: `len` is one at least. */
			end = at + len / HEAP_PAGE;
			if (end > run->n)
				end = run->n;
			part = (end - at) * HEAP_PAGE;
			sum += (uint64_t)(run->before[end] - run->before[at]) * HEAP_PAGE;
		}
		addr += part;
		len -= part;
	}
	return sum;
}

/* One stretch of pages that are all there, or all were never touched. */
static bool read_run(struct heap_process *p, uint64_t addr, uint8_t *to, size_t len, bool touched)
{
	struct iovec into = { to, len }, from = { (void *)(uintptr_t)addr, len };

	if (touched)
		return process_vm_readv(p->pid, &into, 1, &from, 1, 0) == (ssize_t)len;
	memset(to, 0, len);
	return true;
}

/* Was this page ever touched? What pagemap said before may have changed: it is asked again. -ENOENT: this
 * is no memory. */
static int was_touched(struct heap_process *p, uint64_t number)
{
	struct page_run *run = run_of(p, number);

	if (run && run->page[number - run->first] & (PM_PRESENT | PM_SWAPPED))
		return true;
	if (run && run->read != p->reads) {
		load_run(p, run, run->first);
		run = run_of(p, number);
	}
	if (!run)
		return -ENOENT;
	return (run->page[number - run->first] & (PM_PRESENT | PM_SWAPPED)) != 0;
}

/* A walk reads a word at a time now and then: asking for the time would take as long. */
static bool is_late(struct heap_process *p, size_t len)
{
	if (!p->late && (p->reads % CLOCK_READS == 0 || len > CLOCK_BYTES))
		p->late = (int64_t)thread_cpu_ns() > p->until_ns;
	return p->late;
}

static bool read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct heap_process *p = ctx;
	uint8_t *to = buf;
	uint64_t run = addr, at = addr, end = addr + len;
	bool touched = false;

	if (end < addr || is_late(p, len))
		return false;
	p->reads++;
	while (at < end) {
		int here = was_touched(p, at / HEAP_PAGE);

		if (here < 0)
			return false;
		if (at > run && here != touched) {
			if (!read_run(p, run, to + (run - addr), (size_t)(at - run), touched))
				return false;
			run = at;
		}
		touched = here;
		at += HEAP_PAGE - at % HEAP_PAGE;
	}
	return read_run(p, run, to + (run - addr), (size_t)(end - run), touched);
}

/* --- mappings --- */

/* proc(5): syscall says where the stack of a thread is that waits. */
static void add_stack(struct heap_process *p, const char *tid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256], *last;
	unsigned long long sp = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/syscall", (int)p->pid, tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return;
	for (int i = 0; i < 2; i++) {
		last = strrchr(line, ' ');
		if (!last)
			return;
		if (i == 0)
			*last = '\0';
		else if (sscanf(last, "%llx", &sp) != 1)
			return;
	}
	if (sp && p->n_stacks < STACKS_MAX)
		p->stacks[p->n_stacks++] = sp;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void find_stacks(struct heap_process *p)
{
	struct dirent *ent;
	char path[32];
	DIR *dir;

	p->stacks = calloc(STACKS_MAX, sizeof(*p->stacks));
	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	dir = p->stacks ? opendir(path) : NULL;
	while (dir && (ent = readdir(dir)))
		if (isdigit((unsigned char)ent->d_name[0]))
			add_stack(p, ent->d_name);
	if (dir)
		closedir(dir);
	if (p->n_stacks)
		qsort(p->stacks, p->n_stacks, sizeof(*p->stacks), by_number);
}

static bool has_stack(const struct heap_process *p, uint64_t start, uint64_t end)
{
	uint32_t low = 0, high = p->n_stacks;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (p->stacks[mid] < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->n_stacks && p->stacks[low] < end;
}

static bool starts_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool is_shared_memory(const struct proc_map *m)
{
	return starts_with(m->path, "/dev/shm/") || starts_with(m->path, "/memfd:") ||
	       starts_with(m->path, "/SYSV") || starts_with(m->path, "/dev/zero");
}

static bool is_anonymous(const struct proc_map *m)
{
	return !(m->perms & PROC_MAP_SHARED) && (!*m->path || starts_with(m->path, "[anon:"));
}

/*
 * A stack of a thread: a stack pointer is in it, or it begins above a small mapping without rights, as
 * pthread_create() makes them and keeps them when the thread has ended.
 */
static enum heap_map_kind kind_of(const struct heap_process *p, const struct proc_map *m)
{
	bool writable = m->perms & PROC_MAP_WRITE;

	if (starts_with(m->path, "[stack"))
		return HEAP_MAP_STACK;
	if (strcmp(m->path, "[heap]") == 0)
		return HEAP_MAP_BRK;
	if (m->perms & PROC_MAP_SHARED || *m->path == '[')
		return starts_with(m->path, "[anon:") ? HEAP_MAP_ANON : HEAP_MAP_OTHER;
	if (!is_anonymous(m))
		return writable ? HEAP_MAP_DATA : HEAP_MAP_OTHER;
	if (writable && (m->start == p->guard_end || has_stack(p, m->start, m->end)))
		return HEAP_MAP_STACK;
	if (writable && m->start == p->data_end)
		return HEAP_MAP_ZEROED;
	return writable ? HEAP_MAP_ANON : HEAP_MAP_OTHER;
}

static uint64_t bytes_of_kb(int64_t kb)
{
	return kb > 0 ? (uint64_t)kb << 10 : 0;
}

static uint64_t pss_of(const struct smaps_entry *s)
{
	return bytes_of_kb(s->pss_kb < 0 ? s->rss_kb : s->pss_kb);
}

/* Each of the parts of what is resident. */
static void parts_of(struct heap_resident *r, uint64_t *ret_parts[6])
{
	uint64_t *parts[6] = { &r->anonymous, &r->written, &r->file,
			       &r->shmem,     &r->stacks,  &r->special };

	memcpy(ret_parts, parts, sizeof(parts));
}

/*
 * smaps cuts the PSS of each mapping off to whole kB, which is most of it where a thousand processes map a
 * page; the sum in smaps_rollup is exact. What was cut off is released, to each mapping alike.
 */
static void add_what_was_cut(struct heap_process *p)
{
	uint64_t *pss[6], *cut[6], sum = 0, n = 0, missing;

	parts_of(&p->proportional, pss);
	parts_of(&p->cut, cut);
	for (int i = 0; i < 6; i++) {
		sum += *pss[i];
		n += *cut[i];
	}
	if (!n || p->proportional.rollup <= sum)
		return;
	missing = p->proportional.rollup - sum;
	if (missing > n << 10)
		missing = n << 10; /* the rest has come since */
	for (int i = 0; i < 6; i++)
		*pss[i] += missing * *cut[i] / n;
}

/* `rss`: of it, or its PSS. */
static void count_resident(struct heap_resident *r, const struct smaps_entry *s, uint64_t rss,
			   enum heap_map_kind kind)
{
	uint64_t written = bytes_of_kb(s->anonymous_kb);

	if (written > rss)
		written = rss;

	if (kind == HEAP_MAP_STACK) {
		r->stacks += rss;
		r->n_stacks++;
	} else if (kind == HEAP_MAP_BRK || is_anonymous(&s->map)) {
		r->anonymous += rss;
	} else if (is_shared_memory(&s->map)) {
		r->shmem += rss;
	} else if (*s->map.path == '[') {
		r->special += rss;
	} else {
		r->written += written;
		r->file += rss - written;
	}
}

static int on_smap(void *ctx, const struct smaps_entry *s)
{
	static const char *const unsupported_allocators[] = { "libtcmalloc", "libmimalloc",
							      "libjemalloc", "libsnmalloc",
							      "libhoard",    "ld-musl" };
	struct heap_process *p = ctx;
	const struct proc_map *m = &s->map;
	const char *slash = strrchr(m->path, '/');
	enum heap_map_kind kind = kind_of(p, m);

	count_resident(&p->resident, s, bytes_of_kb(s->rss_kb), kind);
	count_resident(&p->proportional, s, pss_of(s), kind);
	count_resident(&p->cut, s, pss_of(s) < bytes_of_kb(s->rss_kb), kind);
	for (size_t i = 0;
	     slash && i < sizeof(unsupported_allocators) / sizeof(*unsupported_allocators); i++)
		if (starts_with(slash + 1, unsupported_allocators[i]))
			p->unsupported_allocator = unsupported_allocators[i];
	if (!(m->perms & 7) && m->end - m->start <= GUARD_MAX)
		p->guard_end = m->end;
	if (kind == HEAP_MAP_DATA)
		p->data_end = m->end;
	/* What grew after a fork is a mapping of its own, to the kernel. */
	if (kind == HEAP_MAP_BRK && p->n && p->maps[p->n - 1].kind == kind &&
	    p->maps[p->n - 1].end == m->start) {
		p->maps[p->n - 1].end = m->end;
		p->maps[p->n - 1].rss += bytes_of_kb(s->rss_kb);
		return 0;
	}
	if (p->n >= MAPS_MAX || !GROW(p->maps, p->n, p->room)) {
		p->oom = true;
		return 0; /* its memory is counted all the same */
	}
	p->maps[p->n++] = (struct heap_map){ m->start, m->end, bytes_of_kb(s->rss_kb), kind };
	return 0;
}

/* 0: not known. */
static void read_rollup(struct heap_process *p)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char line[256];
	long long kb;

	snprintf(line, sizeof(line), "/proc/%d/smaps_rollup", (int)p->pid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Rss: %lld kB", &kb) == 1)
			p->resident.rollup = bytes_of_kb(kb);
		else if (sscanf(line, "Pss: %lld kB", &kb) == 1)
			p->proportional.rollup = bytes_of_kb(kb);
	}
}

int heap_process_open(pid_t pid, int64_t budget_ns, struct heap_process **ret_process,
		      struct err *e)
{
	_cleanup_(heap_process_closep) struct heap_process *p = calloc(1, sizeof(*p));
	char path[32];
	int r;

	if (!p)
		return err_set(e, -ENOMEM, "out of memory");
	if (sysconf(_SC_PAGESIZE) != HEAP_PAGE)
		return err_set(
			e, -EOPNOTSUPP,
			"this kernel has pages of %ld KiB, and heaps are read where they have 4 KiB",
			sysconf(_SC_PAGESIZE) / 1024);
	p->pid = pid;
	p->pagemap_fd = -1;
	p->until_ns = (int64_t)thread_cpu_ns() + budget_ns;
	find_stacks(p);
	r = smaps_each(pid, on_smap, p, e);
	if (r == 0 && p->oom)
		r = err_set(e, -ENOMEM, "process %d: too many mappings", (int)pid);
	if (r < 0)
		return r;
	read_rollup(p);
	add_what_was_cut(p);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	p->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p->pagemap_fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	p->zero_pfn = find_zero_pfn();
	p->mem = (struct heap_memory){ p->maps, p->n, read_memory, resident, p, NULL };
	*ret_process = TAKE_PTR(p);
	return 0;
}

void heap_process_close(struct heap_process *p)
{
	if (!p)
		return;
	closep(&p->pagemap_fd);
	free(p->maps);
	free(p->stacks);
	free(p);
}

const struct heap_memory *heap_process_memory(const struct heap_process *p)
{
	return &p->mem;
}

const struct heap_resident *heap_process_resident(const struct heap_process *p)
{
	return &p->resident;
}

const struct heap_resident *heap_process_proportional(const struct heap_process *p)
{
	return &p->proportional;
}

const char *heap_process_unsupported(const struct heap_process *p)
{
	return p->unsupported_allocator;
}
