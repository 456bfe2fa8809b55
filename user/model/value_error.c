#include "model/value_error.h"

#include <math.h>

#define Z 1.959963984540054

const char *const value_error_labels[N_ERROR_LABELS] = {
	[ERROR_LABEL_SAMPLES] = "_samples", [ERROR_LABEL_SEEN] = "_seen",
	[ERROR_LABEL_STDERR] = "_stderr",   [ERROR_LABEL_WEIGHT] = "_weight",
	[ERROR_LABEL_LOW] = "_low",         [ERROR_LABEL_HIGH] = "_high",
	[ERROR_LABEL_BURST] = "_burst",
};

void value_error_add(struct value_error *to, const struct value_error *from)
{
	to->samples += from->samples;
	to->unseen += from->unseen;
	to->v += from->v;
	to->vc += from->vc;
	to->below += from->below;
	to->above += from->above;
	for (int g = 0; g < ERROR_GROUPS; g++)
		to->group[g] += from->group[g];
}

void value_error_less(struct value_error *from, const struct value_error *part)
{
	from->samples -= part->samples;
	from->unseen = isinf(part->unseen) ? INFINITY : from->unseen - part->unseen;
	from->v = fmax(0, from->v - part->v);
	from->vc -= part->vc;
	from->below -= part->below;
	from->above -= part->above;
	for (int g = 0; g < ERROR_GROUPS; g++)
		from->group[g] -= part->group[g];
}

void value_error_negate(struct value_error *e)
{
	double below = e->below;

	e->unseen = INFINITY;
	e->vc = -e->vc;
	e->below = e->above;
	e->above = below;
	for (int g = 0; g < ERROR_GROUPS; g++)
		e->group[g] = -e->group[g];
}

double value_error_variance(const struct value_error *e)
{
	double same_way = (e->below + e->above) / 2 / Z, sum = e->v > 0 ? e->v : 0;

	for (int g = 0; g < ERROR_GROUPS; g++)
		sum += e->group[g] * e->group[g];
	return sum + same_way * same_way;
}

bool value_error_has_groups(const struct value_error *e)
{
	for (int g = 0; g < ERROR_GROUPS; g++)
		if (e->group[g] != 0)
			return true;
	return false;
}

/* --- labels --- */

/* A label of 0 says nothing: pprof drops it when it writes a profile again. */
static void put(struct value_error_number *out, uint32_t *n, enum value_error_label label, double v)
{
	if (fabs(v) >= 0.5 && fabs(v) < 0x1p62)
		out[(*n)++] = (struct value_error_number){ label, llround(v) };
}

uint32_t value_error_write(const struct value_error *e, int64_t value,
			   struct value_error_number out[ERROR_LABELS_MAX])
{
	uint32_t n = 0;

	put(out, &n, ERROR_LABEL_SAMPLES, e->samples);
	put(out, &n, ERROR_LABEL_SEEN, (double)value - e->unseen);
	if (e->v > 0) {
		put(out, &n, ERROR_LABEL_STDERR, sqrt(e->v));
		put(out, &n, ERROR_LABEL_WEIGHT, e->vc / e->v);
	}
	if (e->below != 0 || e->above != 0) {
		put(out, &n, ERROR_LABEL_LOW, fmax(1, (double)value - e->below));
		put(out, &n, ERROR_LABEL_HIGH, (double)value + e->above);
	}
	for (int g = 0; g < ERROR_GROUPS; g++) {
		double d = e->group[g];

		if (fabs(d) >= 0.5 && fabs(d) < 0x1p57)
			out[n++] = (struct value_error_number){ ERROR_LABEL_BURST,
								llround(d) * ERROR_GROUPS + g };
	}
	return n;
}

void value_error_begin(struct value_error *e)
{
	*e = (struct value_error){ .unseen = INFINITY, .below = NAN, .above = NAN };
}

void value_error_read(struct value_error *e, int64_t value, struct value_error_number label)
{
	double number = (double)label.number;

	switch (label.label) {
	case ERROR_LABEL_SAMPLES:
		e->samples = number;
		break;
	case ERROR_LABEL_SEEN:
		e->unseen = fmax(0, (double)value - number);
		break;
	case ERROR_LABEL_STDERR:
		e->v = number * number;
		break;
	case ERROR_LABEL_WEIGHT:
		e->vc = number;
		break;
	case ERROR_LABEL_LOW:
		e->below = (double)value - number;
		break;
	case ERROR_LABEL_HIGH:
		e->above = number - (double)value;
		break;
	case ERROR_LABEL_BURST:
		/* Two's complement: the low bits are the group, of either sign. */
		e->group[label.number & (ERROR_GROUPS - 1)] += (double)(label.number >> 4);
		break;
	case N_ERROR_LABELS:
		break;
	}
}

void value_error_end(struct value_error *e)
{
	e->vc *= e->v;
	e->below = isnan(e->below) ? 0 : e->below;
	e->above = isnan(e->above) ? 0 : e->above;
}

bool value_error_as_written(struct value_error *e, int64_t value)
{
	struct value_error_number numbers[ERROR_LABELS_MAX];
	uint32_t n = value_error_write(e, value, numbers);

	if (!n) {
		*e = (struct value_error){ 0 };
		return false;
	}
	value_error_begin(e);
	for (uint32_t i = 0; i < n; i++)
		value_error_read(e, value, numbers[i]);
	value_error_end(e);
	return true;
}
