/*
 * A directory as somebody names it → where the profiles are that were meant: an archive has a directory for each target of
 * its runs, and where several containers are profiled, a folder for each in that.
 *
 *   ARCHIVE/host/oncpu-STAMP.pb.gz          of all
 *   ARCHIVE/host/web/oncpu-STAMP.pb.gz      --container web
 *   ARCHIVE/web/oncpu-STAMP.pb.gz           --container web, of a run of that one alone
 */
#ifndef MEMSCOPE_CMD_INPUT_ARCHIVE_H
#define MEMSCOPE_CMD_INPUT_ARCHIVE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct input_place {
	char dir[4096];
	char folder[64];   /* in it, of a container; "": none is meant */
	bool of_container; /* `container` was understood as a folder or a target */
};

/*
 * `container`: NULL, all. -EINVAL with a sentence that names what there is: several targets, or none of that
 * name. What is no archive is its own place.
 */
int input_place_find(const char *dir, const char *container, struct input_place *ret_place,
		     struct err *e);

/*
 * The directories in `dir` that have windows or runs of their own, by name; *ret_names of *ret_n, to be freed with
 * input_names_free(). `folders`: those in which a directory of windows has its containers.
 */
struct input_names {
	char **list;
	uint32_t n, cap;
};
int input_targets(const char *dir, struct input_names *ret_names, struct err *e);
int input_folders(const char *dir, struct input_names *ret_names, struct err *e);
void input_names_fini(struct input_names *names);

/* Has it files of profiles, dated or not? */
bool input_has_profiles(const char *dir);

#endif
