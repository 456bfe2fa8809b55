/*
 * One engine: how to read its state files. For the files of this room.
 */
#ifndef MEMSCOPE_CONTAINER_ENGINE_H
#define MEMSCOPE_CONTAINER_ENGINE_H

#include "container/container.h"

#include <cjson/cJSON.h>
#include <dirent.h>

/* Adds what is below a directory to the list; false: nothing of this engine. */
typedef bool (*state_read_fn)(int root, const char *dir, struct container_list *l);

struct engine {
	const char *name;
	const char *env;    /* a variable that says where its files are instead */
	const char *looked; /* where they are looked for without it, in words   */
	/* Adds what root's knows to the list; what cannot be read is left out. `root`: below it are its
	 * files. Returns whether there is anything of this engine. Writes where into `where`. */
	bool (*read)(int root, struct container_list *l, char *where, size_t cap);
	const char *at_home;     /* below the homes of users is theirs; NULL: they have none */
	state_read_fn read_home;
};

/* In the order in which they are asked; a container that two know belongs to the first. Ends with a NULL
 * name. */
extern const struct engine engines[];

/* What the engine's variable says; NULL: nothing. */
const char *engine_directory(const char *engine);

bool podman_read(int root, struct container_list *l, char *where, size_t cap);
bool podman_read_home(int root, const char *dir, struct container_list *l);
bool crio_read(int root, struct container_list *l, char *where, size_t cap);
bool docker_read(int root, struct container_list *l, char *where, size_t cap);
bool docker_read_home(int root, const char *dir, struct container_list *l);
bool containerd_read(int root, struct container_list *l, char *where, size_t cap);

/*
 * Adds a container; strings are copied, those that are too long to be names are cut. One whose id is there
 * already is not added. NULL: so, or out of memory.
 */
struct container *container_add(struct container_list *l, const char *engine, const char *id,
				const char *name, const char *image);

/* What Kubernetes calls it; each may be NULL. */
struct kubernetes_names {
	const char *namespace, *pod, *container;
};
/* As container_add(), by the name POD/CONTAINER and the alias CONTAINER. */
struct container *container_add_kubernetes(struct container_list *l, const char *engine,
					   const char *id, const struct kubernetes_names *names,
					   const char *image);

/* --- state files: below `root`, through no link that leads out of it, regular, 16 MiB at most --- */

int state_open(int root, const char *path);
/* A directory, as a descriptor that only names it. */
int state_find(int root, const char *dir);
/*
 * Reads what an engine has at the home of each user but root, as our own user data base knows them: 1 MiB of a file at most, and for 20 ms
 * of CPU time, 200 of all. More is left out: a user may put anything there. Returns whether there was anything.
 */
bool state_read_homes(int root, const struct engine *engine, struct container_list *l);
/* Where it was `found`. Returns that. */
bool state_where(bool found, const char *dir, char *where, size_t cap);
/* NULL: not there, not readable, too large, no JSON; or that user's time is over. */
cJSON *state_json(int root, const char *path);
DIR *state_dir(int root, const char *path);
DEFINE_CLEANUP(cJSON *, state_json_freep, cJSON_Delete)
DEFINE_CLEANUP(DIR *, state_dir_closep, closedir)
/* A member's text, NULL when it is none. */
const char *state_text(const cJSON *of, const char *name);

#endif
