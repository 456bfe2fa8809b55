/* Answers to requests that are made by a child of memscope, as they read files or take long. */
#ifndef MEMSCOPE_RUN_SERVE_ANSWER_CHILD_H
#define MEMSCOPE_RUN_SERVE_ANSWER_CHILD_H

#include "base/err.h"
#include "base/sink.h"
#include "net/http_server.h"
#include "run/run.h"

enum { ANSWER_CHILDREN = 4, ANSWER_ARG = 400 };

/* In the child: writes the answer. -ENOENT with a sentence: 404; other errors: 500. */
typedef int (*answer_fn)(const struct run *r, const char *arg, struct sink *out, struct err *e);

struct answer_child {
	struct run *run;
	struct http_request *q;  /* NULL: free */
	const char *type;
	pid_t kid;
	int pid_fd, fd;
};

struct answer_children {
	struct answer_child list[ANSWER_CHILDREN];
};

/* `arg` is copied; `type` is that of the answer. Answers 503 where all have work. */
void answer_by_child(struct answer_children *c, struct run *r, struct http_request *q, const char *type,
		     answer_fn make, const char *arg);
/* Before the server is closed: what is not answered gets 503. */
void answer_children_end(struct answer_children *c);

#endif
