#include "run/serve/answer_child.h"

#include "base/whole_file.h"
#include "run/let_go.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MADE, NOT_THERE, FAILED };

#define CPU_SECONDS 60 /* of one child */

static void finish(struct answer_child *a)
{
	if (a->kid > 0)
		waitpid(a->kid, NULL, 0);
	closep(&a->pid_fd);
	closep(&a->fd);
	*a = (struct answer_child){ .pid_fd = -1, .fd = -1 };
}

static int on_end(void *ctx, struct err *e)
{
	struct answer_child *a = ctx;
	int status = 0;
	struct stat st = { 0 };
	char text[300] = "";

	(void)e;
	loop_fd_forget(a->run->loop, a->pid_fd);
	waitpid(a->kid, &status, 0);
	a->kid = 0;
	fstat(a->fd, &st);
	if (WIFEXITED(status) && WEXITSTATUS(status) == MADE) {
		http_answer_fd(a->q, 200, a->type, TAKE_FD(a->fd), (uint64_t)st.st_size);
	} else {
		if (WIFEXITED(status) && pread(a->fd, text, sizeof(text) - 1, 0) < 0)
			*text = '\0';
		http_error(a->q, WIFEXITED(status) && WEXITSTATUS(status) == NOT_THERE ? 404 : 500,
			   "%s",
			   *text ? text : "the process that makes the answer ended by itself");
	}
	finish(a);
	return 0;
}

static int make_answer(const struct answer_child *a, answer_fn make, const char *arg)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct err e = { 0 };
	const char *bytes;
	size_t len;
	int rc = sink_open_memory(&sink, &e);

	if (rc == 0)
		rc = make(a->run, arg, sink, &e);
	if (rc == 0)
		rc = sink_commit(sink, &e);
	if (rc == 0) {
		bytes = sink_memory(sink, &len);
		rc = whole_file_write(a->fd, bytes, len);
	}
	if (rc < 0 && ftruncate(a->fd, 0) == 0)
		(void)!pwrite(a->fd, e.msg, strlen(e.msg), 0);
	return rc == 0 ? MADE : rc == -ENOENT ? NOT_THERE : FAILED;
}

static int start(struct answer_child *a, answer_fn make, const char *arg)
{
	pid_t parent = getpid();

	a->fd = memfd_create("memscope answer", MFD_CLOEXEC);
	if (a->fd < 0)
		return -errno;
	fflush(NULL);
	a->kid = fork();
	if (a->kid < 0)
		return -errno;
	if (a->kid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(FAILED);
		let_go_of_the_kernel();
		setpriority(PRIO_PROCESS, 0, 10);
		setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_SECONDS, CPU_SECONDS });
		_exit(make_answer(a, make, arg));
	}
	a->pid_fd = pidfd_open(a->kid, 0);
	return a->pid_fd < 0 ? -errno : loop_fd(a->run->loop, a->pid_fd, on_end, a);
}

void answer_by_child(struct answer_children *c, struct run *r, struct http_request *q,
		     const char *type, answer_fn make, const char *arg)
{
	struct answer_child *a = NULL;
	int rc;

	for (int i = 0; i < ANSWER_CHILDREN && !a; i++)
		if (!c->list[i].q)
			a = &c->list[i];
	if (!a) {
		http_header(q, "Retry-After", "2");
		http_error(q, 503, "too much is asked for at a time: try again later");
		return;
	}
	*a = (struct answer_child){ .run = r, .q = q, .type = type, .pid_fd = -1, .fd = -1 };
	rc = start(a, make, arg);
	if (rc == 0)
		return;
	if (a->kid > 0)
		kill(a->kid, SIGKILL);
	http_error(q, 500, "no process can be started: %s", strerror(-rc));
	finish(a);
}

void answer_children_end(struct answer_children *c)
{
	for (int i = 0; i < ANSWER_CHILDREN; i++) {
		struct answer_child *a = &c->list[i];

		if (!a->q)
			continue;
		loop_fd_forget(a->run->loop, a->pid_fd);
		kill(a->kid, SIGKILL);
		http_error(a->q, 503, "memscope is ending");
		finish(a);
	}
}
