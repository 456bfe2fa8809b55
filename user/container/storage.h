/*
 * What engines have in common that keep their containers with the containers/storage library: podman, CRI-O.
 */
#ifndef MEMSCOPE_CONTAINER_STORAGE_H
#define MEMSCOPE_CONTAINER_STORAGE_H

#include "container/engine.h"

#define STORAGE_GRAPH_ROOT "/var/lib/containers/storage"
#define STORAGE_RUN_ROOT   "/run/containers/storage"
#define STORAGE_CONF       "/etc/containers/storage.conf"

/* `one`: its row, with `names`; `metadata`: what its engine wrote, NULL: none, or no JSON. All until it returns. */
typedef void (*storage_fn)(void *ctx, const char *id, const cJSON *one, const cJSON *metadata);

/* Each container of the lists below `at`, a graph root or a run root. Returns whether there is any list. */
bool storage_each(int root, const char *at, storage_fn fn, void *ctx);

/* KEY = "VALUE" of a file in TOML, on a line of its own; the last one. False: not there. */
bool storage_configured(int root, const char *file, const char *key, char *out, size_t cap);

/* Of podman, not of CRI-O, which says to each the pod that it belongs to? */
static inline bool storage_has_pod(const cJSON *metadata)
{
	return state_text(metadata, "pod-id") != NULL;
}

#endif
