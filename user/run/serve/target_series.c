#include "run/serve/target_series.h"

#include "base/strbuf.h"

#include <errno.h>
#include <string.h>

enum { SUMS = TARGET_RSS_KB }; /* values that come from profiles */

/* Has it done anything in what is shown, or is it still there? */
static bool is_quiet(const struct target_row *row)
{
	for (int i = 0; i < TARGET_POINTS; i++)
		for (int v = 0; v < N_TARGET_VALUES; v++)
			if (row->points[i][v])
				return false;
	return row->n_pids == 0;
}

static void forget_row(struct target_series *s, uint32_t row)
{
	for (uint32_t i = 0; i < s->n_labels; i++)
		if (s->by_labels[i] == row + 1)
			s->by_labels[i] = 0;
	s->rows[row] = (struct target_row){ 0 };
}

static uint32_t find_row(struct target_series *s, const char *name, bool container)
{
	struct target_row *row;
	uint32_t i;

	for (i = 1; i < s->n_rows; i++)
		if (s->rows[i].container == container && strcmp(s->rows[i].name, name) == 0)
			return i;
	if (s->n_rows == TARGET_ROWS) {
		for (i = 1; i < TARGET_ROWS && !is_quiet(&s->rows[i]); i++)
			;
		if (i == TARGET_ROWS)
			return 0;
		forget_row(s, i);
	} else {
		i = s->n_rows++;
	}
	row = &s->rows[i];
	row->container = container;
	snprintf(row->name, sizeof(row->name), "%s", name);
	return i;
}

static void add_pid(struct target_row *row, pid_t pid)
{
	for (uint32_t i = 0; i < row->n_pids; i++)
		if (row->pids[i] == pid)
			return;
	if (row->n_pids < TARGET_PIDS)
		row->pids[row->n_pids++] = pid;
}

static uint32_t row_of_labels(struct target_series *s, const struct dict *d, labels_id labels)
{
	const struct label *container = dict_label_find(d, labels, "container");
	const struct label *comm = dict_label_find(d, labels, "comm");
	const struct label *pid = dict_label_find(d, labels, "pid");
	struct strbuf name = { 0 };
	uint32_t row = 0;

	if (container || comm) {
		const char *text = dict_str(d, (container ? container : comm)->str);

		strbuf_add_clean(&name, text, strnlen(text, TARGET_NAME - 1));
		row = find_row(s, name.s ? name.s : "", container != NULL);
	}
	if (row && pid)
		add_pid(&s->rows[row], (pid_t)pid->num);
	strbuf_free(&name);
	return row;
}

/* Room for the label sets up to this one. */
static int reach(struct target_series *s, uint32_t labels)
{
	uint32_t n = labels + labels / 2 + 64;
	uint16_t *more;

	if (labels < s->n_labels)
		return 0;
	more = reallocarray(s->by_labels, n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + s->n_labels, 0, (n - s->n_labels) * sizeof(*more));
	s->by_labels = more;
	s->n_labels = n;
	return 0;
}

static int add_sample(struct target_series *s, const struct dict *d,
		      const struct profile_sample *sample, const int types[SUMS])
{
	uint16_t *row;

	if (reach(s, sample->labels.ix) < 0)
		return -ENOMEM;
	row = &s->by_labels[sample->labels.ix];
	if (!*row)
		*row = (uint16_t)(row_of_labels(s, d, sample->labels) + 1);
	for (int v = 0; v < SUMS; v++)
		if (types[v] >= 0)
			s->rows[*row - 1].points[s->at][v] += sample->values[types[v]];
	return 0;
}

/* What it gained since the last row: of a stack it may be less than nothing, where sampled waits were found to be another's. */
static int add_gains(struct target_series *s, struct profile *p, struct profile_checkpoint *had,
		     const int types[SUMS])
{
	_cleanup_(profile_freep) struct profile *gained = NULL;
	int rc = p ? profile_since(p, had, &gained) : 0;

	for (uint32_t i = 0; gained && i < profile_n_samples(gained) && rc == 0; i++) {
		struct profile_sample sample = profile_sample(gained, i);

		rc = add_sample(s, profile_dict(p), &sample, types);
	}
	return rc;
}

/* Ids of label sets may be those of others now. */
static void forget_swept(struct target_series *s, const struct dict *d)
{
	if (s->swept == dict_labels_swept(d))
		return;
	s->swept = dict_labels_swept(d);
	if (s->by_labels)
		memset(s->by_labels, 0, s->n_labels * sizeof(*s->by_labels));
}

/* Of all its processes; those that are gone are forgotten. */
static int64_t read_rss(struct target_row *row, int64_t (*rss_kb)(pid_t pid), uint32_t *left)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < row->n_pids && *left; --*left) {
		int64_t kb = rss_kb(row->pids[i]);

		if (kb < 0) {
			row->pids[i] = row->pids[--row->n_pids];
			continue;
		}
		sum += kb;
		i++;
	}
	return sum;
}

/* Resident memory of all rows, of so many processes a time: the next time the others come first, and meanwhile they have what they had. */
static void add_rss(struct target_series *s, int64_t (*rss_kb)(pid_t pid))
{
	uint32_t left = TARGET_PIDS_READ, from = s->rss_from;
	uint32_t before = (s->at + TARGET_POINTS - 1) % TARGET_POINTS;
	bool is_over = false;

	for (uint32_t k = 0; k < s->n_rows; k++) {
		uint32_t i = (from + k) % s->n_rows;
		struct target_row *row = &s->rows[i];

		is_over |= row->n_pids > left;
		if (is_over && row->n_pids) {
			row->points[s->at][TARGET_RSS_KB] = row->points[before][TARGET_RSS_KB];
			continue;
		}
		row->points[s->at][TARGET_RSS_KB] = read_rss(row, rss_kb, &left);
		if (!is_over)
			s->rss_from = (i + 1) % s->n_rows;
	}
}

int target_series_add(struct target_series *s, struct profile *oncpu, struct profile *offcpu,
		      int64_t wall_ns, int64_t (*rss_kb)(pid_t pid))
{
	static const int cpu[SUMS] = { 1, -1, -1 }, waits[SUMS] = { -1, 1, 3 };

	if (!s->n_rows) {
		s->n_rows = 1;
		snprintf(s->rows[0].name, TARGET_NAME, "all others");
	}
	if (oncpu || offcpu)
		forget_swept(s, profile_dict(oncpu ? oncpu : offcpu));
	for (uint32_t i = 0; i < TARGET_ROWS; i++)
		memset(s->rows[i].points[s->at], 0, sizeof(s->rows[i].points[s->at]));
	if (add_gains(s, oncpu, &s->oncpu, cpu) < 0 || add_gains(s, offcpu, &s->offcpu, waits) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_rows; i++) {
		int64_t *point = s->rows[i].points[s->at];

		for (int v = 0; v < SUMS; v++)
			point[v] = point[v] > 0 ? point[v] : 0;
	}
	add_rss(s, rss_kb);
	s->times_ns[s->at] = wall_ns;
	s->at = (s->at + 1) % TARGET_POINTS;
	if (s->n_points < TARGET_POINTS)
		s->n_points++;
	return 0;
}

uint32_t target_series_point(const struct target_series *s, uint32_t i)
{
	return (s->at + TARGET_POINTS - s->n_points + i) % TARGET_POINTS;
}

void target_series_fini(struct target_series *s)
{
	profile_checkpoint_fini(&s->oncpu);
	profile_checkpoint_fini(&s->offcpu);
	free(TAKE_PTR(s->by_labels));
}
