#include "run/memory/census_child.h"

#include "base/large.h"
#include "heap/snapshot/groups.h"
#include "run/let_go.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the copy lies meanwhile, as with `memscope heap`. */
#define SCRATCH "/var/tmp"
#define LOOK_US 5000

static int count_types(const struct snapshot *s, struct census_result *to)
{
	_cleanup_(groups_fini) struct groups found = { 0 };

	if (groups_find(s, GROUPS_TYPE, &found) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < found.n; i++) {
		const struct group_row *row = &found.rows[i];

		to->all.bytes += row->bytes;
		to->all.objects += row->objects;
		if (to->n == CENSUS_TYPES)
			continue;
		snprintf(to->types[to->n].name, CENSUS_NAME, "%s", row->name);
		to->types[to->n].bytes = row->bytes;
		to->types[to->n++].objects = row->objects;
	}
	return 0;
}

static int take(pid_t pid, uint64_t link_max, struct census_result *to, struct err *e)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	int r;

	large_use(SCRATCH, LARGE_LEAST);
	r = snapshot_take_types(pid, SCRATCH, link_max, &s, e);
	if (r < 0)
		return r;
	to->wall_ns = (int64_t)s->facts.taken_ns;
	to->paused_ns = s->paused_ns;
	to->is_linked = s->graph;
	to->n_pauses = 1 + s->n_changing;
	return count_types(s, to) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}

int census_begin(struct census_child *c, pid_t pid, uint64_t link_max, struct err *e)
{
	pid_t parent = getpid();

	if (!c->result) {
		void *at = mmap(NULL, sizeof(*c->result), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			return err_set(e, -errno, "out of memory");
		c->result = at;
	}
	memset(c->result, 0, sizeof(*c->result));
	fflush(NULL);
	c->kid = fork();
	if (c->kid < 0) {
		c->kid = 0;
		return err_set(e, -errno, "no process can be started: %s", strerror(errno));
	}
	if (c->kid == 0) {
		struct err why = { 0 };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		let_go_of_the_kernel();
		c->result->error = take(pid, link_max, c->result, &why);
		memcpy(c->result->sentence, why.msg,
		       strnlen(why.msg, sizeof(c->result->sentence) - 1));
		_exit(EXIT_SUCCESS);
	}
	return 0;
}

static void put_error(struct census_result *to, const char *why)
{
	to->error = -EIO;
	snprintf(to->sentence, sizeof(to->sentence), "%s", why);
}

const struct census_result *census_ended(struct census_child *c, uint32_t patience_ms)
{
	uint64_t left_us = 1000ull * patience_ms;
	int status;

	if (!c->kid)
		return NULL;
	for (;;) {
		pid_t r = waitpid(c->kid, &status, WNOHANG);

		if (r == c->kid)
			break;
		if (r < 0 && errno != EINTR) {
			c->kid = 0;
			put_error(c->result, strerror(errno));
			return c->result;
		}
		if (left_us < LOOK_US)
			return NULL;
		left_us -= LOOK_US;
		usleep(LOOK_US);
	}
	c->kid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
		put_error(c->result,
			  "the process that counts objects ended by itself; the target runs on");
	return c->result;
}

void census_child_fini(struct census_child *c)
{
	if (c->kid) {
		kill(c->kid, SIGKILL);
		waitpid(c->kid, NULL, 0);
	}
	if (c->result)
		munmap(c->result, sizeof(*c->result));
	*c = (struct census_child){ 0 };
}
