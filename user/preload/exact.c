/*
 * Every call of the allocator, recorded in the process itself.
 *
 * The stack is walked by the source that walks it in the kernel (bpf/walk/walk_cfi.h), over the same
 * tables. What makes it cheap is that a thread's stack is nearly the one of its last call: of that
 * one each frame is kept, with the words of the stack that the step from it to its caller has read.
 * A walk goes outwards until it comes to a frame that it had last time, with the same pc, sp and,
 * where the rest depends on it, frame pointer. If the words that the rest has read are still the
 * same, so is the rest: each step would do what it did (bpf/walk/unwind_cache.bpf.h says why). For a
 * call from where the last one came from that is one comparison a frame, and no step at all.
 *
 * The frames of all stacks are one tree, so a stack is a number, and a site is a stack and a thread.
 *
 * Without locks: slots of the hash tables are taken by one exchange, and stay. A site's counts are
 * the thread's own, as in the kernel; others' frees have fields of their own.
 *
 * Reads no memory but the thread's own stack, between sp and its end, and frames of an interpreter that this
 * thread is in (exact_lang.h); any other (a signal's stack, a coroutine's) through the kernel, which finds out
 * whether it is there.
 *
 * A handler may come at any instruction, on any stack, and never return: what serves one call is used
 * by no other (exact_threads.h), and what all share is written by one instruction at a time. A forked
 * child records nothing: the page that says where to is wiped there.
 *
 * A call takes less than 1 KiB of the program's stack (tests/unit/preload/exact.c).
 */
#include "preload/exact.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define WALK_DIRECT
#define WALK_NO_MANAGED /* what is kept of a stack says nothing of those */
#include "walk/walk_cfi.h"
#include "walk/walk_lang.h"

#define SLOW        __attribute__((noinline, cold))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define DEPS_MAX     (MS_MAX_FRAMES * 2)
#define STEP_DEPS    4
#define MEMOS        4096
#define EDGES        4096
#define EDGE_WAYS    4u /* in one cache line */
#define MOVES        1024
#define FEW          128 /* of each of these, when there are many threads: */
#define LARGE_STATES 256
#define THREADS      8192
#define STATES       8 /* of one thread */
#define STATE_TRIES  16
#define PROBES       64   /* slots of a hash table that are looked at */
#define TIME_ONE     1024 /* in so many calls, how long recording takes is measured */
#define RED_ZONE     128
#define LANG_PAGES   256 /* of memory that frames of a language are in */
#define THREAD_BYTES                                                                               \
	(64u << 10) /* what may be above a thread's first frame, with nothing of its own */

/* A word of the stack that was read, and what it was. */
struct dep {
	const uint64_t *at;
	uint64_t word;
};

/* Of the last stack, from the outermost one on. */
struct frame {
	uint64_t pc, sp, fp;
	uint32_t node;
	uint32_t deps; /* of this frame and all that called it: the first so many */
	uint32_t hash;
	bool needs_fp; /* the walk from here on depends on `fp` */
};

/* Of the present walk, from the innermost one on. */
struct step {
	uint64_t pc, sp, fp;
	uint64_t fp_at; /* the caller's frame pointer was read there; 0: it is the same */
	uint32_t n_deps;
	bool uses_fp;
	bool opaque; /* depends on more than is kept */
	struct dep deps[STEP_DEPS];
};

/* From a return address to its caller's frame. */
struct move {
	uint64_t pc;
	int32_t off;            /* CFA: from sp, or from the frame pointer */
	int16_t ra_off, fp_off; /* from the CFA; fp_off 0: the frame pointer is the caller's */
	enum move_kind {
		MOVE_OTHER, /* none of these: the walker does it */
		MOVE_END,
		MOVE_BY_SP,
		MOVE_BY_FP,
	} kind;
};

/* A stack that has been a site: its native part, and a number of the rest. */
struct memo {
	uint32_t node, site;
	uint64_t key;
};

/* child()'s answers, nearer than the tree. */
struct edge {
	uint64_t pc;
	uint32_t caller, node;
};

/* Of a thread: one of its states. Never unmapped: another thread takes it over. */
struct thread {
	uint32_t tid, seen;  /* `seen`: tables_seq */
	uint32_t slot;       /* in threads[] */
	bool is_main, many;  /* the process's first; there are many threads: caches are small */
	uintptr_t busy;      /* sp of the call that is being recorded; 0: none */
	struct thread *next; /* for a call that meets one being recorded */
	uint64_t low, high;  /* its stack, as far as that is known … */
	uint64_t floor;      /* … and where it cannot be below */
	uint64_t near_at;    /* of the walk: what is read directly */
	uint64_t near_len;
	uint64_t last;          /* the block allocated last                        */
	uint64_t deleted;       /* … and freed by an operator delete, which may call free */
	uint32_t n, generation; /* frames; node of the generation */
	uint32_t calls;
	uint32_t epoch; /* of the area whose nodes and sites are remembered */
	/* Tables. */
	const struct ms_pool_page *pool;
	const struct ms_table *tables;
	const struct ms_rule *rules;
	uint32_t n_pages, n_tables, n_rules;
	/* Of another stack: what was read last. */
	uint64_t copy_at, copy_len;
	uint8_t copy[4096];
	struct memo memo[MEMOS];
	struct edge edges[EDGES] __attribute__((aligned(64)));
	struct move moves[MOVES];
	struct ms_walk walk;
	struct frame frames[MS_MAX_FRAMES];
	struct dep deps[DEPS_MAX];
	struct step steps[MS_MAX_FRAMES];
	/* With frames of a language. */
	bool lang_live;                  /* they may be loaded */
	uint64_t lang_pages[LANG_PAGES]; /* numbers of pages that were there */
	uint64_t words[MS_MAX_FRAMES];   /* of a stack record */
};

/* Its first. Read once a call: a coroutine may go on in another thread. */
static __thread struct thread *mine __attribute__((tls_model("initial-exec")));

static struct thread *threads[THREADS];
static uint32_t n_threads;

/* On a page that a forked child finds empty. */
static struct gate {
	struct exact_area *area;
} * gate;
static uint32_t epoch; /* one for each area; the first is 1 */
/* Counted by who is in no call that is being recorded: the area may be unmapped any time. */
static uint64_t outside[N_EXACT_COUNTS];
static uint64_t thread_bytes = THREAD_BYTES;
/* As memscope says: a system call may end the process. */
static uint32_t no_syscalls;

static uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void count_add(struct exact_area *a, enum exact_count what, uint64_t n)
{
	__atomic_fetch_add(&a->counts[what], n, __ATOMIC_RELAXED);
}

static void count_outside(enum exact_count what)
{
	__atomic_fetch_add(&outside[what], 1, __ATOMIC_RELAXED);
}

#include "preload/exact_threads.h"

#include "preload/exact_stack.h"

#include "preload/exact_lang.h"

/* --- sites -------------------------------------------------------------------------------------- */

#define ROOT 1

static struct ms_alloc_site *site_at(struct exact_area *a, uint32_t ix)
{
	return (struct ms_alloc_site *)in_area(a, a->sites) + (ix < a->n_sites ? ix : ROOT);
}

/* The thread's site with this leaf; the root: no room. */
static uint32_t site_find(struct exact_area *a, uint32_t node, uint32_t tid)
{
	uint32_t *slots = in_area(a, a->site_slots), made = 0;
	uint64_t at = mix(node, tid);

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t *slot = &slots[(at + i) & (a->n_site_slots - 1)];
		uint32_t ix = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		struct ms_alloc_site *site;

		if (!ix) {
			if (!made) {
				if (__atomic_load_n(&a->used_sites, __ATOMIC_RELAXED) >= a->n_sites)
					return ROOT;
				made = __atomic_fetch_add(&a->used_sites, 1, __ATOMIC_RELAXED);
				if (made >= a->n_sites)
					return ROOT;
				site = site_at(a, made);
				site->root = ROOT;
				site->key.tid = tid;
				__atomic_store_n(&site->key.user.lo, node, __ATOMIC_RELEASE);
			}
			if (__atomic_compare_exchange_n(slot, &ix, made, false, __ATOMIC_ACQ_REL,
							__ATOMIC_ACQUIRE))
				return made;
		}
		site = site_at(a, ix);
		if (site->key.user.lo == node && site->key.tid == tid)
			return ix;
	}
	return ROOT;
}

static inline uint64_t leaf_of(const void *function, enum ms_verdict verdict)
{
	return (uint64_t)(uintptr_t)function | (uint64_t)verdict << EXACT_VERDICT_SHIFT;
}

static inline const struct exact_node *node_at(struct exact_area *a, uint32_t ix)
{
	return (struct exact_node *)in_area(a, a->nodes) + ix;
}

static uint32_t site_of(struct thread *t, struct exact_area *a, const void *function,
			const uintptr_t *caller)
{
	enum ms_verdict verdict;
	struct memo *m;
	uint64_t pc = caller[1], sp = (uint64_t)(uintptr_t)(caller + 2), leaf, chain = 0;
	uint32_t node, native, seq = __atomic_load_n(&a->tables_seq, __ATOMIC_ACQUIRE), ix;
	uint64_t key;
	bool lang;

	if (UNLIKELY(t->seen != seq || t->epoch != epoch || !t->generation))
		new_tables(t, a, seq);
#if MS_WALK_ARM64
	pc &= (1ULL << 48) - 1;
#endif
	node = stack_node(t, a, pc, sp, caller[0], &verdict);
	leaf = leaf_of(function, verdict);
	lang = t->walk.lang.lang && node_at(a, node)->executes;
	if (UNLIKELY(lang))
		chain = lang_key(t, sp);
	/* Nodes are numbered in turn: a stack has its own, until there are many. */
	key = leaf ^ chain;
	m = &t->memo[(node ^ key >> 4) % (t->many ? FEW : MEMOS)];
	if (LIKELY(m->node == node && m->key == key && node && (!lang || chain)))
		return m->site;
	native = node;
	if (UNLIKELY(lang)) {
		node = lang_node(t, a, pc, sp, caller[0], chain, &verdict);
		leaf = leaf_of(function, verdict);
	}
	ix = node ? child(a, node, leaf) : 0;
	ix = ix ? site_find(a, ix, t->tid) : ROOT;
	if (ix == ROOT)
		count_add(a, EXACT_SITES_FULL, 1);
	else
		*m = (struct memo){ native, ix, key };
	return ix;
}

/* As in bpf/alloc_sites.bpf.h, which says why. */
static void site_note(struct ms_alloc_site *site, const struct ms_alloc_site *root)
{
	uint64_t peaks = __atomic_load_n(&root->peaks, __ATOMIC_RELAXED);

	if (site->peaks_seen == peaks)
		return;
	site->peak_objects = site->allocs - site->frees - site->cross_frees - site->untracked;
	site->peak_bytes =
		site->bytes - site->freed_bytes - site->cross_bytes - site->untracked_bytes;
	site->peaks_seen = peaks;
}

static void root_live(struct ms_alloc_site *root, uint64_t bytes, uint64_t now_ns)
{
	int64_t live = __atomic_add_fetch(&root->live, (int64_t)bytes, __ATOMIC_RELAXED);

	if (live <= __atomic_load_n(&root->highest, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&root->highest, live, __ATOMIC_RELAXED);
	__atomic_store_n(&root->highest_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&root->peaks, 1, __ATOMIC_RELAXED);
}

static uint32_t size_class(uint64_t size)
{
	uint64_t v = (size ? size - 1 : 0) >> 3;
	uint32_t width = v ? 64 - (uint32_t)__builtin_clzll(v) : 0;

	return width < MS_SIZE_CLASSES ? width : MS_SIZE_CLASSES - 1;
}

/* A number that one thread alone adds to, with its handlers, and memscope reads. */
static inline void add(__u64 *to, uint64_t n)
{
#if defined(__x86_64__)
	__asm__ volatile("addq %1, %0" : "+m"(*to) : "er"(n));
#else
	__atomic_fetch_add(to, n, __ATOMIC_RELAXED);
#endif
}

static void site_allocated(struct thread *t, struct exact_area *a, uint32_t ix, uint64_t size,
			   uint64_t now_ns, bool tracked)
{
	struct ms_alloc_site *site = site_at(a, ix), *root = site_at(a, ROOT);

	__atomic_fetch_add(&a->sizes[t->tid % 16][size_class(size)], 1, __ATOMIC_RELAXED);
	site_note(site, root);
	if (LIKELY(site->key.tid == t->tid)) {
		add(&site->bytes, size);
		add(&site->allocs, 1);
	} else {
		__atomic_fetch_add(&site->bytes, size, __ATOMIC_RELAXED);
		__atomic_fetch_add(&site->allocs, 1, __ATOMIC_RELAXED);
	}
	if (LIKELY(tracked)) {
		root_live(root, size, now_ns);
	} else {
		__atomic_fetch_add(&site->untracked, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&site->untracked_bytes, size, __ATOMIC_RELAXED);
		count_add(a, EXACT_FULL, 1);
		count_add(a, EXACT_FULL_BYTES, size);
	}
}

static uint32_t life_class(uint64_t ns)
{
	uint64_t limit = 10000;
	uint32_t class = 0;

	for (; class < MS_LIFE_CLASSES - 1 && ns >= limit; class ++)
		limit *= 10;
	return class;
}

static void site_freed(struct thread *t, struct exact_area *a, const struct exact_block *b,
		       uint64_t now_ns, bool own, bool last)
{
	struct ms_alloc_site *site = site_at(a, b->site), *root = site_at(a, ROOT);
	uint64_t life = now_ns - b->born_ns;

	site_note(site, root);
	if (LIKELY(own && site->key.tid == t->tid)) {
		add(&site->frees, 1);
		add(&site->freed_bytes, b->size);
		add(&site->temporary, last);
	} else {
		__atomic_fetch_add(&site->cross_frees, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&site->cross_bytes, b->size, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&site->life_ns, life, __ATOMIC_RELAXED);
	__atomic_fetch_add(&site->lives[life_class(life)], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&root->live, -(int64_t)b->size, __ATOMIC_RELAXED);
}

#include "preload/exact_blocks.h"

/* --- calls -------------------------------------------------------------------------------------- */

/* NULL: nothing is recorded, or not this one. */
static inline struct exact_area *enter(const uintptr_t *caller, struct thread **ret_thread)
{
	const struct gate *g = __atomic_load_n(&gate, __ATOMIC_ACQUIRE);
	struct exact_area *a = g ? __atomic_load_n(&g->area, __ATOMIC_ACQUIRE) : NULL;
	struct thread *t = mine;

	if (!a)
		return NULL;
	if (UNLIKELY(!t || !claim(t, (uintptr_t)caller))) {
		t = claim_other((uintptr_t)caller);
		if (!t)
			return NULL;
	}
	/* exact_end() has stores and loads of all threads ordered. */
	__asm__ volatile("" : : : "memory");
	a = __atomic_load_n(&g->area, __ATOMIC_ACQUIRE);
	if (UNLIKELY(!a || !__atomic_load_n(&a->on, __ATOMIC_RELAXED))) {
		__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
		return NULL;
	}
	if (UNLIKELY(a->no_syscalls != no_syscalls))
		no_syscalls = a->no_syscalls;
	*ret_thread = t;
	return a;
}

static inline void leave(struct thread *t)
{
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

static inline void allocated_in(struct thread *t, struct exact_area *a, uint64_t addr, size_t size,
				const void *function, const uintptr_t *caller)
{
	struct exact_block block, old;
	uint64_t from = 0;
	bool tracked;

	block_prefetch(a, addr);
	if (UNLIKELY(++t->calls % TIME_ONE == 0))
		from = clock_now();
	block = (struct exact_block){ size, 0, site_of(t, a, function, caller), 0 };
	block.born_ns = clock_now();
	tracked = block_put(a, addr, &block, &old);
	if (UNLIKELY(old.size != UINT64_MAX)) {
		count_add(a, EXACT_REUSED, 1);
		site_freed(t, a, &old, block.born_ns, false, false);
	}
	site_allocated(t, a, block.site, size, block.born_ns, tracked);
	t->last = addr;
	t->deleted = 0;
	if (UNLIKELY(from)) {
		count_add(a, EXACT_TIMED, 1);
		count_add(a, EXACT_TIMED_NS, clock_now() - from);
	}
}

void exact_allocated(const void *p, size_t size, const void *function, const uintptr_t *caller)
{
	struct thread *t;
	struct exact_area *a = enter(caller, &t);

	if (!a)
		return;
	if (p)
		allocated_in(t, a, (uint64_t)(uintptr_t)p, size, function, caller);
	else
		count_add(a, EXACT_FAILED, 1);
	leave(t);
}

/* false: it is not known. */
static inline bool freed_in(struct thread *t, struct exact_area *a, uint64_t addr)
{
	struct exact_block block;
	uint64_t now_ns;

	block_prefetch(a, addr);
	now_ns = clock_now(); /* while its line comes */
	if (UNLIKELY(!block_take(a, addr, &block)))
		return false;
	site_freed(t, a, &block, now_ns, true, t->last == addr);
	return true;
}

void exact_freed(const void *p, const uintptr_t *caller, bool quiet)
{
	struct thread *t;
	struct exact_area *a = enter(caller, &t);
	uint64_t addr = (uint64_t)(uintptr_t)p;

	if (!a)
		return;
	if (LIKELY(freed_in(t, a, addr)))
		t->deleted = quiet ? addr : 0;
	else if (!quiet && t->deleted != addr)
		count_add(a, EXACT_UNKNOWN, 1);
	leave(t);
}

void exact_realloc_begins(const void *p, const uintptr_t *caller, struct exact_old *ret_old)
{
	struct thread *t;
	struct exact_area *a = enter(caller, &t);

	ret_old->was_there = false;
	if (!a)
		return;
	ret_old->was_there = block_take(a, (uint64_t)(uintptr_t)p, &ret_old->block);
	leave(t);
}

static inline void realloc_ended(struct thread *t, struct exact_area *a, uint64_t addr, bool moved,
				 const struct exact_old *old)
{
	struct exact_block there;

	if (moved)
		site_freed(t, a, &old->block, clock_now(), true, t->last == addr);
	else if (!block_put(a, addr, &old->block, &there))
		count_add(a, EXACT_FULL, 1);
}

void exact_realloc_ends(const void *p, bool moved, const uintptr_t *caller,
			const struct exact_old *old)
{
	struct thread *t;
	struct exact_area *a = enter(caller, &t);
	uint64_t addr = (uint64_t)(uintptr_t)p;

	if (!a)
		return;
	if (old->was_there)
		realloc_ended(t, a, addr, moved, old);
	else if (moved && t->deleted != addr)
		count_add(a, EXACT_UNKNOWN, 1);
	leave(t);
}

/* --- objects, of an allocator above ---------------------------------------------------------------- */

void exact_object_begins(void)
{
	struct thread *t = mine;

	if (t && !t->busy)
		t->last = 0;
}

void exact_object_allocated(const void *p, size_t size, const void *function,
			    const uintptr_t *caller)
{
	struct thread *t;
	struct exact_area *a = p ? enter(caller, &t) : NULL;

	if (!a)
		return;
	if (t->last != (uint64_t)(uintptr_t)p)
		allocated_in(t, a, (uint64_t)(uintptr_t)p, size, function, caller);
	leave(t);
}

void exact_object_freed(const void *p, const uintptr_t *caller)
{
	struct thread *t;
	struct exact_area *a = enter(caller, &t);
	uint64_t addr = (uint64_t)(uintptr_t)p;

	if (!a)
		return;
	if (UNLIKELY(!freed_in(t, a, addr)))
		count_add(a, EXACT_UNKNOWN, 1);
	t->deleted = addr;
	leave(t);
}

void exact_object_realloc_begins(const void *p, const uintptr_t *caller, struct exact_old *ret_old)
{
	struct thread *t;
	struct exact_area *a = enter(caller, &t);

	ret_old->was_there = false;
	if (!a)
		return;
	ret_old->was_there = block_take(a, (uint64_t)(uintptr_t)p, &ret_old->block);
	t->deleted = (uint64_t)(uintptr_t)p;
	leave(t);
}

void exact_object_realloc_ends(const void *p, bool moved, const uintptr_t *caller,
			       const struct exact_old *old)
{
	struct thread *t;
	struct exact_area *a = enter(caller, &t);

	if (!a)
		return;
	if (old->was_there)
		realloc_ended(t, a, (uint64_t)(uintptr_t)p, moved, old);
	else if (moved)
		count_add(a, EXACT_UNKNOWN, 1);
	leave(t);
}

/* --- an interpreter ------------------------------------------------------------------------------ */

void exact_interpreter(const struct exact_interpreter *of)
{
	if (interpreter.current)
		return;
	interpreter.finalizing = of->finalizing;
	__atomic_store_n(&interpreter.current, of->current, __ATOMIC_RELEASE);
}

/* --- begin and end ------------------------------------------------------------------------------ */

/* The C library keeps them above a thread's first frame. */
static int add_tls(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	(void)ctx;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			thread_bytes += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

int exact_begin(int fd)
{
	struct exact_area *a;
	struct stat st;

	if (!gate) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);

		if (at == MAP_FAILED)
			return -ENOMEM;
		if (madvise(at, page, MADV_WIPEONFORK) < 0) {
			munmap(at, page);
			return -EOPNOTSUPP;
		}
		__atomic_store_n(&gate, at, __ATOMIC_RELEASE);
	}
	if (gate->area)
		return 0;
	if (fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof(*a))
		return -EINVAL;
	a = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		 0);
	if (a == MAP_FAILED)
		return -errno;
	if (a->magic != EXACT_MAGIC || a->bytes != (uint64_t)st.st_size) {
		munmap(a, (size_t)st.st_size);
		return -EINVAL;
	}
	thread_bytes = THREAD_BYTES;
	dl_iterate_phdr(add_tls, NULL);
#ifdef MADV_POPULATE_WRITE
	madvise(a, a->nodes,
		MADV_POPULATE_WRITE); /* by this thread, and by none of the program's */
#endif
	epoch++;
	__atomic_store_n(&gate->area, a, __ATOMIC_RELEASE);
	return 0;
}

void exact_in_child(void)
{
	uint32_t n = __atomic_load_n(&n_threads, __ATOMIC_ACQUIRE);

	mine = NULL;
	for (uint32_t i = 0; i < n && i < THREADS; i++)
		if (threads[i])
			threads[i]->tid = threads[i]->busy = 0;
}

/* All threads' earlier stores are seen. */
static bool stores_seen(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

void exact_end(void)
{
	struct exact_area *a = gate ? gate->area : NULL;
	uint32_t n = __atomic_load_n(&n_threads, __ATOMIC_ACQUIRE);
	bool alone;
	int ms = 0;

	if (!a)
		return;
	__atomic_store_n(&gate->area, NULL, __ATOMIC_SEQ_CST);
	alone = stores_seen();
	/* A thread that is stopped in the middle stays there: then what is mapped stays too. */
	for (uint32_t i = 0; i < n && i < THREADS; i++) {
		struct thread *t = __atomic_load_n(&threads[i], __ATOMIC_ACQUIRE);

		while (t && __atomic_load_n(&t->busy, __ATOMIC_ACQUIRE)) {
			if (ms++ == 1000) {
				ms--;
				alone = false;
				count_outside(EXACT_LEFT);
				break;
			}
			usleep(1000);
		}
	}
	for (int i = 0; i < N_EXACT_COUNTS; i++)
		count_add(a, (enum exact_count)i,
			  __atomic_exchange_n(&outside[i], 0, __ATOMIC_RELAXED));
	if (alone)
		munmap(a, a->bytes);
}
