/*
 * Asking a cell about debug info, and what such a cell does first. The files go to it as descriptors, with one for what it unpacks; what
 * it answers is a stream of bytes, which whoever asked checks.
 */
#include "base/cell_talk.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "elf/dwarf.h"
#include "elf/dwarf_read.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>

enum { QUESTION_MAX = 256 << 20, CHUNK = 256 << 10, QUESTION_S = 60 };

/* Which descriptors come with the question, in this order: a bit each. */
enum { HAS_ELF = 1, HAS_ALT = 2, HAS_SPILL = 4 };

/* --- in the cell --- */

void dwarf_cell_work(const struct cell_given *given, dwarf_work work)
{
	_cleanup_(talk_fini) struct talk q = { .fds = { -1, -1, -1 } };
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL, *alt = NULL;
	int fd[3] = { -1, -1, -1 }, n = 0;

	if (talk_take(given->channel, QUESTION_MAX, true, now_ns() + QUESTION_S * 1000000000ull,
		      &q) < 0)
		return;
	for (int i = 0; i < 3; i++)
		if (q.what & 1u << i)
			fd[i] = q.fds[n++];
	/* A file of its own and one with debug info alone are read alike. */
	if (elf_file_open_debug(fd[0], "", &elf, NULL) < 0)
		return;
	if (fd[1] >= 0)
		elf_file_open_debug(fd[1], "", &alt, NULL);
	work(talk_bytes(&q), elf, alt, fd[2], given->statm, given->channel);
}

/* --- who asks --- */

/*
 * A file without a name for what is unpacked, -1: none can be had. Not in memory: there it would cost what it is to spare.
 */
static int open_spill(void)
{
	_cleanup_(closep) int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return -1;
	return TAKE_FD(fd);
}

/* Everything until the cell ends. */
static enum dwarf_cut read_answers(int fd, uint64_t until_ns, struct strbuf *b)
{
	_cleanup_(freep) char *buf = malloc(CHUNK);

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ns();
		ssize_t n;

		if (!buf || strbuf_oom(b))
			return DWARF_NO_MEMORY;
		if (b->len > DWARF_ANSWER_MAX)
			return DWARF_TOO_MUCH;
		if (now >= until_ns)
			return DWARF_TOO_LONG;
		n = poll(&p, 1, (int)((until_ns - now) / 1000000 + 1));
		if (n < 0 && errno != EINTR)
			return DWARF_UNREADABLE;
		if (n <= 0)
			continue;
		n = recv(fd, buf, CHUNK, 0);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return DWARF_WHOLE;
		if (n > 0)
			strbuf_add(b, buf, (size_t)n);
		else if (errno != EINTR)
			return DWARF_UNREADABLE;
	}
}

static int send_question(int channel, int elf, int alt, int spill, const void *question, size_t len,
			 uint64_t until_ns)
{
	int fds[3] = { elf }, n = 1;
	uint32_t what = HAS_ELF;

	if (alt >= 0) {
		fds[n++] = alt;
		what |= HAS_ALT;
	}
	if (spill >= 0) {
		fds[n++] = spill;
		what |= HAS_SPILL;
	}
	return talk_send(channel, what, question, len, fds, (uint32_t)n, until_ns);
}

int dwarf_cell_ask(const struct cell_kind *kind, int elf, int alt, const char *name,
		   const void *question, size_t len, int64_t max_ms, struct dwarf_raw *ret,
		   struct err *e)
{
	_cleanup_(cell_closep) struct cell_link l = { -1, -1 };
	_cleanup_(closep) int spill = open_spill();
	struct strbuf text = { 0 };
	struct cell_end end;
	uint64_t until;
	int r = cell_open(kind, &l);

	*ret = (struct dwarf_raw){ .status = -1 };
	if (r < 0)
		return err_set(e, r, "%s: no process to read its debug info: %s", name,
			       strerror(-r));
	if (max_ms > DWARF_SECONDS_MAX * 1000ll)
		max_ms = DWARF_SECONDS_MAX * 1000ll;
	until = now_ns() + (uint64_t)(max_ms > 0 ? max_ms : 0) * 1000000;
	r = send_question(l.channel, elf, alt, spill, question, len, until);
	ret->cut = r == -ETIMEDOUT ? DWARF_TOO_LONG : read_answers(l.channel, until, &text);
	if (ret->cut)
		cell_kill(&l);
	cell_close(&l, &end);
	ret->status = end.status;
	ret->cpu_ns = end.cpu_ns;
	ret->len = text.len;
	if (strbuf_oom(&text)) {
		strbuf_free(&text);
		return err_set(e, -ENOMEM, "%s: out of memory for debug info", name);
	}
	ret->text = strbuf_take(&text);
	return 0;
}

int dwarf_file_ask(const struct cell_kind *kind, struct elf_file *elf, struct elf_file *alt,
		   const void *question, size_t len, int64_t max_ms, struct dwarf_raw *ret,
		   struct err *e)
{
	if (elf_file_fd(elf) < 0 || !dwarf_present(elf))
		return err_set(e, -ENOENT, "%s: no debug info", elf_file_name(elf));
	return dwarf_cell_ask(kind, elf_file_fd(elf), alt ? elf_file_fd(alt) : -1,
			      elf_file_name(elf), question, len, max_ms, ret, e);
}
