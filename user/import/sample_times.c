#include "import/sample_times.h"

#include "base/cleanup.h"
#include "base/gunzip.h"
#include "base/whole_file.h"
#include "import/scan.h"
#include "model/sample_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PROFILE_EXT ".pb.gz"
#define TIMES_EXT   ".times.csv.gz"
#define NS          1000000000ULL

enum { MAX_FILE_BYTES = 256 << 20 };

struct reader {
	const struct profile *p;
	const char *name;
	struct err *e;
	uint64_t line;
	uint64_t bin_ns, last_bin;
	uint32_t last_sample;
	bool any;
	struct sample_times *times;
};

static int damaged(struct reader *r, const char *what)
{
	return err_set(r->e, -EBADMSG, "%s, line %" PRIu64 ": %s", r->name, r->line, what);
}

/* The next line, without its end. false: there is none. */
static bool take_line(struct reader *r, struct bytes *from, struct bytes *ret_line)
{
	const uint8_t *end = from->len ? memchr(from->data, '\n', from->len) : NULL;

	if (!from->len)
		return false;
	r->line++;
	bytes_take(from, end ? (size_t)(end - from->data) : from->len, ret_line);
	if (end)
		bytes_skip(from, 1);
	return true;
}

/* Digits alone: no blank, no sign. */
static bool take_digits(struct bytes *b, uint64_t *ret_number)
{
	int64_t n;

	if (!b->len || !scan_is_digit(b->data[0]) || !scan_number(b, &n))
		return false;
	*ret_number = (uint64_t)n;
	return true;
}

static bool take_char(struct bytes *b, char c)
{
	return b->len && b->data[0] == (uint8_t)c && bytes_skip(b, 1) == 0;
}

/* Seconds with up to nine decimals, in ns. */
static bool take_second(struct bytes *b, uint64_t *ret_ns)
{
	uint64_t whole, part = 0, unit = NS;

	if (!take_digits(b, &whole) || whole > UINT64_MAX / NS - 1)
		return false;
	if (take_char(b, '.')) {
		for (; b->len && scan_is_digit(b->data[0]) && unit > 1; bytes_skip(b, 1)) {
			unit /= 10;
			part += unit * (uint64_t)(b->data[0] - '0');
		}
		if (unit == NS)
			return false;
	}
	*ret_ns = whole * NS + part;
	return true;
}

static int read_head(struct reader *r, struct bytes *csv)
{
	struct bytes line;
	uint64_t n;

	if (!take_line(r, csv, &line) || !take_char(&line, '#') || !take_char(&line, ' ') ||
	    !take_digits(&line, &n) || !scan_text(&line, "samples, in bins of ") ||
	    !take_second(&line, &r->bin_ns) || !r->bin_ns || !scan_text(&line, "s") || line.len)
		return damaged(r, "not a table of times as memscope writes it");
	if (n != profile_n_rows(r->p))
		return err_set(r->e, -EBADMSG,
			       "%s: it is of a profile of %" PRIu64
			       " samples, and this one has %" PRIu32,
			       r->name, n, profile_n_rows(r->p));
	return 0;
}

/* "name/unit": the number of that value type. */
static int type_of(const struct profile *p, struct bytes name)
{
	char full[160];

	if (name.len >= sizeof(full))
		return -1;
	memcpy(full, name.data, name.len);
	full[name.len] = '\0';
	return strlen(full) == name.len && strchr(full, '/') ? profile_find_type(p, full) : -1;
}

static int read_columns(struct reader *r, struct bytes *csv)
{
	uint32_t types[SAMPLE_TIMES_TYPES], n = 0;
	struct bytes line, name = { 0 };

	if (!take_line(r, csv, &line) || !scan_text(&line, "sample,second"))
		return damaged(r, "no names of columns");
	while (take_char(&line, ',')) {
		const uint8_t *end = line.len ? memchr(line.data, ',', line.len) : NULL;
		int type;

		bytes_take(&line, end ? (size_t)(end - line.data) : line.len, &name);
		type = n < SAMPLE_TIMES_TYPES ? type_of(r->p, name) : -1;
		if (type < 0)
			return damaged(r, "a column is of no value type of the profile");
		types[n++] = (uint32_t)type;
	}
	if (!n || line.len || (n == 2 && types[0] == types[1]))
		return damaged(r, "no names of columns");
	/* Bounded by the rows that there are. */
	r->times = sample_times_new(types, n, r->bin_ns, UINT32_MAX);
	return r->times ? 0 : err_set(r->e, -ENOMEM, "out of memory");
}

static int read_row(struct reader *r, struct bytes line)
{
	int64_t values[SAMPLE_TIMES_TYPES] = { 0 };
	uint64_t sample, ns;

	if (!take_digits(&line, &sample) || !take_char(&line, ',') || !take_second(&line, &ns))
		return damaged(r, "no sample and second");
	if (sample >= profile_n_rows(r->p))
		return damaged(r, "the profile has no such sample");
	if (ns % r->bin_ns || ns / r->bin_ns >= UINT32_MAX)
		return damaged(r, "no bin begins at this second");
	for (uint32_t i = 0; i < sample_times_n_types(r->times); i++)
		if (!take_char(&line, ',') || !line.len || scan_is_blank(line.data[0]) ||
		    !scan_number(&line, &values[i]))
			return damaged(r, "a value is missing");
	if (line.len)
		return damaged(r, "more values than columns");
	if (r->any && (ns / r->bin_ns < r->last_bin ||
		       (ns / r->bin_ns == r->last_bin && sample <= r->last_sample)))
		return damaged(r, "not in the order of time");
	r->any = true;
	r->last_bin = ns / r->bin_ns;
	r->last_sample = (uint32_t)sample;
	return sample_times_add(r->times, profile_row_sample(r->p, (uint32_t)sample), ns, values) <
			       0
		       ? err_set(r->e, -ENOMEM, "out of memory")
		       : 0;
}

/* Do they add up to the profile? */
static int check_sums(struct reader *r)
{
	for (uint32_t i = 0; i < profile_n_samples(r->p); i++) {
		const int64_t *values = profile_sample(r->p, i).values;
		struct sample_time_reader at = sample_times_read(r->times, i);
		int64_t sums[SAMPLE_TIMES_TYPES] = { 0 };
		struct sample_time entry;
		bool over = false;

		while (sample_times_next(&at, &entry))
			for (uint32_t k = 0; k < sample_times_n_types(r->times); k++)
				over |= __builtin_add_overflow(sums[k], entry.values[k], &sums[k]);
		for (uint32_t k = 0; k < sample_times_n_types(r->times); k++)
			if (over || sums[k] != values[sample_times_type(r->times, k)])
				return err_set(r->e, -EBADMSG,
					       "%s: it is not of this profile: sample %" PRIu32
					       " is %" PRId64 " here and %" PRId64 " there",
					       r->name, i, sums[k],
					       values[sample_times_type(r->times, k)]);
	}
	return 0;
}

int sample_times_parse(struct profile *p, struct bytes csv, const char *name, struct err *e)
{
	struct reader r = { .p = p, .name = name, .e = e };
	struct bytes line;
	int rc = read_head(&r, &csv);

	profile_set_times(p, NULL);
	if (rc == 0)
		rc = read_columns(&r, &csv);
	while (rc == 0 && take_line(&r, &csv, &line))
		rc = read_row(&r, line);
	if (rc == 0)
		rc = check_sums(&r);
	if (rc < 0)
		sample_times_free(r.times);
	else
		profile_set_times(p, r.times);
	return rc;
}

static int read_file(const char *path, void **ret_data, size_t *ret_len, struct err *e)
{
	_cleanup_(freep) char *data = NULL;
	size_t len;
	int r = whole_file_read(path, MAX_FILE_BYTES, "a table of times", &data, &len, e);

	return r < 0 ? r : gunzip_file(bytes_of(data, len), path, ret_data, ret_len, e);
}

int sample_times_read_beside(struct profile *p, const char *path, struct err *e)
{
	size_t len = strlen(path), ext = strlen(PROFILE_EXT), n;
	_cleanup_(freep) void *csv = NULL;
	char file[4096];
	int r;

	if (len < ext || strcmp(path + len - ext, PROFILE_EXT) != 0 ||
	    len - ext + sizeof(TIMES_EXT) > sizeof(file))
		return err_set(
			e, -ENOENT,
			"%s: it is not known when its samples came: that is in a file beside "
			"the profiles of a run, SOURCE" TIMES_EXT,
			path);
	snprintf(file, sizeof(file), "%.*s" TIMES_EXT, (int)(len - ext), path);
	r = read_file(file, &csv, &n, e);
	if (r == -ENOENT)
		return err_set(e, r,
			       "%s: it is not known when its samples came: there is no %s (on-CPU, "
			       "off-CPU, alloc and growth of a run have one)",
			       path, file);
	return r < 0 ? r : sample_times_parse(p, bytes_of(csv, n), file, e);
}
