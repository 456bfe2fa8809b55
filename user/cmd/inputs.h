/*
 * Profiles already taken, as commands name them: files, directories of them, standard input.
 *
 *   FILE                        any format of import/readers.h
 *   DIR [all|latest|last:N|a,b] the dumps in a directory (latest), in the order they were written;
 *                               a and b: names of files in it, or numbers of dumps
 *   DIR at:TIME|A..B|last:30m   windows of an archive (import/window_choice.h), added up
 *
 * Of windows that are added up what was held at a moment (inuse_space) is the last one's. With --container it is
 * that container's part of a directory.
 *
 * A directory's dumps are its *.heap, else its *.pb.gz, else its *.folded. Those of a memscope run
 * are of several sources (oncpu, heap, …): one of them must be meant.
 */
#ifndef MEMSCOPE_CMD_INPUTS_H
#define MEMSCOPE_CMD_INPUTS_H

#include "analyse/selection.h"
#include "base/opt.h"
#include "import/readers.h"
#include "render/tables/profile_text.h"
#include "model/merge.h"
#include "proc/namespace.h"

#include <sys/stat.h>

/* What every command that reads profiles may be told about them: a member `in` of its arguments. */
struct input_args {
	const char *source, *root, *container;
	double from_s, to_s; /* of the run: since its begin; to 0: its end */
	struct selection_args select;
};

#define INPUT_OPTS(args)                                                                          \
	{ "source", 0, OPT_STRING, "NAME", offsetof(args, in.source),                              \
	  .help = "of a run's directory: oncpu, offcpu, alloc, heap, peak or growth" },            \
	{ "container", 'c', OPT_STRING, "NAME", offsetof(args, in.container),                      \
	  .help = "of a run of several containers, or an archive: what is of this one. Of heap dumps taken in a " \
		  "container that runs: names come from the files it has" },                        \
	{ "root", 0, OPT_STRING, "DIR", offsetof(args, in.root),                                   \
	  .help = "the same by its root directory, or a copy of it (/)" }

#define TIME_OPTS(args)                                                                            \
	{ "from", 0, OPT_DOUBLE, "SEC", offsetof(args, in.from_s), 0, 1e9,                         \
	  .help = "of a run's profile: what came from SEC seconds after its begin on" },           \
	{ "to", 0, OPT_DOUBLE, "SEC", offsetof(args, in.to_s), 0, 1e9,                             \
	  .help = "… and before SEC seconds: whole bins of time (memscope help formats)" }

#define SELECT_OPTS(args)                                                                          \
	{ "filter", 0, OPT_LIST, "PATTERN", offsetof(args, in.select.filter),                      \
	  .help = "only stacks with a frame that matches: part of a function's name or an extended " \
		  "regular expression; module:PATTERN matches the module; may be repeated, all "    \
		  "must match" },                                                                   \
	{ "ignore", 0, OPT_LIST, "PATTERN", offsetof(args, in.select.ignore),                      \
	  .help = "only stacks without a frame that matches; may be repeated" },                    \
	{ "focus", 0, OPT_STRING, "FUNC", offsetof(args, in.select.focus),                         \
	  .help = "only what FUNC called, with FUNC at the root; FUNC may be part of a name" }

#define BY_OPT(args)                                                                                \
	{ "by", 0, OPT_STRING, "LABEL", offsetof(args, by),                                        \
	  .help = "at the root: process (its name), thread, container, none, or another label of the " \
		  "samples, like pid (process)" }

struct inputs {
	struct dict *d;
	struct ns_roots roots;
	int root;                /* where images are looked for: an index of roots, -1 our own */
	uint32_t n_files;
	uint64_t skipped_lines, other_events;
	uint32_t changed_files, no_mappings, cut, same_process;
	uint32_t n_damaged;        /* files that were kept up to where they are damaged … */
	char damage[512];          /* … and the first of them, as a sentence              */
	uint64_t unnamed, locations;  /* of those that files gave by address */
	const char *container;    /* as asked for, borrowed                        */
	bool in_archive;          /* … and it is part of a directory: no root is meant */
	double from_s, to_s;      /* as asked for                                  */
	struct selection *selection; /* of its stacks; NULL: all                   */
	int64_t whole[PROFILE_MAX_TYPES]; /* by value type: the positive values before that */
	bool times;               /* asked for: when samples came                  */
	bool times_if_known;      /* the same, and nothing is wrong where that is not known */
	bool times_if_whole;      /* the same, nor where it cannot be read */
	int64_t begin_ns, end_ns; /* of windows chosen by time, of all that were read: since the Epoch; 0: none were */
	char why_unnamed[256];
	char name[256];            /* of what was read last: a file, or how many; "" standard input */
	char windows[200];         /* "3, … to …", of what was read last, chosen by time; "" it was not */
	struct profile_windows chosen; /* … and in numbers; n: 0, it was not */
	bool addresses;
};

/* -errno with a sentence: --root is not there; -EINVAL: it and -c were given. */
int inputs_init(struct inputs *in, const struct input_args *args, struct err *e);
void inputs_fini(struct inputs *in);

/* Files that the profiles name, as --root and -c say; `in` is borrowed. */
struct symbolize_opts;
void inputs_files(struct inputs *in, struct symbolize_opts *ret_files);
/* One of them, as a process saw it: they are all below one root. */
int inputs_open(void *inputs, pid_t pid, const char *path);
/* As sources_opts asks: is that root ours? */
bool inputs_in_own_root(void *inputs, module_id m, pid_t pid);

/*
 * Reads `n` operands into one profile. `source`: of a directory's (NULL: there is only one). `info`
 * may be NULL. Locations without names are symbolized. With --from or --to it is that part of a run's profile;
 * with `in->times` set the profile has times (sample_times.h). -EINVAL: wrong usage, the rest is about the files.
 */
int inputs_read(struct inputs *in, char *const *operands, int n, const char *source,
		enum merge_types types, struct merge_info *info, struct profile **ret_profile,
		struct err *e);

/*
 * How many operands, of `n`, make the first input: 2 for a directory and what is chosen of it. For
 * commands that take two inputs.
 */
int inputs_first(char *const *operands, int n);

/*
 * Says on stderr what was skipped, and what has no symbol. EXIT_PARTIAL when something was skipped, else
 * EXIT_DONE: a library without symbols is common, and everything that was asked for is there.
 */
int inputs_left_out(const struct inputs *in);

/*
 * --by as render_opts and frame_tree_opts have it: process and none are no label. `by` may be NULL. -EINVAL
 * with a sentence: no sample of the profile has it.
 */
int inputs_find_by(const struct profile *p, const char *by, const char **ret_label, bool *ret_comm,
		   struct err *e);

/* "blocked" alone means its time: that is what people ask about. -1: there is none. */
int inputs_find_value(const struct profile *p, const char *name);

#endif
