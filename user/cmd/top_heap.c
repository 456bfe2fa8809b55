#include "cmd/top_heap.h"
#include "cmd/heap/questions.h"
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

enum { ROWS = 1000, RETAINERS = 100 };

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

/* "census module", as well as "census --by module". -EINVAL. */
static int read_by(struct server *s, const char *word, struct err *e)
{
	static const char choices[] = GROUPS_CHOICES;
	size_t len;
	int n = 0;

	s->args.by = 0;
	if (!word)
		return 0;
	word += strncmp(word, "--", 2) == 0 ? 2 : 0;
	word += strncmp(word, "by", 2) == 0 && (word[2] == ' ' || word[2] == '=') ? 3 : 0;
	len = strlen(word);
	for (const char *choice = choices;; choice += strcspn(choice, "|") + 1, n++) {
		if (strcspn(choice, "|") == len && strncmp(choice, word, len) == 0) {
			s->args.by = n;
			return 0;
		}
		if (!strchr(choice, '|'))
			break;
	}
	return err_set(e, -EINVAL, "a census is by one of %s, not \"%.40s\"", choices, word);
}

/* What was typed: a question with what it asks of, or the condition of a query alone. */
static int answer_line_of(struct server *s, char *line, struct err *e)
{
	_cleanup_(freep) char *condition = NULL;
	char *what = line + strcspn(line, " ");
	const struct heap_question *q;
	int r;

	if (strcmp(line, "compare") == 0 || strcmp(line, "diff") == 0)
		return compare(s, e);
	if (strcmp(line, "again") == 0) {
		r = again(s, e);
		if (r < 0)
			return r;
		s->args.by = 0;
		s->args.top = ROWS;
		return put_answer(s, &s->view, NULL, heap_census, e);
	}
	condition = strdup(line);
	if (!condition)
		return err_set(e, -ENOMEM, "out of memory");
	if (*what)
		*what++ = '\0';
	while (*what == ' ')
		what++;
	q = heap_question_find(line);
	s->args.top = q && q->answer == heap_retainers ? RETAINERS : ROWS;
	if (q && q->compares)
		r = err_set(e, -EINVAL, "the key m compares with a later copy");
	else if (q && q->what && !*what)
		r = err_set(e, -EINVAL, "say of what: %s %s", q->name, q->what);
	else if (q && q->answer == heap_census)
		r = read_by(s, *what ? what : NULL, e);
	else if (q && !q->what && *what)
		r = err_set(e, -EINVAL, "%s stands alone", q->name);
	else
		r = 0;
	return r < 0 ? r
		     : put_answer(s, &s->view,
				  !q        ? condition
				  : q->what ? what
					    : NULL,
				  q ? q->answer : heap_query, e);
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
