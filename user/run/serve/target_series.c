#include "run/serve/target_series.h"

#include "base/strbuf.h"

#include <errno.h>
#include <string.h>

enum { SUMS = TARGET_RSS_KB }; /* values that come from profiles */

struct label_use {
	int64_t had[SUMS];
	uint16_t row; /* and 1; 0: not known */
};

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
	for (uint32_t i = 0; i < s->n_uses; i++)
		if (s->uses[i].row == row + 1)
			s->uses[i].row = 0;
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
	struct label_use *more;

	if (labels < s->n_uses)
		return 0;
	more = reallocarray(s->uses, n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + s->n_uses, 0, (n - s->n_uses) * sizeof(*more));
	s->uses = more;
	s->n_uses = n;
	return 0;
}

static int reach_all(struct target_series *s, const struct profile *p)
{
	for (uint32_t i = 0; p && i < profile_n_samples(p); i++)
		if (reach(s, profile_sample(p, i).labels.ix) < 0)
			return -ENOMEM;
	return 0;
}

static void add_profile(const struct profile *p, int64_t (*sums)[SUMS], const int types[SUMS])
{
	for (uint32_t i = 0; p && i < profile_n_samples(p); i++) {
		struct profile_sample sample = profile_sample(p, i);

		for (int v = 0; v < SUMS; v++)
			if (types[v] >= 0)
				sums[sample.labels.ix][v] += sample.values[types[v]];
	}
}

/* What each label set gained goes to its row; those that gained nothing need none. */
static void add_gains(struct target_series *s, const struct dict *d, int64_t (*sums)[SUMS])
{
	for (uint32_t i = 0; i < s->n_uses; i++) {
		struct label_use *use = &s->uses[i];
		bool any = false;

		for (int v = 0; v < SUMS; v++)
			any |= sums[i][v] > use->had[v];
		if (any && !use->row)
			use->row = (uint16_t)(row_of_labels(s, d, (labels_id){ i }) + 1);
		for (int v = 0; v < SUMS; v++) {
			if (sums[i][v] > use->had[v])
				s->rows[use->row - 1].points[s->at][v] += sums[i][v] - use->had[v];
			use->had[v] = sums[i][v];
		}
	}
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

int target_series_add(struct target_series *s, const struct profile *oncpu,
		      const struct profile *offcpu, int64_t wall_ns, int64_t (*rss_kb)(pid_t pid))
{
	static const int cpu[SUMS] = { 1, -1, -1 }, waits[SUMS] = { -1, 1, 3 };
	_cleanup_(freep) int64_t(*sums)[SUMS] = NULL;
	uint32_t left = TARGET_PIDS_READ;

	if (reach_all(s, oncpu) < 0 || reach_all(s, offcpu) < 0)
		return -ENOMEM;
	sums = calloc(s->n_uses + 1ul, sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	if (!s->n_rows) {
		s->n_rows = 1;
		snprintf(s->rows[0].name, TARGET_NAME, "all others");
	}
	for (uint32_t i = 0; i < s->n_rows; i++)
		memset(s->rows[i].points[s->at], 0, sizeof(s->rows[i].points[s->at]));
	add_profile(oncpu, sums, cpu);
	add_profile(offcpu, sums, waits);
	if (oncpu || offcpu)
		add_gains(s, profile_dict(oncpu ? oncpu : offcpu), sums);
	for (uint32_t i = 0; i < s->n_rows; i++)
		s->rows[i].points[s->at][TARGET_RSS_KB] = read_rss(&s->rows[i], rss_kb, &left);
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
	free(TAKE_PTR(s->uses));
}
