/*
 * The thread that exchanges what a running program calls, when the library is injected.
 *
 * A module calls malloc through words of its own data, which the dynamic linker has set: those of
 * its relocations (JMP_SLOT, GLOB_DAT, a pointer in data). Each that holds the real function, or the
 * stub that would look it up, gets ours instead, in one store; what was there is kept and put back
 * in the end, where ours is there still. No code is written. Pages that were made read-only after
 * relocation are writable for as long as their words are exchanged.
 *
 * All of it happens within dl_iterate_phdr(), while no module can be unmapped. A module that is just
 * being relocated is left alone until it is done.
 *
 * The library stays mapped in the end, since threads may be in it, and pointers to its functions may
 * have been kept: they hand on calls, and nobody listens. So does it in a child that was forked
 * meanwhile, until that executes another program.
 */
#include "preload/agent.h"

#include "preload/alloc.h"
#include "preload/exact.h"
#include "preload/python.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define FIRST_COMMAND_MS 2000 /* memscope opens the pipes at once, or has ended */

#if defined(__x86_64__)
#define RELOC_SLOT R_X86_64_JUMP_SLOT
#define RELOC_GOT  R_X86_64_GLOB_DAT
#define RELOC_WORD R_X86_64_64
#else
#define RELOC_SLOT R_AARCH64_JUMP_SLOT
#define RELOC_GOT  R_AARCH64_GLOB_DAT
#define RELOC_WORD R_AARCH64_ABS64
#endif

EXPORT void *memscope_alloc_agent(struct agent_block *block);

/* --- what is mapped how ----------------------------------------------------------------------- */

struct range {
	uintptr_t start, end;
	int prot;
};

/* Memory of the kernel's, since malloc is what is being exchanged. */
static struct {
	struct range *ranges;
	size_t n, cap;
} maps;

static uintptr_t hex(const char **at)
{
	uintptr_t v = 0;

	for (;; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return v;
	}
}

static bool range_add(const char *line)
{
	struct range r;

	if (maps.n == maps.cap) {
		size_t cap = maps.cap ? 2 * maps.cap : 4096;
		void *more = mmap(NULL, cap * sizeof(r), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (more == MAP_FAILED)
			return false;
		if (maps.cap) {
			memcpy(more, maps.ranges, maps.n * sizeof(r));
			munmap(maps.ranges, maps.cap * sizeof(r));
		}
		maps.ranges = more;
		maps.cap = cap;
	}
	r.start = hex(&line);
	if (*line++ != '-')
		return true;
	r.end = hex(&line);
	if (strnlen(line, 5) < 5)
		return true;
	r.prot = (line[1] == 'r' ? PROT_READ : 0) | (line[2] == 'w' ? PROT_WRITE : 0) |
		 (line[3] == 'x' ? PROT_EXEC : 0);
	maps.ranges[maps.n++] = r;
	return true;
}

static void maps_forget(void)
{
	if (maps.cap)
		munmap(maps.ranges, maps.cap * sizeof(struct range));
	memset(&maps, 0, sizeof(maps));
}

/* false: they are not known. */
static bool maps_read(void)
{
	static char buf[8192];
	size_t used = 0;
	bool good = true;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	maps_forget();
	if (fd < 0)
		return false;
	while (good) {
		ssize_t n = read(fd, buf + used, sizeof(buf) - 1 - used);
		char *line = buf, *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			good = n == 0;
			break;
		}
		used += (size_t)n;
		buf[used] = '\0';
		while (good && (end = memchr(line, '\n', used - (size_t)(line - buf)))) {
			*end = '\0';
			good = range_add(line);
			line = end + 1;
		}
		used -= (size_t)(line - buf);
		memmove(buf, line, used);
		good = good && used < sizeof(buf) - 1;
	}
	close(fd);
	return good && maps.n;
}

/* -1: not mapped when that was read. */
static int prot_of(uintptr_t addr)
{
	size_t low = 0, high = maps.n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (maps.ranges[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < maps.n && maps.ranges[low].start <= addr ? maps.ranges[low].prot : -1;
}

/* --- words ------------------------------------------------------------------------------------ */

#define FUNCTIONS_MAX 64

static struct {
	struct alloc_function f[FUNCTIONS_MAX];
	unsigned n;
} functions;

#define PLACES_MAX 65536

/* What was there before. Stays: a thread may have read the word just now, but nobody reads this. */
static struct place {
	uintptr_t *word;
	uintptr_t before;
} * places;
static uint32_t n_places;

struct pass {
	bool undo;
	bool gives_back; /* of two passes: those that take blocks back, and the others */
	bool begun;      /* nobody forks, and what is mapped how was read */
	bool know_maps;
	uintptr_t page; /* the one that is writable for now; 0: none                  */
	int page_prot;
	size_t page_bytes;
	struct agent_answer answer;
};

/* A module, as far as it matters here. */
struct module {
	const struct dl_phdr_info *info;
	const char *strings;
	const ElfW(Sym) * symbols;
	uintptr_t relro_start, relro_end;
};

static void page_close(struct pass *p)
{
	if (p->page)
		mprotect((void *)p->page, p->page_bytes, p->page_prot);
	p->page = 0;
}

static bool page_open(struct pass *p, uintptr_t addr)
{
	uintptr_t page = addr & ~(p->page_bytes - 1);
	int prot = prot_of(addr);

	if (page == p->page)
		return true;
	page_close(p);
	if (prot < 0 || !(prot & PROT_READ) || prot & PROT_EXEC)
		return false;
	if (prot & PROT_WRITE)
		return true;
	if (mprotect((void *)page, p->page_bytes, prot | PROT_WRITE) < 0)
		return false;
	p->page = page;
	p->page_prot = prot;
	return true;
}

/* The module's own part of [start, end) that has `flag`. */
static bool in_segment(const struct module *m, uintptr_t addr, uint32_t flag)
{
	for (int i = 0; i < m->info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &m->info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & flag &&
		    addr - (m->info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
			return true;
	}
	return false;
}

static void exchange(struct pass *p, uintptr_t *word, uintptr_t before,
		     const struct alloc_function *f)
{
	if (n_places == PLACES_MAX || !page_open(p, (uintptr_t)word)) {
		p->answer.left++;
		return;
	}
	places[n_places] = (struct place){ word, before };
	if (__atomic_compare_exchange_n(word, &before, (uintptr_t)f->ours, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED)) {
		n_places++;
		p->answer.places++;
	}
}

static void put_back(struct pass *p, uintptr_t *word, const struct alloc_function *f)
{
	uintptr_t ours = (uintptr_t)f->ours, before = (uintptr_t)f->real;

	for (uint32_t i = n_places; i-- > 0;)
		if (places[i].word == word) {
			before = places[i].before;
			break;
		}
	if (!page_open(p, (uintptr_t)word)) {
		p->answer.left++;
		return;
	}
	if (__atomic_compare_exchange_n(word, &ours, before, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		p->answer.places++;
}

static void relocation(struct pass *p, const struct module *m, const ElfW(Rela) * rela)
{
	uint32_t type = ELF64_R_TYPE(rela->r_info);
	const ElfW(Sym) *sym = &m->symbols[ELF64_R_SYM(rela->r_info)];
	uintptr_t *word = (uintptr_t *)(m->info->dlpi_addr + rela->r_offset), value;
	const char *name;

	if ((type != RELOC_SLOT && type != RELOC_GOT && type != RELOC_WORD) ||
	    (type == RELOC_WORD && rela->r_addend) || !ELF64_R_SYM(rela->r_info) ||
	    (uintptr_t)word % sizeof(*word) || !in_segment(m, (uintptr_t)word, PF_W))
		return;
	name = m->strings + sym->st_name;
	for (unsigned i = 0; i < functions.n; i++) {
		const struct alloc_function *f = &functions.f[i];

		if (f->gives_back != p->gives_back || *name != *f->name ||
		    strcmp(name, f->name) != 0)
			continue;
		value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (p->undo) {
			if (value == (uintptr_t)f->ours)
				put_back(p, word, f);
		} else if (value == (uintptr_t)f->real ||
			   (type == RELOC_SLOT && in_segment(m, value, PF_X) &&
			    (sym->st_shndx == SHN_UNDEF ||
			     in_segment(m, (uintptr_t)f->real, PF_X)))) {
			exchange(p, word, value, f);
		}
		return;
	}
}

/* Its data that is to be read-only is not yet: the dynamic linker is still at work there. */
static bool is_loading(const struct module *m)
{
	for (uintptr_t at = m->relro_start; at < m->relro_end; at += 4096) {
		int prot = prot_of(at);

		if (prot < 0 || prot & PROT_WRITE)
			return true;
	}
	return false;
}

/* Addresses in a dynamic section are relocated in place by some linkers, and not by others. */
static uintptr_t pointer(const struct dl_phdr_info *info, uintptr_t p)
{
	return p < info->dlpi_addr ? p + info->dlpi_addr : p;
}

/* Our own module, the dynamic linker's, the kernel's, and that of an allocator: its calls of itself
 * are no calls of the program. */
static bool is_left_alone(const struct module *m)
{
	const void *others[] = { (void *)memscope_alloc_agent, (void *)getauxval(AT_BASE),
				 (void *)getauxval(AT_SYSINFO_EHDR), NULL };

	for (unsigned i = 0; i < functions.n; i++)
		if (strcmp(functions.f[i].name, "malloc") == 0 &&
		    !in_segment(m, (uintptr_t)gnu_get_libc_version, PF_X))
			others[3] = functions.f[i].real;
	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (others[i] && in_segment(m, (uintptr_t)others[i], PF_R | PF_X))
			return true;
	return false;
}

enum { FORKS = 1, UNKNOWN }; /* why a pass ends early */

static int on_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct module m = { .info = info };
	const ElfW(Dyn) *dynamic = NULL;
	uintptr_t tables[2] = { 0 };
	size_t bytes[2] = { 0 };
	struct pass *p = ctx;
	bool rela = true;

	(void)size;
	if (!p->begun && !alloc_no_fork())
		return FORKS;
	if (!p->begun)
		p->know_maps = maps_read();
	p->begun = true;
	if (!p->know_maps)
		return UNKNOWN;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + ph->p_vaddr);
		if (ph->p_type == PT_GNU_RELRO) {
			m.relro_start = (info->dlpi_addr + ph->p_vaddr) & ~(p->page_bytes - 1);
			m.relro_end = (info->dlpi_addr + ph->p_vaddr + ph->p_memsz) &
				      ~(p->page_bytes - 1);
		}
	}
	if (!dynamic || is_left_alone(&m))
		return 0;
	if (is_loading(&m)) {
		p->answer.loading++;
		return 0;
	}
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		uintptr_t value = dynamic->d_un.d_ptr;

		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			m.symbols = (const void *)pointer(info, value);
			break;
		case DT_STRTAB:
			m.strings = (const void *)pointer(info, value);
			break;
		case DT_JMPREL:
			tables[0] = pointer(info, value);
			break;
		case DT_PLTRELSZ:
			bytes[0] = value;
			break;
		case DT_PLTREL:
			rela = value == DT_RELA;
			break;
		case DT_RELA:
			tables[1] = pointer(info, value);
			break;
		case DT_RELASZ:
			bytes[1] = value;
			break;
		}
	}
	if (!m.symbols || !m.strings || !rela)
		return 0;
	for (int t = 0; t < 2; t++)
		for (size_t at = 0; tables[t] && at + sizeof(ElfW(Rela)) <= bytes[t];
		     at += sizeof(ElfW(Rela)))
			relocation(p, &m, (const ElfW(Rela) *)(tables[t] + at));
	page_close(p);
	return 0;
}

/* Blocks are known to be released before any is a sample; at the end it is the other way round. */
static struct agent_answer walk(bool undo)
{
	struct pass p = { .undo = undo, .page_bytes = (size_t)sysconf(_SC_PAGESIZE) };

	for (int i = 0; i < 2; i++) {
		p.gives_back = (i == 0) != undo;
		p.begun = false; /* between the two, libraries come and go */
		p.answer.loading = 0;
		/* Who forks may need the dynamic linker, which is ours during a pass: so it is let go. */
		while (dl_iterate_phdr(on_module, &p) == FORKS)
			usleep(100);
		page_close(&p);
		if (!p.know_maps)
			p.answer.left++;
		maps_forget();
		if (undo && i == 1)
			n_places = 0;
		alloc_may_fork();
	}
	p.answer.rate = alloc_rate();
	return p.answer;
}

/* --- what was called before ------------------------------------------------------------------- */

/* Paths of libraries in the order in which functions are looked for, and where the program is. */
static struct {
	char paths[64 * 256];
	size_t used;
	uintptr_t program_start, program_end;
	bool begun;
} loaded;

static int add_loaded(struct dl_phdr_info *info, size_t size, void *ctx)
{
	size_t len = strlen(info->dlpi_name) + 1;

	(void)size;
	(void)ctx;
	for (int i = 0; i < info->dlpi_phnum && !loaded.begun; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD)
			continue;
		if (!loaded.program_end)
			loaded.program_start = start;
		loaded.program_end = start + ph->p_memsz;
	}
	if (loaded.begun && len > 1 && len <= sizeof(loaded.paths) - loaded.used) {
		memcpy(loaded.paths + loaded.used, info->dlpi_name, len);
		loaded.used += len;
	}
	loaded.begun = true;
	return 0;
}

/*
 * As the dynamic linker would bind a call. For a program at a fixed address it gives its own stub
 * as the address of a function; then it is the first library's that has one.
 */
static void *find_function(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);
	Dl_info at;

	if (!loaded.begun)
		dl_iterate_phdr(add_loaded, NULL);
	if ((uintptr_t)f < loaded.program_start || (uintptr_t)f >= loaded.program_end)
		return f;
	for (const char *path = loaded.paths; path < loaded.paths + loaded.used;
	     path += strlen(path) + 1) {
		void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

		f = library ? dlsym(library, name) : NULL;
		if (library)
			dlclose(library);
		/* Its own, not that of one it needs. */
		if (f && dladdr(f, &at) && strcmp(at.dli_fname, path) == 0)
			return f;
	}
	return NULL;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* The process whose thread is at work: in a forked child it is another's, which is not there. */
static int agent_of;

static int prepare(const struct agent_block *block)
{
	static bool before;

	if (alloc_inject((double)block->rate, block->exact, find_function) < 0)
		return AGENT_PRELOADED;
	if (!places) {
		void *memory = mmap(NULL, PLACES_MAX * sizeof(*places), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory == MAP_FAILED)
			return AGENT_FAILED;
		places = memory;
	}
	python_look();
	if (before && !n_places)
		alloc_forget();
	before = true;
	functions.n = 0;
	for (unsigned i = 0; functions.n < FUNCTIONS_MAX; i++) {
		if (!alloc_function_at(i, &functions.f[functions.n]))
			break;
		functions.n += functions.f[functions.n].real != NULL;
	}
	return AGENT_READY;
}

/* The next command; 0 when there will be none. */
static char command(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;
	ssize_t n;
	int r;

	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return 0;
	do
		n = read(fd, &c, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 ? c : 0;
}

static void answer(int fd, const struct agent_answer *a)
{
	/* Less than PIPE_BUF: whole or not at all. SIGPIPE is blocked in this thread, and ends with it. */
	(void)!write(fd, a, sizeof(*a));
}

void *memscope_alloc_agent(struct agent_block *block)
{
	uint32_t python = PYTHON_NONE;
	int commands[2], answers[2], none = 0, self = getpid(), timeout = FIRST_COMMAND_MS,
				     area = -1;
	struct agent_answer a = { 0 };
	size_t bytes = block->bytes;
	bool exact = block->exact;
	sigset_t all;
	char c;

	sigfillset(&all); /* but for those that the C library keeps for itself */
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_detach(pthread_self());
	prctl(PR_SET_NAME, "memscope-alloc");
	block->tid = gettid();
	if (!__atomic_compare_exchange_n(&agent_of, &none, self, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED) &&
	    (none == self || !__atomic_compare_exchange_n(&agent_of, &none, self, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))) {
		__atomic_store_n(&block->state, AGENT_BUSY, __ATOMIC_RELEASE);
		return NULL;
	}
	if (pipe2(commands, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0) {
		__atomic_store_n(&block->state, AGENT_FAILED, __ATOMIC_RELEASE);
		goto out;
	}
	block->command_fd = commands[1];
	block->answer_fd = answers[0];
	if (exact)
		block->area_fd = area =
			memfd_create("memscope-exact", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	none = exact && area < 0 ? AGENT_FAILED : prepare(block);
	__atomic_store_n(&block->state, (uint32_t)none, __ATOMIC_RELEASE);
	if (none != AGENT_READY)
		goto out;
	while ((c = command(commands[0], timeout)) == AGENT_HOOK || c == AGENT_STAY ||
	       (c == AGENT_EXACT && exact)) {
		if (c == AGENT_STAY) {
			close(commands[1]);
			close(answers[0]);
			timeout = -1;
		} else if (c == AGENT_EXACT) {
			a.places = (uint32_t)-exact_begin(area);
			close(area);
		} else {
			a = walk(false);
			a.python = python_want(true);
		}
		answer(answers[1], &a);
	}
	if (a.python)
		python = python_want(true);
	python_want(false);
	a = walk(true);
	a.python = python;
	if (exact)
		alloc_exact_end();
	munmap(block, bytes); /* ours since AGENT_READY, whether memscope is there or not */
	answer(answers[1], &a);
out:
	__atomic_store_n(&agent_of, 0, __ATOMIC_RELEASE);
	return NULL;
}
