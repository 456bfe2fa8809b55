/*
 * Performance monitoring units, as /sys/bus/event_source/devices describes them: their number (`type`), the bits of each
 * term (`format/TERM`: "config:0-7,32") and the events that they name themselves (`events/NAME`: "event=0x3c,umask=0x1").
 */
#ifndef MEMSCOPE_COLLECT_EVENTS_PMU_H
#define MEMSCOPE_COLLECT_EVENTS_PMU_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMU_DIR "/sys/bus/event_source/devices"

struct pmu_event {
	uint32_t type;
	uint64_t config[3]; /* config, config1, config2 */
};

/* The number of the PMU; false: there is none of that name. */
bool pmu_type(const char *dir, const char *pmu, uint32_t *ret_type);
/* Does it count on that CPU? Of a hybrid machine's cores each kind has a PMU, and what is beside the cores is counted by one of them. */
bool pmu_has_cpu(const char *dir, const char *pmu, uint32_t cpu);
/*
 * Sets one term: a field of the format, "config" and its like, or the name of an event (`value` NULL). -ENOENT: the PMU has no
 * such term. -ERANGE: the value has more bits than that.
 */
int pmu_term(const char *dir, const char *pmu, const char *term, const uint64_t *value,
	     struct pmu_event *event);
/* Puts `value` into the bits of a format ("config1:0-3,8"). -EINVAL: it is not understood; -ERANGE. */
int pmu_set_bits(const char *format, uint64_t value, uint64_t config[3]);
/* Calls `each` for the events that PMUs name, "msr/tsc/". */
void pmu_events(const char *dir, void (*each)(void *ctx, const char *name), void *ctx);

#endif
