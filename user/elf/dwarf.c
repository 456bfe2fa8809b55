#include "elf/dwarf.h"

#include "base/bytes.h"
#include "base/cell.h"
#include "base/strbuf.h"
#include "elf/dwarf_read.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

struct place {
	uint64_t vaddr;
	uint32_t first, n; /* of frames */
};

struct dwarf_lines {
	char *text; /* what came over the pipe; strings end in NUL in place */
	struct place *places;
	uint32_t n_places, cap_places;
	struct dwarf_frame *frames;
	uint32_t n_frames, cap_frames;
	const char *cut_short;
};

bool dwarf_present(struct elf_file *elf)
{
	return dwarf_is_packed(elf) >= 0;
}

/* --- the child --- */

/* What the child is given; -1 where there is none. */
struct given {
	int out, elf, alt;
	int spill; /* a file without a name, for unpacked sections      */
	int statm; /* its own: how much of the files it has resident    */
};

/* What a file made to break libdw could reach: nothing that is ours. */
static void enter_cell(const struct given *g)
{
	const int keep[] = { g->out, g->elf, g->alt, g->spill, g->statm };

	cell_enter(&(struct cell){ .keep = keep,
				   .n_keep = sizeof(keep) / sizeof(*keep),
				   .data_bytes = DWARF_MEMORY_MAX,
				   .file_bytes = DWARF_UNPACKED_MAX,
				   .cpu_s = DWARF_SECONDS_MAX });
}

/*
 * A file without a name for what is unpacked, -1 when nothing is packed or none can be had. Not in
 * memory: there it would cost what it is to spare.
 */
static int open_spill(struct elf_file *elf, struct elf_file *alt)
{
	_cleanup_(closep) int fd = -1;
	struct statfs fs;

	if (dwarf_is_packed(elf) <= 0 && !(alt && dwarf_is_packed(alt) > 0))
		return -1;
	fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return -1;
	return TAKE_FD(fd);
}

static pid_t start_child(struct elf_file *elf, struct elf_file *alt, dwarf_work work,
			 const void *ctx, int *ret_fd)
{
	_cleanup_(closep) int spill = open_spill(elf, alt), in = -1, out = -1;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	in = p[0];
	out = p[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		struct given g = {
			.out = out,
			.elf = elf_file_fd(elf),
			.alt = alt ? elf_file_fd(alt) : -1,
			.spill = spill,
			.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC),
		};

		enter_cell(&g);
		work(ctx, elf, alt, g.spill, g.statm, g.out);
		_exit(0);
	}
	*ret_fd = TAKE_FD(in);
	return pid;
}

/* --- its answers --- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

static const char too_long[] = "debug info takes too long to read";

/* Everything until the child closes its end. NULL, or why the rest is missing. */
static const char *read_answers(int fd, int64_t max_ms, struct strbuf *b)
{
	int64_t end = now_ms() + max_ms;
	_cleanup_(freep) char *buf = malloc(256 << 10);

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = end - now_ms();
		ssize_t n;

		if (!buf || strbuf_oom(b))
			return "out of memory for debug info";
		if (b->len > DWARF_ANSWER_MAX)
			return "debug info has too much to say";
		if (left <= 0)
			return too_long;
		n = poll(&p, 1, (int)left);
		if (n < 0 && errno != EINTR)
			return "debug info cannot be read";
		if (n <= 0)
			continue;
		n = read(fd, buf, 256 << 10);
		if (n == 0)
			return NULL;
		if (n > 0)
			strbuf_add(b, buf, (size_t)n);
		else if (errno != EINTR)
			return "debug info cannot be read";
	}
}

static int reserve(void **list, uint32_t *cap, uint32_t want, size_t size)
{
	uint32_t n = *cap ? *cap * 2 : 1024;
	void *grown;

	if (want <= *cap)
		return 0;
	if (n < want)
		n = want;
	grown = reallocarray(*list, n, size);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	*cap = n;
	return 0;
}

bool dwarf_string_at(const struct dwarf_strings *s, uint32_t number, const char **ret)
{
	if (number > s->n)
		return false;
	*ret = number ? s->at[number - 1] : NULL;
	return true;
}

/*
 * A string's bytes, shifted one down over the length before them, to make room for its NUL. A NUL
 * within it cuts it.
 */
int dwarf_strings_take(struct bytes *b, struct dwarf_strings *s)
{
	uint32_t len;
	struct bytes part;
	char *text;

	if (bytes_u32(b, &len) < 0 || bytes_take(b, len, &part) < 0)
		return -EBADMSG;
	if (reserve((void **)&s->at, &s->cap, s->n + 1, sizeof(*s->at)) < 0)
		return -ENOMEM;
	text = (char *)part.data - 1;
	memmove(text, text + 1, len);
	text[len] = '\0';
	s->at[s->n++] = text;
	return 0;
}

static int take_frame(struct bytes *b, const struct dwarf_strings *s, struct dwarf_frame *ret)
{
	uint32_t function, file;

	if (bytes_u32(b, &function) < 0 || bytes_u32(b, &file) < 0 ||
	    bytes_u32(b, &ret->line) < 0 || bytes_u32(b, &ret->start_line) < 0 ||
	    !dwarf_string_at(s, function, &ret->function) || !dwarf_string_at(s, file, &ret->file))
		return -EBADMSG;
	return 0;
}

static int take_answer(struct dwarf_lines *l, struct bytes *b, const struct dwarf_strings *s)
{
	struct place p = { .first = l->n_frames };

	if (bytes_u64(b, &p.vaddr) < 0 || bytes_u32(b, &p.n) < 0 || !p.n || p.n > DWARF_FRAMES_MAX)
		return -EBADMSG;
	if (reserve((void **)&l->frames, &l->cap_frames, l->n_frames + p.n, sizeof(*l->frames)) <
		    0 ||
	    reserve((void **)&l->places, &l->cap_places, l->n_places + 1, sizeof(*l->places)) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < p.n; i++) {
		int r = take_frame(b, s, &l->frames[l->n_frames + i]);

		if (r < 0)
			return r;
	}
	l->n_frames += p.n;
	l->places[l->n_places++] = p;
	return 0;
}

/* 0 and `*ret_code` at its 'E'; -ENODATA when it stops before. */
static int take_all(struct dwarf_lines *l, struct bytes b, int32_t *ret_code)
{
	struct dwarf_strings s = { 0 };
	uint8_t tag;
	int r = 0;

	while (r == 0) {
		if (bytes_u8(&b, &tag) < 0) {
			r = -ENODATA;
		} else if (tag == 'S') {
			r = dwarf_strings_take(&b, &s);
		} else if (tag == 'A') {
			r = take_answer(l, &b, &s);
		} else if (tag == 'E') {
			r = bytes_u32(&b, (uint32_t *)ret_code) < 0 ? -ENODATA : 0;
			break;
		} else {
			r = -EBADMSG;
		}
	}
	free(s.at);
	return r;
}

static int compare_places(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->first < b->first ? -1 : 1;
}

static const char *why_ended(int status)
{
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGPROF ||
				    WTERMSIG(status) == SIGKILL))
		return too_long;
	return "debug info is damaged";
}

static void reap(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
}

int dwarf_answers_parse(char *text, size_t len, struct dwarf_lines **ret_lines, int32_t *ret_code)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *l = calloc(1, sizeof(*l));
	int r;

	if (!l) {
		free(text);
		return -ENOMEM;
	}
	l->text = text;
	*ret_code = 0;
	r = take_all(l, bytes_of(text, len), ret_code);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		l->cut_short = "debug info is damaged";
	if (l->n_places)
		qsort(l->places, l->n_places, sizeof(*l->places), compare_places);
	*ret_lines = TAKE_PTR(l);
	return 0;
}

static const char too_much_memory[] = "debug info needs more memory than it may have";

/* The sentence for a reader that answered nothing at all. */
static int nothing(const char *name, const char *cut_short, int32_t code, struct err *e)
{
	if (code == -EFBIG)
		return err_set(e, code, "%s: %s", name, too_much_memory);
	if (code == -ETIMEDOUT)
		return err_set(e, code, "%s: %s", name, too_long);
	if (cut_short)
		return err_set(e, -EBADMSG, "%s: %s", name, cut_short);
	return err_set(e, -ENOENT, "%s: debug info says nothing about these addresses", name);
}

int dwarf_child_ask(struct elf_file *elf, struct elf_file *alt, dwarf_work work, const void *ctx,
		    int64_t max_ms, char **ret_text, size_t *ret_len, int *ret_status,
		    const char **ret_cut_short, struct err *e)
{
	const char *name = elf_file_name(elf);
	_cleanup_(closep) int fd = -1;
	struct strbuf text = { 0 };
	pid_t pid;

	if (elf_file_fd(elf) < 0 || !dwarf_present(elf))
		return err_set(e, -ENOENT, "%s: no debug info", name);
	if (alt && elf_file_fd(alt) < 0)
		alt = NULL;
	if (max_ms > DWARF_SECONDS_MAX * 1000ll)
		max_ms = DWARF_SECONDS_MAX * 1000ll;
	pid = start_child(elf, alt, work, ctx, &fd);
	if (pid < 0)
		return err_set(e, pid, "%s: no process to read its debug info: %s", name,
			       strerror(-pid));
	*ret_cut_short = read_answers(fd, max_ms, &text);
	if (*ret_cut_short)
		kill(pid, SIGKILL);
	reap(pid, ret_status);
	*ret_len = text.len;
	if (strbuf_oom(&text)) {
		strbuf_free(&text);
		return err_set(e, -ENOMEM, "%s: out of memory for debug info", name);
	}
	*ret_text = strbuf_take(&text);
	return 0;
}

struct asked {
	const uint64_t *vaddrs;
	uint32_t n;
	int64_t max_cpu_ns; /* 0: any */
};

/* The reader looks at the time between one piece and the next; what does not come to its end is killed. */
static void limit_time(int64_t max_ns)
{
	struct itimerval t = { .it_value = { .tv_sec = max_ns / 1000000000,
					     .tv_usec = max_ns % 1000000000 / 1000 + 1 } };

	if (max_ns)
		setitimer(ITIMER_PROF, &t, NULL);
}

static void read_lines(const void *ctx, struct elf_file *elf, struct elf_file *alt, int spill,
		       int statm, int out)
{
	const struct asked *asked = ctx;

	signal(SIGPROF, SIG_DFL);
	limit_time(2 * asked->max_cpu_ns);
	dwarf_read(elf, alt, asked->vaddrs, asked->n, asked->max_cpu_ns, spill, statm, out);
}

static int64_t ns_of(struct timeval t)
{
	return t.tv_sec * 1000000000ll + t.tv_usec * 1000ll;
}

/* Of this process and the children it has had. */
static int64_t cpu_now_ns(void)
{
	struct rusage self = { 0 }, kids = { 0 };

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &kids);
	return ns_of(self.ru_utime) + ns_of(self.ru_stime) + ns_of(kids.ru_utime) +
	       ns_of(kids.ru_stime);
}

static int read_within(struct elf_file *elf, struct elf_file *alt, const struct asked *asked,
		       int64_t max_ms, struct dwarf_lines **ret_lines, bool *ret_ran_out,
		       struct err *e)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *l = NULL;
	const char *name = elf_file_name(elf), *cut_short = NULL;
	int status = 0, r;
	int32_t code = 0;
	char *text;
	size_t len;

	r = dwarf_child_ask(elf, alt, read_lines, asked, max_ms, &text, &len, &status, &cut_short,
			    e);
	if (r < 0)
		return r;
	r = dwarf_answers_parse(text, len, &l, &code);
	if (r < 0)
		return err_set(e, r, "%s: out of memory for debug info", name);
	if (cut_short)
		l->cut_short = cut_short;
	else if (l->cut_short)
		l->cut_short = why_ended(status);
	else if (code == -EFBIG)
		l->cut_short = too_much_memory;
	else if (code == -ETIMEDOUT)
		l->cut_short = too_long;
	*ret_ran_out = code == -ETIMEDOUT || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF);
	if (!l->n_places)
		return nothing(name, l->cut_short, code, e);
	*ret_lines = TAKE_PTR(l);
	return 0;
}

int dwarf_lines_read(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs, uint32_t n,
		     int64_t max_ms, struct dwarf_lines **ret_lines, struct err *e)
{
	return dwarf_lines_read_within(elf, alt, vaddrs, n, max_ms, NULL, ret_lines, e);
}

int dwarf_lines_read_within(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs,
			    uint32_t n, int64_t max_ms, struct dwarf_budget *budget,
			    struct dwarf_lines **ret_lines, struct err *e)
{
	const int64_t max_ns = !budget ? 0 : budget->cpu_ns > 1 ? budget->cpu_ns / 2 : 1;
	const struct asked asked = { vaddrs, n, max_ns };
	int64_t begin_ns = cpu_now_ns();
	bool ran_out = false;
	int r = read_within(elf, alt, &asked, max_ms, ret_lines, &ran_out, e);

	if (budget) {
		budget->cpu_ns -= cpu_now_ns() - begin_ns;
		budget->ran_out |= ran_out;
	}
	return r;
}

void dwarf_lines_free(struct dwarf_lines *l)
{
	if (!l)
		return;
	free(l->text);
	free(l->places);
	free(l->frames);
	free(l);
}

uint32_t dwarf_lines_find(const struct dwarf_lines *l, uint64_t vaddr,
			  const struct dwarf_frame **ret_frames)
{
	uint32_t lo = 0, hi = l->n_places;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (l->places[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == l->n_places || l->places[lo].vaddr != vaddr)
		return 0;
	*ret_frames = &l->frames[l->places[lo].first];
	return l->places[lo].n;
}

const char *dwarf_lines_cut_short(const struct dwarf_lines *l)
{
	return l->cut_short;
}
