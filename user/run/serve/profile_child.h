/*
 * Profiles as files for others, made by a child of memscope: naming functions and encoding takes long, and takes memory that
 * is free again when the child has ended; the loop goes on meanwhile.
 */
#ifndef MEMSCOPE_RUN_SERVE_PROFILE_CHILD_H
#define MEMSCOPE_RUN_SERVE_PROFILE_CHILD_H

#include "base/err.h"
#include "render/render.h"
#include "run/pipeline.h"
#include "run/run.h"

#include <stdbool.h>
#include <sys/types.h>

/* What pprof's users call profiles: endpoints, a row each. */
struct endpoint {
	const char *name;        /* "heap"                                                  */
	enum profile_kind kind;
	struct value_type types[4]; /* as they are to be called; none: as the kind's are      */
	uint32_t from[4];        /* which of the kind's values each is                      */
	uint32_t n_types;
	uint32_t default_type;
	bool at_once;            /* without seconds=: since the run began, else for 30 s    */
	bool since_last;         /* … since it was last asked for                           */
	bool locks;              /* waits for locks alone                                   */
	const char *help;        /* NULL: as the row above, for runs that have not that one's kind */
};

extern const struct endpoint endpoints[]; /* ends with a row without a name */
const struct endpoint *endpoint_find(const char *name);

/* One file. */
struct profile_want {
	const struct endpoint *endpoint;
	const struct format *format;
	pid_t pid;               /* of this process alone; 0: of all     */
	char container[128];     /* of this one alone; "": of all        */
	char comm[32];           /* of processes of this name; "": all   */
};

bool profile_want_same(const struct profile_want *a, const struct profile_want *b);

struct profile_file {
	struct profile_want want;
	int fd;                  /* a memfd; -1: taken           */
};

/* Shared with the child. */
struct profile_result {
	int rc;                  /* -ENODATA: nothing to show    */
	uint64_t len;
	char sentence[256];
};

enum { PROFILE_FILES_MAX = 32 };

struct profile_child {
	pid_t kid;               /* 0: none is at work           */
	int pid_fd;
	int names_fd;            /* for names of locations (name_used.h) */
	struct profile_file files[PROFILE_FILES_MAX];
	uint32_t n_files;
	struct profile_result *results; /* n_files of them       */
};

/* -errno with a sentence. Files are what is wanted of `now`; their descriptors are made here. */
int profile_child_begin(struct profile_child *c, struct run *r, const struct profile_now *now,
			struct err *e);
/* To be called when pid_fd is readable: the results are complete. The run has the names that the child found. */
void profile_child_ended(struct profile_child *c, struct run *r);
/* Ends the child, if it is still at work. */
void profile_child_fini(struct profile_child *c);

/* A part of `p`: its own value types, or the endpoint's; only samples that are wanted. 0 or -ENOMEM. */
int profile_part_wanted(const struct profile *p, const struct profile_want *w, struct profile **ret_part);

#endif
