/*
 * Containers by name: what the engines of this host say in their state files, and where each one's
 * processes are.
 *
 *   engine's files ─► (id, name, image)  ┐
 *   tree of control groups ─► id ─► path ┴─► container
 *
 * An engine gives the control group of a container the container's id as its name, in one form or other:
 * /docker/ID, /libpod_parent/libpod-ID, …/cri-containerd-ID.scope. So a container that runs is found
 * without asking its engine, and without trusting a process number that may be another's by now.
 *
 * Everything read here was written by others: names are text to be shown with care, files are bounded,
 * and no link leads out of the root they are looked for in.
 */
#ifndef MEMSCOPE_CONTAINER_CONTAINER_H
#define MEMSCOPE_CONTAINER_CONTAINER_H

#include "proc/cgroup.h"

enum {
	CONTAINER_ID_HEX = 64,   /* length of most ids                       */
	CONTAINER_ID_SHORT = 12, /* what engines show of one                 */
	CONTAINERS_MAX = 1 << 13,
};

struct container {
	const char *engine; /* "podman"; "" when only its control group was found            */
	char *id;
	char *name;      /* "" when it has none but its id                                */
	char *alias;     /* a name that replicas share: a pod's container, a service; NULL */
	char *pod;       /* of Kubernetes, and its namespace; the name is POD/CONTAINER then. */
	char *namespace; /* NULL: it is in none                                               */
	char *image;     /* NULL: unknown                                                 */
	char *cgroup;    /* where its engine says that it is when it runs; NULL: not said */
	bool running;    /* … and then it is in:                                          */
	uint32_t hierarchy;
	char *path; /* NULL when it does not run                                     */
	uid_t uid;  /* who says so: root's engines (0), or the user at whose home it stands */
};

struct container_list {
	struct container *list;
	uint32_t n, cap;
	uid_t uid; /* of those that are added */
};

/*
 * All containers of all engines, those that run and others, and those that only have a control group.
 * `m` NULL: which of them run is not looked at. `root`: where the state files are, NULL: "/" or what
 * MEMSCOPE_ENGINES_ROOT says (a host's files as seen from a container). -ENOMEM.
 */
int containers_read(const char *root, const struct cgroup_mounts *m,
		    struct container_list *ret_list, struct err *e);
void containers_fini(struct container_list *l);

/*
 * The container that a user means: by its name (also NAMESPACE/POD/CONTAINER), the whole id, or as many first
 * characters of it as no other has (three at least), or a name that it shares with others, if it is the only one
 * (CONTAINER, POD, NAMESPACE/POD); one that runs before one that does not. -ENOENT and -ESRCH (it does not
 * run) with a list of those that run; -EEXIST: several, listed. Root's come before users', who may call theirs what they like.
 */
int container_find(const struct container_list *l, const char *name,
		   const struct container **ret_container, struct err *e);

/* Is that its own name, not one that it shares with others? Another container gets it when it is started again. */
bool container_is_called(const struct container *c, const char *name);

/* Whose slice the path of a control group is below: 0, root's, where it is below no user's. */
uid_t container_slice_of(const char *path);
/*
 * May it be in the control group of this path? Users make groups below their own slice alone: what one of them says of a container is not
 * believed of others' groups, and a group there is none of root's, whatever id it has.
 */
bool container_may_be_at(const struct container *c, const char *path);

/* The one with this id, NULL. */
const struct container *container_by_id(const struct container_list *l, const char *id);
/* The one in whose control group a path is, by the id in it, else by what engines say, NULL. */
const struct container *container_by_path(const struct container_list *l, const char *path);

/*
 * The id in the path of a control group: the first 64 hexadecimal digits that stand alone in the name of
 * a directory; not that of a helper process (conmon). *ret_len: the path's length up to and with that
 * directory. False: there is none.
 */
bool container_id_in(const char *path, char out[CONTAINER_ID_HEX + 1], size_t *ret_len);

/* What to call it: its name, else the short form of its id. Until the next call. */
const char *container_title(const struct container *c);

/* What `doctor` says: an engine, what was found of it ("" nothing), how many containers it knows. */
struct engine_finding {
	const char *name;
	const char *env, *looked; /* engine.h */
	char where[128];
	uint32_t containers, running;
};
/* One for each engine; at most `cap`. Returns how many. */
uint32_t engines_find(const char *root, const struct container_list *l, struct engine_finding *out,
		      uint32_t cap);

#endif
