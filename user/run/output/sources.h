/*
 * What report.html and `memscope annotate` show of code: the functions with the most self cost, or those that are named, their
 * instructions and the files they were compiled from, as far as this machine has them.
 */
#ifndef MEMSCOPE_RUN_OUTPUT_SOURCES_H
#define MEMSCOPE_RUN_OUTPUT_SOURCES_H

#include "analyse/line_costs.h"
#include "elf/disassembler.h"
#include "model/code_text.h"
#include "symbolize/symbolize.h"

#include <sys/types.h>

enum {
	SOURCES_FUNCTIONS = 40, /* of each profile of a page */
	SOURCES_FILES_MAX = 200,
};

struct sources_opts {
	const struct symbolize_opts *files;
	/* A file as a process sees it, for languages, whose files no image names. NULL: on this machine. */
	int (*open_in)(void *ctx, pid_t pid, const char *path);
	/*
	 * Does what maps the module (of a language: the process) see our own root? Else what a path leads to on this machine is none
	 * of its files: a container names what it likes. NULL: yes.
	 */
	bool (*in_own_root)(void *ctx, module_id m, pid_t pid);
	/* Whose rights files of such a process are read with. NULL: `reader`. */
	uid_t (*user_of)(void *ctx, pid_t pid);
	uid_t reader;            /* where the program's own file cannot be read */
	bool not_as_root;        /* a program of root's has files that all may read: whether it is a container's is not known any more */
	const char *function;    /* those of this name, inlined or not; NULL: those with the most self cost */
	uint32_t functions;      /* of each profile */
	enum disassembly_syntax syntax;
	int64_t max_ms;          /* for debug info */
	int64_t taken_s;         /* when the profile was taken: a file without a build ID may be another since; 0: not known */
	bool no_source;          /* instructions, but no lines of files */
};

/* One profile and what it says of lines. */
struct sources_profile {
	const struct profile *p;
	const struct line_costs *costs;
};

/* 0 or -ENOMEM; code_sources_fini() in either case. What cannot be read is among `problems`, or says so itself. */
int sources_read(const struct sources_profile *profiles, uint32_t n, const struct sources_opts *opts, struct code_sources *ret);

#endif
