#include "heap/snapshot/core.h"

#include "base/grow.h"
#include "base/strbuf.h"
#include "proc/peek.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

enum { PAGE = HEAP_PAGE, PIECE = 256, AUXV_MAX = 4096, SEGMENTS_MAX = 1 << 20 };

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_OF_FILE (1ULL << 61)
#define PM_THERE   (3ULL << 62)

struct segment {
	uint64_t start, end, file_bytes, at;
	uint32_t flags;
	bool live; /* its pages are read from the process now, else they are the copy's */
};

struct core {
	const struct copy *copy;
	const struct new_file *file;
	pid_t pid;
	int pagemap_fd;
	struct segment *segments;
	uint32_t n, room;
	struct strbuf notes, mapped, names; /* mapped, names: the two parts of NT_FILE */
	uint64_t n_mapped, bytes;           /* bytes: of memory, to predict */
	int error;
};

static void core_fini(struct core *c)
{
	if (c->pagemap_fd >= 0)
		close(c->pagemap_fd);
	free(c->segments);
	strbuf_free(&c->notes);
	strbuf_free(&c->mapped);
	strbuf_free(&c->names);
}

/* --- what is in memory --- */

static bool is_copied(const struct core *c, uint64_t start, uint64_t end)
{
	uint32_t n, low = 0, high;
	const struct copy_run *runs = copy_runs(c->copy, &n);

	for (high = n; low < high;) {
		uint32_t mid = low + (high - low) / 2;

		if (runs[mid].addr + runs[mid].len <= start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && runs[low].addr < end;
}

/* Calls fn() for each page from `start` on that was written since it was mapped. */
static uint64_t each_written(struct core *c, const struct segment *s,
			     void (*fn)(struct core *c, const struct segment *s, uint64_t page))
{
	uint64_t words[PIECE], found = 0;

	for (uint64_t addr = s->start; addr < s->end;) {
		ssize_t n = pread(c->pagemap_fd, words, sizeof(words), (off_t)(addr / PAGE * 8));

		if (n < 8)
			break;
		for (ssize_t i = 0; i < n / 8 && addr < s->end; i++, addr += PAGE)
			if (words[i] & PM_THERE && !(words[i] & PM_OF_FILE)) {
				found++;
				if (fn)
					fn(c, s, addr);
			}
	}
	return found;
}

static bool begins_as_elf(const struct core *c, uint64_t addr)
{
	char magic[SELFMAG];

	return peek(c->pid, addr, magic, sizeof(magic)) && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static int on_map(void *ctx, const struct proc_map *m)
{
	struct core *c = ctx;
	struct segment s = { .start = m->start, .end = m->end };

	if (!(m->perms & (PROC_MAP_READ | PROC_MAP_WRITE | PROC_MAP_EXEC)) ||
	    strncmp(m->path, "[vvar", 5) == 0 || strcmp(m->path, "[vsyscall]") == 0)
		return 0;
	if (m->ino) {
		uint64_t row[3] = { m->start, m->end, m->file_off / PAGE };

		strbuf_add(&c->mapped, row, sizeof(row));
		strbuf_add(&c->names, m->path, strlen(m->path) + 1);
		c->n_mapped++;
	}
	s.flags = (m->perms & PROC_MAP_READ ? PF_R : 0) | (m->perms & PROC_MAP_WRITE ? PF_W : 0) |
		  (m->perms & PROC_MAP_EXEC ? PF_X : 0);
	if (is_copied(c, s.start, s.end)) {
		s.file_bytes = s.end - s.start;
	} else if (!(m->perms & PROC_MAP_SHARED) && m->perms & PROC_MAP_READ) {
		uint64_t pages = each_written(c, &s, NULL);

		s.live = true;
		if (pages || strcmp(m->path, "[vdso]") == 0)
			s.file_bytes = s.end - s.start;
		else if (m->ino && !m->file_off && begins_as_elf(c, s.start))
			s.file_bytes = PAGE;
		c->bytes += pages * PAGE;
	}
	if (c->n >= SEGMENTS_MAX || !GROW(c->segments, c->n, c->room))
		return -ENOMEM;
	c->segments[c->n++] = s;
	return 0;
}

/* --- notes --- */

static void put_note(struct core *c, uint32_t type, const void *data, size_t len)
{
	static const char zeros[4];
	Elf64_Nhdr h = { 5, (Elf64_Word)len, type };

	strbuf_add(&c->notes, &h, sizeof(h));
	strbuf_add(&c->notes, "CORE\0\0\0", 8);
	strbuf_add(&c->notes, data, len);
	strbuf_add(&c->notes, zeros, (4 - len % 4) % 4);
}

static ssize_t read_file(pid_t pid, const char *name, void *buf, size_t cap)
{
	_cleanup_(closep) int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : read(fd, buf, cap);
}

static void put_process(struct core *c)
{
	struct elf_prpsinfo info = { 0 };
	char stat[1024], *at;
	int parent = 0, group = 0, session = 0;
	ssize_t n = read_file(c->pid, "stat", stat, sizeof(stat) - 1);

	stat[n > 0 ? n : 0] = '\0';
	at = strrchr(stat, ')');
	if (at && sscanf(at, ") %c %d %d %d", &info.pr_sname, &parent, &group, &session) == 4) {
		info.pr_ppid = parent;
		info.pr_pgrp = group;
		info.pr_sid = session;
	}
	info.pr_pid = c->pid;
	n = read_file(c->pid, "comm", info.pr_fname, sizeof(info.pr_fname) - 1);
	info.pr_fname[n > 0 ? n - (info.pr_fname[n - 1] == '\n') : 0] = '\0';
	n = read_file(c->pid, "cmdline", info.pr_psargs, sizeof(info.pr_psargs) - 1);
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!info.pr_psargs[i])
			info.pr_psargs[i] = ' ';
	put_note(c, NT_PRPSINFO, &info, sizeof(info));
}

static void put_auxv(struct core *c)
{
	char auxv[AUXV_MAX];
	ssize_t n = read_file(c->pid, "auxv", auxv, sizeof(auxv));

	if (n > 0)
		put_note(c, NT_AUXV, auxv, (size_t)n);
}

/* Number of rows, size of a page, rows of start, end and offset in pages, names. */
static void put_files(struct core *c)
{
	_cleanup_(strbuf_free) struct strbuf note = { 0 };
	uint64_t head[2] = { c->n_mapped, PAGE };

	strbuf_add(&note, head, sizeof(head));
	if (c->n_mapped) {
		strbuf_add(&note, c->mapped.s, c->mapped.len);
		strbuf_add(&note, c->names.s, c->names.len);
	}
	if (!strbuf_oom(&note))
		put_note(c, NT_FILE, note.s, note.len);
}

static void put_thread(struct core *c, const struct stopped_thread *t)
{
	struct elf_prstatus status;

	memset(&status, 0, sizeof(status));
	status.pr_pid = t->tid;
	status.pr_fpvalid = t->core_fp_bytes > 0;
	memcpy(&status.pr_reg, t->regs,
	       t->n_regs * 8 < sizeof(status.pr_reg) ? t->n_regs * 8 : sizeof(status.pr_reg));
	put_note(c, NT_PRSTATUS, &status, sizeof(status));
	if (t->core_fp_bytes)
		put_note(c, NT_PRFPREG, t->fp, t->core_fp_bytes);
}

/* The main thread first: that is the one readers begin with. */
static void put_notes(struct core *c)
{
	const struct stopped_thread *t;
	uint32_t n, main = 0;

	t = copy_threads(c->copy, &n);
	for (uint32_t i = 0; i < n; i++)
		if (t[i].tid == c->pid)
			main = i;
	if (n)
		put_thread(c, &t[main]);
	put_process(c);
	put_auxv(c);
	put_files(c);
	for (uint32_t i = 0; i < n; i++)
		if (i != main)
			put_thread(c, &t[i]);
}

/* --- the file --- */

static void put(struct core *c, uint64_t at, const void *bytes, uint64_t len)
{
	if (!c->error)
		c->error = new_file_put(c->file, at, bytes, len);
}

static void put_copied(struct core *c, const struct segment *s)
{
	uint32_t n;
	const struct copy_run *runs = copy_runs(c->copy, &n);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t from = runs[i].addr > s->start ? runs[i].addr : s->start;
		uint64_t end =
			runs[i].addr + runs[i].len < s->end ? runs[i].addr + runs[i].len : s->end;
		const uint8_t *bytes;

		if (from >= end)
			continue;
		bytes = copy_stored(c->copy, runs[i].at + (from - runs[i].addr), end - from);
		if (bytes)
			put(c, s->at + (from - s->start), bytes, end - from);
	}
}

static void put_live_page(struct core *c, const struct segment *s, uint64_t page)
{
	uint8_t bytes[PAGE];

	if (peek(c->pid, page, bytes, PAGE))
		put(c, s->at + (page - s->start), bytes, PAGE);
}

static void put_segments(struct core *c)
{
	for (uint32_t i = 0; i < c->n && !c->error; i++) {
		const struct segment *s = &c->segments[i];

		if (!s->live)
			put_copied(c, s);
		else if (s->file_bytes == PAGE || each_written(c, s, put_live_page) == 0)
			for (uint64_t at = 0; at < s->file_bytes; at += PAGE)
				put_live_page(c, s, s->start + at);
	}
}

static uint64_t lay_out(struct core *c, uint64_t at)
{
	at = (at + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	for (uint32_t i = 0; i < c->n; i++) {
		c->segments[i].at = at;
		at += c->segments[i].file_bytes;
	}
	return at;
}

static void put_header(struct core *c, uint64_t sections_at)
{
	uint32_t n = c->n + 1;
	bool many = n >= PN_XNUM;
	Elf64_Ehdr h = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT, ELFOSABI_NONE },
		.e_type = ET_CORE,
		.e_machine = MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_shoff = many ? sections_at : 0,
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (Elf64_Half)(many ? PN_XNUM : n),
		.e_shentsize = many ? sizeof(Elf64_Shdr) : 0,
		.e_shnum = many,
	};
	Elf64_Shdr section = { .sh_info = n };

	put(c, 0, &h, sizeof(h));
	if (many)
		put(c, sections_at, &section, sizeof(section));
}

static void put_program_headers(struct core *c, uint64_t notes_at)
{
	_cleanup_(freep) Elf64_Phdr *rows = calloc((size_t)c->n + 1, sizeof(*rows));

	if (!rows) {
		c->error = -ENOMEM;
		return;
	}
	rows[0] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_offset = notes_at, .p_filesz = c->notes.len, .p_align = 4
	};
	for (uint32_t i = 0; i < c->n; i++) {
		const struct segment *s = &c->segments[i];

		rows[i + 1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					    .p_flags = s->flags,
					    .p_offset = s->at,
					    .p_vaddr = s->start,
					    .p_filesz = s->file_bytes,
					    .p_memsz = s->end - s->start,
					    .p_align = PAGE };
	}
	put(c, sizeof(Elf64_Ehdr), rows, ((size_t)c->n + 1) * sizeof(*rows));
}

int core_write(const struct copy *copy, pid_t pid, const struct new_file *f, uint64_t *ret_bytes,
	       struct err *e)
{
	return core_write_of(proc_maps_each, copy, pid, f, ret_bytes, e);
}

int core_write_of(int (*each_map)(pid_t pid, proc_map_fn fn, void *ctx, struct err *e),
		  const struct copy *copy, pid_t pid, const struct new_file *f, uint64_t *ret_bytes,
		  struct err *e)
{
	_cleanup_(core_fini) struct core c = { .copy = copy, .file = f, .pid = pid };
	uint64_t sections_at, notes_at;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	c.pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	r = each_map(pid, on_map, &c, e);
	if (r == 0 && !c.n)
		r = -ESRCH;
	if (r < 0)
		return err_set(e, r, "process %d: its mappings cannot be read: %s", (int)pid,
			       strerror(-r));
	put_notes(&c);
	if (strbuf_oom(&c.notes) || strbuf_oom(&c.mapped) || strbuf_oom(&c.names))
		return err_set(e, -ENOMEM, "out of memory");
	sections_at = sizeof(Elf64_Ehdr) + (c.n + 1ull) * sizeof(Elf64_Phdr);
	notes_at = sections_at + sizeof(Elf64_Shdr);
	*ret_bytes = lay_out(&c, notes_at + c.notes.len);
	r = new_file_check_room(f, "a core",
				copy_facts(copy).bytes + c.bytes + notes_at + c.notes.len, e);
	if (r < 0)
		return r;
	put_header(&c, sections_at);
	put_program_headers(&c, notes_at);
	put(&c, notes_at, c.notes.s, c.notes.len);
	put_segments(&c);
	if (!c.error && ftruncate(f->fd, (off_t)*ret_bytes) < 0)
		c.error = -errno;
	return c.error < 0 ? err_set(e, c.error, "%s: cannot be written: %s", f->path,
				     strerror(-c.error))
			   : 0;
}
