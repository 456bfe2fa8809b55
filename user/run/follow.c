#include "run/follow.h"
#include "proc/no_process.h"

#include "run/target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct followed {
	pid_t pid;
	int fd;        /* pidfd; -1: it has ended */
	char *pattern; /* of command lines        */
	char name[64];
};

struct follow {
	struct followed *all;
	uint32_t n;
};

struct follow *follow_new(void)
{
	return calloc(1, sizeof(struct follow));
}

void follow_free(struct follow *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n; i++) {
		closep(&f->all[i].fd);
		free(f->all[i].pattern);
	}
	free(f->all);
	free(f);
}

/* An extended regular expression that only `text` matches. */
static char *literal(const char *text)
{
	char *out = malloc(2 * strlen(text) + 3), *to = out;

	if (!out)
		return NULL;
	*to++ = '^';
	for (; *text; text++) {
		if (strchr("\\^$.[]|()*+?{}", *text))
			*to++ = '\\';
		*to++ = *text;
	}
	*to++ = '$';
	*to = '\0';
	return out;
}

static int open_pid(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int follow_add(struct follow *f, pid_t pid, const char *pattern, struct err *e)
{
	char line[TARGET_CMDLINE_MAX];
	struct followed *all = reallocarray(f->all, f->n + 1, sizeof(*all));
	struct followed new = { .pid = pid };

	if (!all)
		return err_set(e, -ENOMEM, "out of memory for process %d", (int)pid);
	f->all = all;
	new.fd = open_pid(pid);
	if (new.fd < 0)
		return errno == ESRCH
			       ? err_no_process(e, pid)
			       : err_set(e, -errno, "process %d: %s", (int)pid, strerror(errno));
	if (!target_cmdline(pid, line, sizeof(line)))
		line[0] = '\0'; /* as a zombie's: nothing is like it */
	target_file_name(pid, new.name, sizeof(new.name));
	new.pattern = pattern ? strdup(pattern) : literal(line);
	if (!new.pattern) {
		close(new.fd);
		return err_set(e, -ENOMEM, "out of memory for process %d", (int)pid);
	}
	f->all[f->n++] = new;
	return 0;
}

uint32_t follow_count(const struct follow *f)
{
	return f->n;
}

uint32_t follow_running(const struct follow *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += f->all[i].fd >= 0;
	return n;
}

uint32_t follow_poll(const struct follow *f, struct pollfd *fds)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->all[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = f->all[i].fd, .events = POLLIN };
	return n;
}

void follow_check(struct follow *f, follow_fn ended, void *ctx)
{
	for (uint32_t i = 0; i < f->n; i++) {
		struct followed *p = &f->all[i];
		struct pollfd fd = { .fd = p->fd, .events = POLLIN };

		if (p->fd < 0 || poll(&fd, 1, 0) <= 0)
			continue;
		close(p->fd);
		p->fd = -1;
		ended(ctx, p->pid, p->name);
	}
}

static bool is_followed(void *ctx, pid_t pid)
{
	const struct follow *f = ctx;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->all[i].fd >= 0 && f->all[i].pid == pid)
			return true;
	return false;
}

void follow_search(struct follow *f, follow_fn began, void *ctx)
{
	for (uint32_t i = 0; i < f->n; i++) {
		struct followed *p = &f->all[i];
		pid_t pid;

		if (p->fd >= 0 || target_find_oldest(p->pattern, is_followed, f, &pid) < 0)
			continue;
		p->fd = open_pid(pid);
		if (p->fd < 0)
			continue;
		p->pid = pid;
		began(ctx, pid, p->name);
	}
}
