/*
 * Folders in the directory of a run that is of several: one for each container or control group, with what
 * is of that one alone, and one for the rest. The label `container` of a sample, in a run of several -G
 * `cgroup`, says whose it is, so the profiles of all folders add up to that of the run.
 *
 * Folders have the names of containers, each as one word. What is in none of them is in "host" with -a; else
 * it is of processes that ended before it was known in which they were: "unassigned".
 */
#ifndef MEMSCOPE_RUN_FOLDERS_H
#define MEMSCOPE_RUN_FOLDERS_H

#include "base/err.h"
#include "model/profile.h"
#include "run/config.h"

enum { FOLDERS_MAX = 1024, FOLDER_NAME = 64 };

/* Has the run any? Those of -G are told apart by `cgroup`, others by `container`. */
bool folders_wanted(const struct run_config *cfg);
/* What `owner` is called there; NULL: what is in none. */
void folder_name(const struct run_config *cfg, const char *owner, char ret_name[FOLDER_NAME]);
/* DIR/NAME, when it is not there. */
int folder_make(const char *dir, const char *name, struct err *e);

struct folder_profile {
	char name[FOLDER_NAME];
	struct profile *profile;
};

struct folders {
	struct folder_profile *list;
	uint32_t n;
	bool full;               /* there were more: their samples are in the profile of all only */
};

/* A profile, once more by whose its samples are; as it says what it is of, so do its parts. -ENOMEM. */
int folders_split(const struct run_config *cfg, const struct profile *all, struct folders *ret_folders,
		  struct err *e);
void folders_fini(struct folders *f);

#endif
