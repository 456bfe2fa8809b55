/* Events that perf has a name for. Numbers are those of linux/perf_event.h. */
#ifndef MEMSCOPE_COLLECT_EVENTS_EVENT_NAMES_H
#define MEMSCOPE_COLLECT_EVENTS_EVENT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_name {
	const char *name;
	uint32_t type; /* PERF_TYPE_… */
	uint64_t config;
	const char *synonym; /* or NULL */
};

/* Ends with a row without a name. */
extern const struct event_name event_names[];

/* `name` of `len` bytes, also of the caches (L1-dcache-load-misses). false: there is none. */
bool event_name_find(const char *name, size_t len, uint32_t *ret_type, uint64_t *ret_config);
/* One that was perhaps meant, or NULL. */
const char *event_name_near(const char *name);
/* Calls `each` for all events of caches. */
void event_names_of_caches(void (*each)(void *ctx, const char *name, uint64_t config), void *ctx);

#endif
