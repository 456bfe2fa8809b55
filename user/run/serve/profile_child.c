#include "run/serve/profile_child.h"

#include "analyse/sites.h"
#include "base/whole_file.h"
#include "run/let_go.h"
#include "run/name_used.h"
#include "run/output/files.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* clang-format off */
/* Where rows have one name, the first whose kind the run has counts. */
const struct endpoint endpoints[] = {
	{ .name = "profile", .kind = PROFILE_ONCPU, .default_type = 1,
	  .help = "CPU time, for seconds= (30)" },
	{ .name = "heap", .kind = PROFILE_HEAP, .default_type = 3, .at_once = true,
	  .help = "memory in use now, and all that was allocated since the run began; with seconds= in that time" },
	{ .name = "allocs", .kind = PROFILE_HEAP, .default_type = 1, .at_once = true,
	  .help = "the same, with what was allocated shown first" },
	{ .name = "allocs", .kind = PROFILE_ALLOC, .default_type = 1, .at_once = true },
	{ .name = "delta_heap", .kind = PROFILE_HEAP, .default_type = 1, .at_once = true, .since_last = true,
	  .help = "memory in use now, and what was allocated since this was last asked for" },
	{ .name = "delta_heap", .kind = PROFILE_ALLOC, .default_type = 1, .at_once = true, .since_last = true },
	{ .name = "block", .kind = PROFILE_OFFCPU, .n_types = 2, .default_type = 1, .from = { 0, 1 }, .at_once = true,
	  .types = { { "contentions", "count" }, { "delay", "nanoseconds" } },
	  .help = "waits: how often, how long" },
	{ .name = "mutex", .kind = PROFILE_OFFCPU, .n_types = 2, .default_type = 1, .from = { 0, 1 }, .at_once = true, .locks = true,
	  .types = { { "contentions", "count" }, { "delay", "nanoseconds" } },
	  .help = "waits for locks alone, by who waited" },
	{ .name = "offcpu", .kind = PROFILE_OFFCPU, .default_type = 1, .at_once = true,
	  .help = "waits, and time without a free CPU, as memscope's own files have them" },
	{ .name = "wakers", .kind = PROFILE_WAKERS, .default_type = 1, .at_once = true,
	  .help = "who ended waits, with the stack of the wait below" },
	{ .name = "growth", .kind = PROFILE_GROWTH, .at_once = true,
	  .help = "who first touched memory that became resident, and who returned it" },
	{ .name = "goroutine", .kind = PROFILE_GOROUTINE, .n_types = 1, .at_once = true,
	  .types = { { "goroutine", "count" } },
	  .help = "goroutines of Go programs, where they were at the last look" },
	{ 0 },
};
/* clang-format on */

const struct endpoint *endpoint_find(const char *name)
{
	for (const struct endpoint *p = endpoints; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

bool profile_want_same(const struct profile_want *a, const struct profile_want *b)
{
	return a->endpoint == b->endpoint && a->format == b->format && a->pid == b->pid &&
	       strcmp(a->container, b->container) == 0 && strcmp(a->comm, b->comm) == 0;
}

/* --- the part that is wanted --- */

static bool is_of(const struct dict *d, labels_id labels, const struct profile_want *w)
{
	const struct label *pid = w->pid ? dict_label_find(d, labels, "pid") : NULL;
	const struct label *name = *w->container ? dict_label_find(d, labels, "container") : NULL;
	const struct label *comm = *w->comm ? dict_label_find(d, labels, "comm") : NULL;
	const struct label *id = *w->container ? dict_label_find(d, labels, "container_id") : NULL;

	if ((w->pid && (!pid || pid->num != w->pid)) ||
	    (*w->comm && (!comm || strcmp(dict_str(d, comm->str), w->comm) != 0)))
		return false;
	return !*w->container || (name && strcmp(dict_str(d, name->str), w->container) == 0) ||
	       (id && strcmp(dict_str(d, id->str), w->container) == 0);
}

static bool is_lock_wait(struct dict *d, stack_id stack)
{
	struct site_row row = { 0 };

	if (site_of_wait_stack(d, stack, &row) < 0)
		return false;
	return row.role == WAIT_ROLE_MUTEX || row.wait == WAIT_MONITOR || row.wait == WAIT_GIL ||
	       row.wait == WAIT_GVL || row.wait == WAIT_FILE_LOCK || row.wait == WAIT_KERNEL_LOCK;
}

int profile_part_wanted(const struct profile *p, const struct profile_want *w,
			struct profile **ret_part)
{
	const struct endpoint *to = w->endpoint;
	uint32_t n = to->n_types ? to->n_types : profile_n_types(p), from[PROFILE_MAX_TYPES];
	_cleanup_(profile_freep) struct profile *part = NULL;
	struct value_type types[PROFILE_MAX_TYPES];
	struct dict *d = profile_dict(p);

	for (uint32_t i = 0; i < n; i++) {
		from[i] = to->n_types ? to->from[i] : i;
		types[i] = to->n_types ? to->types[i] : *profile_type(p, i);
	}
	part = profile_new(d, types, n);
	if (!part)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		bool any = false;

		for (uint32_t k = 0; k < n; k++)
			any |= s.values[from[k]] != 0;
		if (!any || !is_of(d, s.labels, w))
			continue;
		if (profile_add_sample(part, s.stack, s.labels, &s, from, 1) < 0)
			return -ENOMEM;
	}
	*ret_part = TAKE_PTR(part);
	return 0;
}

/* Once its functions have names. */
static int keep_locks(struct profile **p)
{
	_cleanup_(profile_freep) struct profile *kept = NULL;
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t n = profile_n_types(*p);
	struct profile *all = *p;

	for (uint32_t i = 0; i < n; i++)
		types[i] = *profile_type(all, i);
	kept = profile_new(profile_dict(all), types, n);
	for (uint32_t i = 0; kept && i < profile_n_samples(all); i++) {
		struct profile_sample s = profile_sample(all, i);

		if (is_lock_wait(profile_dict(all), s.stack) &&
		    profile_add_sample(kept, s.stack, s.labels, &s, NULL, 1) < 0)
			return -ENOMEM;
	}
	if (!kept)
		return -ENOMEM;
	*p = kept;
	kept = all;
	return 0;
}

/* --- in the child --- */

static int set_meta(const struct run *r, const struct profile_now *now,
		    const struct profile_want *w, struct profile *p)
{
	enum profile_kind kind = w->endpoint->kind;
	struct profile_meta meta = output_profile_meta(r, &profile_rows[kind]);

	meta.time_ns = now->time_ns;
	meta.duration_ns = now->duration_ns;
	meta.default_type = w->endpoint->default_type;
	if (now->period[kind])
		meta.period = now->period[kind];
	return output_set_meta(r, p, &meta, now->comment[kind]);
}

static int encode(const struct run *r, const struct profile *p, const struct format *f, int fd,
		  uint64_t *ret_len, struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct render_opts opts = { .value_type = -1, .no_comm = r->cfg->no_comm };
	const char *bytes;
	size_t len;
	int rc = sink_open_memory(&sink, e);

	if (rc == 0 && f->gzip)
		rc = sink_gzip(sink, e);
	if (rc == 0)
		rc = f->write(p, &opts, sink, e);
	if (rc == 0)
		rc = sink_commit(sink, e);
	if (rc < 0)
		return rc;
	bytes = sink_memory(sink, &len);
	*ret_len = len;
	rc = whole_file_write(fd, bytes, len);
	return rc < 0 ? err_set(e, rc, "out of memory for a profile") : 0;
}

static int make_file(const struct run *r, const struct profile_now *now,
		     const struct profile_file *file, struct profile **part, uint64_t *ret_len,
		     struct err *e)
{
	int rc = file->want.endpoint->locks ? keep_locks(part) : 0;

	if (rc == 0)
		rc = set_meta(r, now, &file->want, *part);
	if (rc < 0)
		return err_set(e, rc, "out of memory for a profile");
	return encode(r, *part, file->want.format, file->fd, ret_len, e);
}

static void say(struct profile_result *result, int rc, const struct err *e)
{
	result->rc = rc;
	snprintf(result->sentence, sizeof(result->sentence), "%.255s", e->msg);
}

static void make_files(const struct profile_child *c, struct run *r, const struct profile_now *now)
{
	struct profile *parts[PROFILE_FILES_MAX] = { 0 };
	struct err e = { 0 };
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < c->n_files; i++) {
		const struct profile_want *w = &c->files[i].want;

		rc = profile_part_wanted(now->profiles[w->endpoint->kind], w, &parts[i]);
		if (rc < 0)
			err_set(&e, rc, "out of memory for a profile");
	}
	if (rc == 0)
		rc = name_used(r, parts, c->n_files, LINES_ANY_NS, c->names_fd, &e);
	for (uint32_t i = 0; i < c->n_files; i++) {
		struct err one = e;

		say(&c->results[i],
		    rc == 0 ? make_file(r, now, &c->files[i], &parts[i], &c->results[i].len, &one)
			    : rc,
		    &one);
	}
}

/* --- in the parent --- */

static int prepare(struct profile_child *c, struct err *e)
{
	size_t bytes = c->n_files * sizeof(*c->results);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return err_set(e, -errno, "out of memory");
	c->results = at;
	c->names_fd = names_back_open(e);
	if (c->names_fd < 0)
		return c->names_fd;
	for (uint32_t i = 0; i < c->n_files; i++) {
		c->results[i].rc = -EIO;
		strcpy(c->results[i].sentence,
		       "the process that makes the profile ended by itself");
		c->files[i].fd = memfd_create("memscope profile", MFD_CLOEXEC);
		if (c->files[i].fd < 0)
			return err_set(e, -errno, "no room for a profile: %s", strerror(errno));
	}
	return 0;
}

int profile_child_begin(struct profile_child *c, struct run *r, const struct profile_now *now,
			struct err *e)
{
	pid_t parent = getpid();
	int rc;

	for (uint32_t i = 0; i < c->n_files; i++)
		c->files[i].fd = -1;
	c->pid_fd = c->names_fd = -1;
	rc = prepare(c, e);
	if (rc < 0)
		return rc;
	fflush(NULL);
	c->kid = fork();
	if (c->kid < 0) {
		c->kid = 0;
		return err_set(e, -errno, "no process can be started: %s", strerror(errno));
	}
	if (c->kid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		let_go_of_the_kernel();
		setpriority(PRIO_PROCESS, 0, 10);
		make_files(c, r, now);
		_exit(EXIT_SUCCESS);
	}
	c->pid_fd = pidfd_open(c->kid, 0);
	return c->pid_fd < 0 ? err_set(e, -errno, "no process can be watched: %s", strerror(errno))
			     : 0;
}

void profile_child_ended(struct profile_child *c, struct run *r)
{
	int status = -1;

	if (c->kid)
		waitpid(c->kid, &status, 0);
	c->kid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
		names_back_take(c->names_fd, r);
}

void profile_child_fini(struct profile_child *c)
{
	if (c->kid) {
		kill(c->kid, SIGKILL);
		waitpid(c->kid, NULL, 0);
	}
	if (c->results) {
		munmap(c->results, c->n_files * sizeof(*c->results));
		for (uint32_t i = 0; i < c->n_files; i++)
			closep(&c->files[i].fd);
		closep(&c->pid_fd);
		closep(&c->names_fd);
	}
	*c = (struct profile_child){ 0 };
}
