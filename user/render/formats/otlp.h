/*
 * A profile as a message to an OpenTelemetry collector: ExportProfilesServiceRequest of opentelemetry-proto 1.11.0, whose
 * fields are those of ProfilesData (otlp.c).
 */
#ifndef MEMSCOPE_RENDER_FORMATS_OTLP_H
#define MEMSCOPE_RENDER_FORMATS_OTLP_H

#include "base/sink.h"
#include "model/profile.h"

/* The value type that collectors know as time off the CPU: each wait counts, so it has no period. */
#define OTLP_OFF_CPU "off_cpu"

struct otlp_resource {
	const char *const *names, *const *values; /* attributes, n of them: service.name, … */
	uint32_t n;
	uint8_t id[16]; /* by which a receiver may know what it has already; each value type has its own, made of it */
};

/* Not compressed. 0 or -ENOMEM. */
int otlp_export(const struct profile *p, const struct otlp_resource *of, struct sink *out, struct err *e);

#endif
