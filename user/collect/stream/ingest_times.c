/* When what is ingested came. */
#include "collect/stream/ingest_parts.h"
#include "model/sample_times.h"

void ingest_stretch(struct ingest *in, const struct ingest_stretch *stretch)
{
	in->stretch = *stretch;
}

void ingest_between(struct ingest *in, uint64_t from_ns, uint64_t to_ns)
{
	in->stretch.from_ns = from_ns;
	in->stretch.to_ns = to_ns;
}

static uint64_t since_begin(const struct ingest *in, uint64_t ns)
{
	return ns > in->stretch.begin_ns ? ns - in->stretch.begin_ns : 0;
}

static uint64_t slot_ns(const struct ingest *in, enum ms_source source)
{
	return source == MS_ONCPU && in->stretch.oncpu_slot_ns ? in->stretch.oncpu_slot_ns
							       : MS_SLOT_NS;
}

/* A key has the low 16 bits: it is the slot that is nearest to now. */
uint64_t ingest_slot(const struct ingest *in, const struct ms_total_key *key)
{
	uint64_t now = since_begin(in, in->stretch.to_ns) / slot_ns(in, key->source);
	int64_t slot = (int64_t)now + (int16_t)(uint16_t)(key->slot - (uint16_t)now);

	return slot > 0 ? (uint64_t)slot : 0;
}

void ingest_set_slot(const struct ingest *in, uint64_t end_ns, uint64_t ns,
		     struct ms_total_key *key, struct ms_total *total)
{
	uint64_t at = since_begin(in, end_ns), within = at % MS_SLOT_NS;

	key->slot = (uint16_t)(at / MS_SLOT_NS);
	total->before = ns > within ? ns - within : 0;
}

/* Those of the values that have times. */
static struct sample_times *pick(const struct ingest *in, const struct profile *p,
				 const int64_t *values, int64_t picked[SAMPLE_TIMES_TYPES])
{
	struct sample_times *t = in->stretch.begin_ns ? profile_times(p) : NULL;

	for (uint32_t i = 0; t && i < sample_times_n_types(t); i++)
		picked[i] = values[sample_times_type(t, i)];
	return t;
}

int ingest_add(struct ingest *in, struct profile *p, stack_id stack, labels_id labels,
	       const int64_t *values)
{
	int64_t picked[SAMPLE_TIMES_TYPES];
	struct sample_times *t = pick(in, p, values, picked);
	uint32_t sample;
	int r = profile_add_to(p, stack, labels, values, &sample);

	return r == 0 && t ? sample_times_add_span(t, sample, since_begin(in, in->stretch.from_ns),
						   since_begin(in, in->stretch.to_ns), picked)
			   : r;
}

int ingest_add_total(struct ingest *in, struct profile *p, stack_id stack, labels_id labels,
		     const int64_t *values, const struct ms_total_key *key, uint64_t slot,
		     uint64_t before)
{
	int64_t picked[SAMPLE_TIMES_TYPES], early[SAMPLE_TIMES_TYPES] = { 0 };
	struct sample_times *t = pick(in, p, values, picked);
	uint64_t at = slot * slot_ns(in, key->source);
	uint32_t sample, state = key->state == MS_RUNNABLE;
	int r = profile_add_to(p, stack, labels, values, &sample);

	if (r < 0 || !t)
		return r;
	/* Of the off-CPU profile the first is blocked time, the second runnable. */
	early[state] = (int64_t)before;
	picked[state] -= early[state];
	if (before)
		r = sample_times_add_span(t, sample, at > before ? at - before : 0, at, early);
	return r == 0 ? sample_times_add(t, sample, at, picked) : r;
}
