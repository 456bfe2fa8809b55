/*
 * What a pushed profile is known by in a store. Names are those of OpenTelemetry's semantic conventions, and --label's own:
 *
 *   service.name     the container's name; without containers the target's, as its folder in the archive is called; "host": what
 *                    is in no container. --label service.name=… (or service_name) goes before it
 *   container.name, container.id   of a container
 *   host.name        of this machine; --label goes before it
 */
#ifndef MEMSCOPE_RUN_PUSH_LABELS_H
#define MEMSCOPE_RUN_PUSH_LABELS_H

#include "base/strbuf.h"
#include "model/profile.h"
#include "run/config.h"

enum { PUSH_LABELS_MAX = 40 };

struct push_labels {
	struct push_label {
		char *name, *value;
	} list[PUSH_LABELS_MAX];
	uint32_t n;
};

/*
 * `folder`: that of the profile in the run's directory, "web", NULL: it is of all of the run (folders.h). 0 or -ENOMEM.
 * More than there is room for are left out.
 */
int push_labels_of(const struct run_config *cfg, const struct profile *p, const char *folder, struct push_labels *ret_labels);
void push_labels_fini(struct push_labels *labels);
/* NULL: it has none of that name. */
const char *push_label(const struct push_labels *labels, const char *name);

/*
 * As Pyroscope and Grafana have them: service_name, container, container_id, hostname; others with '_' for each character
 * that a label of Prometheus cannot have.
 */
void push_label_name(const char *name, char *out, size_t cap);

#endif
