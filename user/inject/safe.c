#include "inject/safe.h"

#if defined(__x86_64__)

#include "elf/cfi.h"
#include "elf/elf_syms.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define FRAMES_MAX 512
#define MAPS_MAX   65536

/* DWARF numbers of x86-64. */
enum { REG_SP = 7, REG_RA = 16 };

enum image_kind { IMAGE_PROGRAM, IMAGE_LIBC, IMAGE_LOADER, IMAGE_ALLOCATOR, IMAGE_OTHER };

struct image {
	uint64_t dev, ino;
	enum image_kind kind;
	bool good;
	struct elf_segment *segs;
	uint32_t n_segs;
	struct cfi *cfi;
	struct elf_syms *syms;
	char name[128];
};

struct code {
	uint64_t start, end, off;
	uint64_t dev, ino;
	char name[128]; /* the end of its path */
};

struct safe {
	pid_t pid;
	int mem_fd;
	struct code *codes;
	uint32_t n_codes;
	struct image *images;
	uint32_t n_images;
	uint64_t stack_start, stack_end; /* of the first thread */
};

/* --- images ----------------------------------------------------------------------------------- */

static int add_code(void *ctx, const struct proc_map *map)
{
	struct safe *s = ctx;
	struct code *more;
	const char *slash = strrchr(map->path, '/');

	if (strcmp(map->path, "[stack]") == 0) {
		s->stack_start = map->start;
		s->stack_end = map->end;
	}
	if (!(map->perms & PROC_MAP_EXEC))
		return 0;
	if (s->n_codes == MAPS_MAX)
		return -EFBIG;
	more = realloc(s->codes, (s->n_codes + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->codes = more;
	more += s->n_codes++;
	*more = (struct code){ map->start, map->end, map->file_off, map->dev, map->ino, "" };
	snprintf(more->name, sizeof(more->name), "%s", slash ? slash + 1 : map->path);
	return 0;
}

int safe_new(pid_t pid, int mem_fd, struct safe **ret_safe, struct err *e)
{
	struct safe *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->pid = pid;
	s->mem_fd = mem_fd;
	r = proc_maps_each(pid, add_code, s, e);
	if (r < 0) {
		safe_free(s);
		return err_set(e, r, "cannot read what process %d maps: %s", (int)pid,
			       strerror(-r));
	}
	*ret_safe = s;
	return 0;
}

void safe_free(struct safe *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_images; i++) {
		free(s->images[i].segs);
		cfi_free(s->images[i].cfi);
		elf_syms_free(s->images[i].syms);
	}
	free(s->images);
	free(s->codes);
	free(s);
}

static bool keep_function(const char *name)
{
	static const char *const wanted[] = { "malloc", "free", "__libc_start_main",
					      "pthread_create" };

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		size_t len = strlen(wanted[i]);

		if (strncmp(name, wanted[i], len) == 0 && (!name[len] || name[len] == '@'))
			return true;
	}
	return false;
}

static enum image_kind kind_of(struct elf_file *elf, const char *name)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;

	if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-2.", 5) == 0)
		return IMAGE_LOADER;
	if (elf_syms_load_some(elf, keep_function, &syms, NULL) < 0)
		return IMAGE_OTHER;
	if (elf_syms_find_name(syms, "__libc_start_main", NULL, 0) > 0 &&
	    elf_syms_find_name(syms, "pthread_create", NULL, 0) > 0)
		return IMAGE_LIBC;
	if (elf_syms_find_name(syms, "malloc", NULL, 0) > 0 &&
	    elf_syms_find_name(syms, "free", NULL, 0) > 0)
		return IMAGE_ALLOCATOR;
	return IMAGE_OTHER;
}

static void image_read(struct safe *s, struct image *img, const struct code *c)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	const struct elf_segment *segs;
	uint32_t n;

	fd = ns_open_mapped(s->pid, c->start, c->end);
	if (fd < 0 || elf_file_open(fd, c->name, &elf, NULL) < 0)
		return;
	img->kind = kind_of(elf, c->name);
	segs = elf_file_segments(elf, &n);
	img->segs = malloc(n * sizeof(*segs) + 1);
	if (!img->segs || cfi_open(elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &img->cfi, NULL) < 0)
		return;
	memcpy(img->segs, segs, n * sizeof(*segs));
	img->n_segs = n;
	if (img->kind == IMAGE_LIBC)
		elf_syms_load(elf, &img->syms, NULL);
	img->good = true;
}

/* The image at `pc` and the address there in its own terms. NULL: none that can be walked through. */
static const struct image *image_at(struct safe *s, uint64_t pc, uint64_t *ret_vaddr,
				    const char **ret_name)
{
	const struct code *c = NULL;
	struct image *img = NULL;
	uint64_t vaddr;

	*ret_name = "nothing that is mapped";
	for (uint32_t i = 0; i < s->n_codes && !c; i++)
		if (pc >= s->codes[i].start && pc < s->codes[i].end)
			c = &s->codes[i];
	if (!c)
		return NULL;
	*ret_name = *c->name ? c->name : "generated code";
	if (!c->ino)
		return NULL;
	for (uint32_t i = 0; i < s->n_images && !img; i++)
		if (s->images[i].dev == c->dev && s->images[i].ino == c->ino)
			img = &s->images[i];
	if (!img) {
		struct image *more = realloc(s->images, (s->n_images + 1) * sizeof(*more));

		if (!more)
			return NULL;
		s->images = more;
		img = more + s->n_images++;
		memset(img, 0, sizeof(*img));
		img->dev = c->dev;
		img->ino = c->ino;
		image_read(s, img, c);
	}
	if (!img->good ||
	    !elf_segments_off_to_vaddr(img->segs, img->n_segs, c->off + (pc - c->start), &vaddr))
		return NULL;
	*ret_vaddr = vaddr;
	return img;
}

/* --- one step --------------------------------------------------------------------------------- */

struct row_at {
	uint64_t vaddr;
	bool found;
	struct cfi_rules rules;
};

static int on_row(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules)
{
	struct row_at *at = arg;

	if (at->vaddr < start || at->vaddr >= end)
		return 0;
	at->rules = *rules;
	at->found = true;
	return 1;
}

struct walk {
	uint64_t pc, regs[16];
	bool exact; /* the pc is where it goes on, not behind a call */
	bool ended;
};

static bool word_at(const struct safe *s, uint64_t addr, uint64_t *ret)
{
	return pread(s->mem_fd, ret, sizeof(*ret), (off_t)addr) == (ssize_t)sizeof(*ret);
}

/* To the caller. 0; -EAGAIN: it is not known. */
static int step(const struct safe *s, struct walk *w, const struct cfi_rules *rules, uint8_t ra)
{
	uint64_t cfa, regs[16], word;

	if (ra != REG_RA || (rules->cfa_kind != CFI_CFA_REG && rules->cfa_kind != CFI_CFA_PLT) ||
	    rules->cfa_reg >= 16)
		return -EAGAIN;
	cfa = w->regs[rules->cfa_reg] + (uint64_t)(int64_t)rules->cfa_off;
	if (rules->cfa_kind == CFI_CFA_PLT && (w->pc & 15) >= (uint64_t)rules->cfa_off2)
		cfa += 8;
	for (int i = 0; i <= REG_RA; i++) {
		const struct cfi_reg *r = &rules->regs[i];
		uint64_t base = r->base == CFI_BASE_CFA ? cfa : r->base < 16 ? w->regs[r->base] : 0;

		word = i < 16 ? w->regs[i] : 0;
		switch (r->kind) {
		case CFI_REG_AT:
			if (!word_at(s, base + (uint64_t)(int64_t)r->off, &word))
				return -EAGAIN;
			break;
		case CFI_REG_IS:
			word = base + (uint64_t)(int64_t)r->off;
			break;
		case CFI_REG_UNDEFINED:
			if (i == REG_RA) {
				w->ended = true;
				return 0;
			}
			break;
		case CFI_REG_BAD:
			return -EAGAIN;
		default:
			if (i == REG_RA)
				return -EAGAIN;
		}
		if (i == REG_RA)
			w->pc = word;
		else
			regs[i] = word;
	}
	regs[REG_SP] = cfa;
	if (cfa <= w->regs[REG_SP] && !w->exact)
		return -EAGAIN;
	memcpy(w->regs, regs, sizeof(regs));
	w->exact = false;
	return 0;
}

/* --- the check -------------------------------------------------------------------------------- */

/* Functions that wait, and hold nothing that we need meanwhile; without underscores in front. */
static bool may_wait_in(const char *name)
{
	static const char *const names[] = {
		"accept",
		"accept4",
		"clock_nanosleep",
		"connect",
		"epoll_pwait",
		"epoll_pwait2",
		"epoll_wait",
		"fgetc",
		"fgets",
		"flock",
		"fread",
		"getc",
		"getchar",
		"getpid",
		"getppid",
		"getrusage",
		"gettid",
		"kill",
		"lseek",
		"lseek64",
		"msgrcv",
		"msgsnd",
		"nanosleep",
		"pause",
		"poll",
		"poll_chk",
		"ppoll",
		"pread",
		"pread64",
		"preadv",
		"pselect",
		"pthread_barrier_wait",
		"pthread_clockjoin_np",
		"pthread_cond_clockwait",
		"pthread_cond_timedwait",
		"pthread_cond_wait",
		"pthread_join",
		"pthread_timedjoin_np",
		"pwrite",
		"pwrite64",
		"read",
		"read_chk",
		"readv",
		"recv",
		"recv_chk",
		"recvfrom",
		"recvmmsg",
		"recvmsg",
		"sched_yield",
		"select",
		"sem_clockwait",
		"sem_timedwait",
		"sem_wait",
		"semop",
		"semtimedop",
		"send",
		"sendfile",
		"sendfile64",
		"sendmmsg",
		"sendmsg",
		"sendto",
		"sigsuspend",
		"sigtimedwait",
		"sigwait",
		"sigwaitinfo",
		"sleep",
		"usleep",
		"wait",
		"wait3",
		"wait4",
		"waitid",
		"waitpid",
		"write",
		"writev",
	};

	while (*name == '_')
		name++;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = strlen(names[i]);

		if (strncmp(name, names[i], len) == 0 && (!name[len] || name[len] == '@'))
			return true;
	}
	return strncmp(name, "libc_", 5) == 0 && may_wait_in(name + 5);
}

/*
 * A function without a name, reached by a jump from one that has one (sem_wait). The C library's
 * semaphores and conditions wait with FUTEX_WAIT_BITSET, its own locks with FUTEX_WAIT.
 */
static bool is_timed_wait(const struct remote *t)
{
	return t->number == SYS_futex && (t->back.rsi & 0x7f) == FUTEX_WAIT_BITSET;
}

static bool name_of(const struct image *img, uint64_t vaddr, char *ret_name, size_t cap)
{
	struct elf_sym sym;

	if (!img->syms || elf_syms_find(img->syms, vaddr, &sym) < 0)
		return false;
	snprintf(ret_name, cap, "%.*s", (int)sym.name_len, sym.name);
	return true;
}

/* A frame of the walk, from the inside out. */
struct frame_at {
	const struct image *img;
	uint64_t vaddr;
};

/* Waits in the C library: by the outermost of its functions that the program has called. */
struct waiting {
	bool have_entry;
	char entry[64];
};

static void waits_in(struct waiting *w, const struct frame_at *f)
{
	char called[64];

	w->have_entry = name_of(f->img, f->vaddr, called, sizeof(called));
	if (w->have_entry)
		memcpy(w->entry, called, sizeof(w->entry));
}

/* How near to its descriptor the stack of a thread begins; static thread-local storage is between them. */
#define NEAR_TLS (64 << 10)
/* Below the stack pointer, for a frame with all vector registers, and what is called. */
#define STACK_ROOM (32 << 10)

static int on_stack(void *ctx, const struct proc_map *map)
{
	uint64_t sp = *(const uint64_t *)ctx;

	return sp - STACK_ROOM >= map->start && sp < map->end && map->perms & PROC_MAP_WRITE;
}

/*
 * It computes on the stack that it was started with, and not on that of a coroutine, a goroutine or a handler,
 * which may be too small, or somebody's who is not to be walked. `begins`: where the walk ended.
 */
static bool is_on_own_stack(const struct safe *s, const struct remote *t, uint64_t begins)
{
	uint64_t sp = t->regs.rsp, tls = t->regs.fs_base;

	if (t->tid == t->pid)
		return sp >= s->stack_start && begins <= s->stack_end && sp < begins;
	return sp < begins && begins <= tls && tls - begins < NEAR_TLS &&
	       proc_maps_each(t->pid, on_stack, &sp, NULL) == 1;
}

int safe_check(struct safe *s, const struct remote *t, struct err *e)
{
	const struct user_regs_struct *r = &t->regs;
	struct walk w = {
		.pc = r->rip,
		.regs = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
			  r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15 },
		.exact = true,
	};
	bool in_library = true, computes = false, below_library = false;
	struct waiting waiting = { 0 };

	for (int i = 0; i < FRAMES_MAX; i++) {
		uint64_t vaddr = 0;
		const char *name;
		const struct image *img = image_at(s, w.pc - !w.exact, &vaddr, &name);
		struct frame_at frame = { img, vaddr };
		struct row_at at = { .vaddr = vaddr };
		struct cfi_fde fde;
		uint32_t ix;

		if (!img)
			return err_set(e, -EAGAIN, "its stack goes through %s", name);
		if (img->kind == IMAGE_LOADER || img->kind == IMAGE_ALLOCATOR)
			return err_set(e, -EAGAIN, "it is in %s", name);
		in_library &= img->kind == IMAGE_LIBC;
		if (i == 0)
			computes = !in_library;
		if (t->running && !computes)
			return err_set(e, -EAGAIN, "it is at work in %s", name);
		if (in_library)
			waits_in(&waiting, &frame);
		if (cfi_find(img->cfi, vaddr, &ix) < 0)
			return err_set(e, -EAGAIN, "its stack goes through %s", name);
		fde = cfi_fde_at(img->cfi, ix);
		if (fde.signal)
			return err_set(e, -EAGAIN, "it is in a signal handler");
		cfi_rows(img->cfi, ix, on_row, &at);
		if (!at.found || step(s, &w, &at.rules, fde.ra_reg) < 0)
			return err_set(e, -EAGAIN, "its stack goes through %s", name);
		/* Called back by the C library, which may hold what it needs for itself meanwhile. */
		if (computes && below_library && img->kind != IMAGE_LIBC && !w.ended)
			return err_set(e, -EAGAIN, "it was called by the C library");
		below_library |= img->kind == IMAGE_LIBC;
		if (!w.ended)
			continue;
		if (computes)
			return is_on_own_stack(s, t, w.regs[REG_SP])
				       ? 0
				       : err_set(e, -EAGAIN,
						 "it is on a stack that is not its thread's");
		if (in_library && waiting.have_entry)
			return err_set(e, -EAGAIN, "it is a thread of the C library");
		return (waiting.have_entry ? may_wait_in(waiting.entry) : is_timed_wait(t))
			       ? 0
			       : err_set(e, -EAGAIN, "it is in %s",
					 *waiting.entry ? waiting.entry : "the C library");
	}
	return err_set(e, -EAGAIN, "its stack is deeper than %d frames", FRAMES_MAX);
}

#else

#include <errno.h>

int safe_new(pid_t pid, int mem_fd, struct safe **ret_safe, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "stacks are walked here on x86-64 only");
}

void safe_free(struct safe *s)
{
}

int safe_check(struct safe *s, const struct remote *thread, struct err *e)
{
	return -EAGAIN;
}

#endif
