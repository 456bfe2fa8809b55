#include "cmd/top_heap.h"
#include "cmd/heap/view.h"
#include "heap/snapshot/groups.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "/var/tmp"

struct server {
	struct heap_args args;
	struct heap_view view;
	const char *file; /* NULL: of a process */
	int out;
};

static const char *const groups[] = { "type", "module", "two-level", "referrer" };
enum { N_GROUPS = sizeof(groups) / sizeof(*groups), ROWS = 1000, RETAINERS = 100 };

static const struct {
	const char *name;
	int (*answer)(const struct heap_view *v, const char *what, struct err *e);
	uint32_t rows;
} questions[] = {
	{ "census", heap_census, ROWS },         { "retainers", heap_retainers, RETAINERS },
	{ "dominators", heap_dominators, ROWS }, { "leaks", heap_leaks, ROWS },
	{ "allocator", heap_allocator, ROWS },   { "fragmentation", heap_fragmentation, ROWS },
	{ "query", heap_query, ROWS },           { "snapshot", heap_snapshot, ROWS },
};
enum { N_QUESTIONS = sizeof(questions) / sizeof(*questions) };

static int send_answer(struct server *s, const struct heap_view *v, struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	const char *data;
	size_t len;
	int r = sink_open_memory(&sink, e);

	if (r == 0)
		r = answer_write(v->out, sink, e);
	if (r == 0)
		r = sink_commit(sink, e);
	if (r < 0)
		return r;
	data = sink_memory(sink, &len);
	return worker_send(s->out, WORKER_ANSWER, data, len);
}

static int put_answer(struct server *s, struct heap_view *v, const char *what,
		      int (*answer)(const struct heap_view *v, const char *what, struct err *e),
		      struct err *e)
{
	int r;

	answer_free(v->out);
	v->out = answer_begin(ANSWER_JSON);
	if (!v->out)
		return err_set(e, -ENOMEM, "out of memory");
	answer_describe(v->out);
	if (answer ==
	    heap_census) /* the others say what they found alone: a screen has one line for it */
		heap_put_header(v);
	r = answer(v, what, e);
	return r < 0 ? r : send_answer(s, v, e);
}

static int open_view(struct server *s, struct heap_view *v, char *const *before, uint32_t n,
		     struct err *e)
{
	worker_say(s->out, WORKER_SAYS,
		   s->file ? "reading the snapshot"
			   : "copying the heap, finding types and references");
	return heap_view_open(v, &s->args, s->file, before, n, e);
}

/* A copy anew; the one before is forgotten. */
static int again(struct server *s, struct err *e)
{
	heap_view_fini(&s->view);
	s->view = (struct heap_view){ 0 };
	return open_view(s, &s->view, NULL, 0, e);
}

/* The copy that is there is written away, another one is taken and compared with it; then that is the one that is there. */
static int compare(struct server *s, struct err *e)
{
	char path[] = FOLDER "/memscope-top-XXXXXX", *before[] = { path };
	struct heap_view now = { 0 };
	int fd, r;

	if (s->file)
		return err_set(
			e, -EINVAL,
			"a snapshot of a file has no later one: memscope heap diff compares files");
	fd = mkstemp(path);
	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	close(fd);
	s->args.output = path;
	r = heap_snapshot(&s->view, NULL, e);
	s->args.output = NULL;
	if (r == 0)
		r = open_view(s, &now, before, 1, e);
	unlink(path);
	s->args.top = ROWS;
	if (r == 0)
		r = put_answer(s, &now, NULL, heap_diff, e);
	if (r < 0) {
		heap_view_fini(&now);
		return r;
	}
	heap_view_fini(&s->view);
	s->view = now;
	return 0;
}

static int answer_line_of(struct server *s, char *line, struct err *e)
{
	char *what = strchr(line, ' ');

	if (what)
		*what++ = '\0';
	if (strcmp(line, "compare") == 0)
		return compare(s, e);
	if (strcmp(line, "again") == 0) {
		int r = again(s, e);

		if (r < 0)
			return r;
		s->args.by = 0;
		s->args.top = ROWS;
		return put_answer(s, &s->view, NULL, heap_census, e);
	}
	s->args.by = 0;
	for (int i = 0; i < N_GROUPS && what; i++)
		if (strcmp(line, "census") == 0 && strcmp(what, groups[i]) == 0)
			s->args.by = i;
	for (int i = 0; i < N_QUESTIONS; i++)
		if (strcmp(line, questions[i].name) == 0) {
			s->args.top = questions[i].rows;
			return put_answer(s, &s->view, what, questions[i].answer, e);
		}
	return err_set(e, -EINVAL, "\"%s\" is no question", line);
}

int top_heap(void *ctx, int in, int out)
{
	const struct top_heap *t = ctx;
	static struct server s;
	_cleanup_(fclosep) FILE *lines = fdopen(in, "r");
	char line[1024] = "census type";
	struct err e = { 0 };
	int r;

	s = (struct server){ .args = { .pid = (uint32_t)t->pid,
				       .container = t->container,
				       .folder = FOLDER,
				       .json = true },
			     .file = t->file,
			     .out = out };
	r = lines ? open_view(&s, &s.view, NULL, 0, &e) : err_set(&e, -ENOMEM, "out of memory");
	if (r < 0) {
		worker_say(out, WORKER_ENDED, "%s", e.msg);
		return EXIT_FAILURE;
	}
	do {
		line[strcspn(line, "\n")] = '\0';
		e = (struct err){ 0 };
		if (answer_line_of(&s, line, &e) < 0 &&
		    worker_say(out, WORKER_FAILED, "%s", e.msg) < 0)
			break;
	} while (fgets(line, sizeof(line), lines));
	heap_view_fini(&s.view);
	return EXIT_SUCCESS;
}
