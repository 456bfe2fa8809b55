#include "cmd/diff_sides.h"

#include "analyse/series.h"
#include "base/cleanup.h"
#include "cmd/inputs_list.h"
#include "collect/session/sources.h"
#include "import/run_scalars.h"
#include "model/about.h"
#include "run/named_kinds.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* --- which operands --- */

static bool are_windows(char **operands)
{
	return input_is_windows(operands, 2) ||
	       (input_is_directory(operands[0]) && strncmp(operands[1], "last:", 5) == 0 &&
		access(operands[1], F_OK) < 0);
}

/* DIR at:… at:…: two choices of windows of one directory; the second becomes DIR at:…, in `both`. */
static bool are_of_one(char **operands, int n, char *both[4])
{
	if (n != 3 || !are_windows(operands) || input_is_directory(operands[2]) ||
	    !input_is_choice(operands[2]))
		return false;
	memcpy(both, (char *[4]){ operands[0], operands[1], operands[0], operands[2] },
	       4 * sizeof(*both));
	return true;
}

static int find_two(struct diff_side sides[2], char **operands, int n, struct err *e)
{
	static char *both[4];
	int first = inputs_first(operands, n);

	if (are_of_one(operands, n, both)) {
		sides[0] = (struct diff_side){ both, 2, 1 };
		sides[1] = (struct diff_side){ both + 2, 2, 1 };
		return 0;
	}

	/* A directory and a word that names nothing: most likely a name that was misspelt. */
	if (first == n && n == 2 && access(operands[1], F_OK) < 0)
		return err_set(
			e, -EINVAL,
			"%s: No such file or directory; which two? (memscope diff BEFORE AFTER)",
			operands[1]);
	if (first == n)
		return err_set(e, -EINVAL, "which two? (memscope diff BEFORE AFTER)");
	if (n - first > 1 && inputs_first(operands + first, n - first) < n - first)
		return err_set(
			e, -EINVAL,
			"diff compares two, and \"%.200s\" is a third; for several runs a side use "
			"memscope diff BEFORE… -- AFTER…",
			operands[first + inputs_first(operands + first, n - first)]);
	sides[0] = (struct diff_side){ operands, first, 1 };
	sides[1] = (struct diff_side){ operands + first, n - first, 1 };
	return 0;
}

int diff_sides_find(struct diff_side sides[2], struct err *e)
{
	if (!sides[0].n || !sides[1].n) {
		int r = find_two(sides, sides[sides[1].n > 0].operands, sides[0].n + sides[1].n, e);

		if (r < 0)
			return r;
	}
	for (int i = 0; i < 2; i++) {
		struct diff_side *s = &sides[i];

		s->runs = 0;
		for (int at = 0; at < s->n; s->runs++)
			at += inputs_first(s->operands + at, s->n - at);
	}
	return 0;
}

void diff_side_name(const struct diff_side *side, char *out, size_t cap)
{
	if (side->runs > 1)
		snprintf(out, cap, "%.180s and %u more", side->operands[0], side->runs - 1);
	else if (input_is_windows(side->operands, side->n))
		snprintf(out, cap, "%.180s %.60s", side->operands[0], side->operands[1]);
	else
		snprintf(out, cap, "%s", side->operands[0]);
}

/* --- profiles --- */

void side_profiles_fini(struct side_profiles *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->runs[i] != s->sum)
			profile_free(s->runs[i]);
	profile_free(s->sum);
	free(s->runs);
}

/* One run of a side, and into its sum. */
static int read_run(struct inputs *in, struct side_profiles *s, char **operands, int n,
		    const char *source, struct err *e)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r = inputs_read(in, operands, n, input_is_directory(operands[0]) ? source : NULL,
			    MERGE_COMMON, NULL, &p, e);

	if (r == 0)
		r = profile_merge(&s->sum, p, operands[0], MERGE_COMMON, NULL, e);
	if (r == 0)
		s->runs[s->n++] = TAKE_PTR(p);
	return r;
}

int side_profiles_read(struct inputs *in, const struct diff_side *side, const char *source,
		       struct side_profiles *s, struct err *e)
{
	int r = 0;

	s->runs = calloc(side->runs + 1ul, sizeof(*s->runs));
	if (!s->runs)
		return err_set(e, -ENOMEM, "out of memory");
	/* Of one there is no sum. */
	if (side->runs == 1) {
		r = inputs_read(in, side->operands, side->n, source, MERGE_COMMON, NULL, &s->sum,
				e);
		if (r == 0)
			s->runs[s->n++] = s->sum;
	}
	for (int at = 0, n; side->runs > 1 && at < side->n && r == 0; at += n) {
		n = inputs_first(side->operands + at, side->n - at);
		r = read_run(in, s, side->operands + at, n, source, e);
	}
	return r;
}

double side_profiles_seconds(const struct side_profiles *side)
{
	double sum = 0;

	for (uint32_t i = 0; i < side->n; i++) {
		int64_t ns = profile_get_meta(side->runs[i])->duration_ns;

		if (ns <= 0)
			return 0;
		sum += (double)ns / 1e9 / side->n;
	}
	return sum;
}

/* Was the run whose directory this is, or which has left this file, over when its work was done? Then sums are of the same work. */
static bool ended_by_itself(const char *operand)
{
	const char *slash = strrchr(operand, '/');
	struct run_scalars run;
	char dir[4096];

	if (access(operand, F_OK) < 0) /* what is chosen of the directory before it */
		return false;
	if (input_is_directory(operand))
		snprintf(dir, sizeof(dir), "%s", operand);
	else
		snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - operand) : 1,
			 slash ? operand : ".");
	return run_scalars_read(dir, &run, NULL) == 0 && run.ended_by_itself;
}

static bool any_ended_by_itself(const struct diff_side *side)
{
	for (int i = 0; i < side->n; i++)
		if (ended_by_itself(side->operands[i]))
			return true;
	return false;
}

/* A profile by itself says it, too. */
static bool any_profile_says_so(const struct side_profiles *side)
{
	for (uint32_t i = 0; i < side->n; i++) {
		const char *end = profile_about(side->runs[i], ABOUT_END, 0);

		if (end && strcmp(end, "target") == 0)
			return true;
	}
	return false;
}

bool diff_sides_end_by_themselves(const struct diff_side sides[2],
				  const struct side_profiles profiles[2])
{
	return any_ended_by_itself(&sides[0]) || any_ended_by_itself(&sides[1]) ||
	       any_profile_says_so(&profiles[0]) || any_profile_says_so(&profiles[1]);
}

bool diff_sides_need_rate(const struct diff_side sides[2], const struct side_profiles profiles[2],
			  const char *type)
{
	return !value_type_is_level(type) && !diff_sides_end_by_themselves(sides, profiles) &&
	       diff_lengths_differ(side_profiles_seconds(&profiles[0]),
				   side_profiles_seconds(&profiles[1]));
}

/* --- a run and a file --- */

static bool has_source(const char *dir, const char *source)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.pb.gz", dir, source);
	return access(path, R_OK) == 0;
}

/* The first operand that is a directory with profiles of several sources, or that is none. */
static char *first_operand(const struct diff_side sides[2], const char *container, bool directory)
{
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < sides[i].n; k++)
			if (directory == (input_is_directory(sides[i].operands[k]) &&
					  input_main_source(sides[i].operands[k], container)) &&
			    access(sides[i].operands[k], F_OK) == 0)
				return sides[i].operands[k];
	return NULL;
}

/* oncpu of dir/oncpu.pb.gz. */
static bool is_named_for(const char *path, const char *source)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(source);

	return strncmp(name, source, len) == 0 && (!name[len] || name[len] == '.');
}

static bool counts_the_same(const struct profile *p, const struct profile_row *row)
{
	return profile_same_type(p, &row->types[row->default_type]) >= 0;
}

int diff_sides_source(struct inputs *in, const struct diff_side sides[2], const char **ret_source,
		      struct err *e)
{
	char *dir = first_operand(sides, in->container, true),
	     *file = first_operand(sides, in->container, false);
	_cleanup_(profile_freep) struct profile *p = NULL;
	char types[200];
	int r;

	*ret_source = NULL;
	if (!dir || !file || strcmp(file, "-") == 0 || input_is_directory(file))
		return 0;
	named_kinds_of(dir);
	for (int i = 0; i < profile_kinds(); i++)
		if (is_named_for(file, profile_rows[i].name) &&
		    has_source(dir, profile_rows[i].name)) {
			*ret_source = profile_rows[i].name;
			return 0;
		}
	r = inputs_read(in, &file, 1, NULL, MERGE_COMMON, NULL, &p, e);
	for (int i = 0; i < profile_kinds() && r == 0 && !*ret_source; i++)
		if (has_source(dir, profile_rows[i].name) && counts_the_same(p, &profile_rows[i]))
			*ret_source = profile_rows[i].name;
	if (r < 0 || *ret_source)
		return r;
	profile_list_types(p, types, sizeof(types));
	return err_set(e, -EINVAL, "%.200s has no profile to compare with %.200s, which counts %s",
		       dir, file, types);
}

/* --- summaries --- */

/* The mean of the runs of a side, and its 95 % interval by their variation; of one, what it says itself. */
static void mean_scalar(const struct run_scalars *runs, uint32_t n, int k, int side,
			struct diff_scalar *to)
{
	double mean = 0, squares = 0, half;

	for (uint32_t i = 0; i < n; i++)
		mean += runs[i].value[k] / n;
	for (uint32_t i = 0; i < n; i++)
		squares += (runs[i].value[k] - mean) * (runs[i].value[k] - mean);
	to->value[side] = mean;
	to->low[side] = runs[0].low[k];
	to->high[side] = runs[0].high[k];
	if (n < 2)
		return;
	half = student_t_quantile(0.975, n - 1) * sqrt(squares / (n - 1) / n);
	to->low[side] = mean - half;
	to->high[side] = mean + half;
}

static int read_scalars(const struct diff_side *side, struct run_scalars *runs, struct err *e)
{
	for (int i = 0; i < side->n; i++) {
		int r = run_scalars_read(side->operands[i], &runs[i], e);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add_scalars(const struct diff_side *side, int which, struct diff_scalar *scalars,
		       struct err *e)
{
	_cleanup_(freep) struct run_scalars *runs = calloc((size_t)side->n + 1, sizeof(*runs));
	int r = runs ? read_scalars(side, runs, e) : err_set(e, -ENOMEM, "out of memory");
	bool by_sum = false;
	double seconds = 0;

	for (int i = 0; i < side->n && r == 0; i++) {
		seconds += runs[i].value[RUN_DURATION] / 1e9 / side->n;
		by_sum |= runs[i].ended_by_itself;
	}
	for (int k = 0; k < N_RUN_SCALARS && r == 0; k++) {
		mean_scalar(runs, (uint32_t)side->n, k, which, &scalars[k]);
		scalars[k].seconds[which] = run_scalar_names[k].of_time ? seconds : 0;
		scalars[k].by_sum |= by_sum;
	}
	return r;
}

int diff_scalars_read(const struct diff_side sides[2], struct diff_scalar scalars[], struct err *e)
{
	for (int k = 0; k < N_RUN_SCALARS; k++) {
		scalars[k].text = run_scalar_names[k].text;
		scalars[k].key = run_scalar_names[k].key;
		scalars[k].unit = run_scalar_names[k].unit;
	}
	for (int i = 0; i < 2; i++) {
		int r = add_scalars(&sides[i], i, scalars, e);

		if (r < 0)
			return r;
	}
	return 0;
}
