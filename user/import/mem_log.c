#include "import/mem_log.h"

#include "base/cleanup.h"
#include "base/grow.h"
#include "import/csv_time.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MAX_FIELDS 64
#define MAX_LINE   4096
#define MAX_ROWS   (1u << 24) /* half a year of seconds */
#define TIMESTAMP  N_MEM_COLUMNS

static const char *const names[] = {
	[MEM_COLUMN_RSS] = "rss_kb",         [MEM_COLUMN_ANONYMOUS] = "anonymous_kb",
	[MEM_COLUMN_FILE] = "file_kb",       [MEM_COLUMN_SWAP] = "swap_kb",
	[MEM_COLUMN_PSS] = "pss_kb",         [MEM_COLUMN_VSZ] = "vsz_kb",
	[MEM_COLUMN_GC_LIVE] = "gc_live_kb", [MEM_COLUMN_GROUP] = "group_kb",
	[MEM_COLUMN_CPU] = "cpu_percent",    [TIMESTAMP] = "timestamp",
};

/* Which field of a line is which column; -1: none. */
struct layout {
	int column[MAX_FIELDS];
	int n;
	bool of_memscope;
};

/* Cuts `line` at its commas. Returns how many fields there are, MAX_FIELDS at most. */
static int split(char *line, char *fields[MAX_FIELDS])
{
	int n = 0;

	line[strcspn(line, "\r\n")] = 0;
	while (n < MAX_FIELDS) {
		char *comma = strchr(line, ',');

		fields[n++] = line;
		if (!comma)
			break;
		*comma = 0;
		line = comma + 1;
	}
	return n;
}

/* Of a log without a line of names. */
static const struct layout unnamed = {
	.column = { TIMESTAMP, MEM_COLUMN_RSS, MEM_COLUMN_VSZ, MEM_COLUMN_CPU },
	.n = 4,
};

static bool read_layout(char *line, struct layout *l)
{
	bool has_time = false, has_rss = false;
	char *fields[MAX_FIELDS];

	l->of_memscope = false;
	l->n = split(line, fields);
	for (int i = 0; i < l->n; i++) {
		l->column[i] = -1;
		for (int c = 0; c <= TIMESTAMP; c++)
			if (strcasecmp(fields[i], names[c]) == 0)
				l->column[i] = c;
		has_time |= l->column[i] == TIMESTAMP;
		has_rss |= l->column[i] == MEM_COLUMN_RSS;
		/* A column that no other program writes. */
		l->of_memscope |= strcmp(fields[i], "live_bytes") == 0;
	}
	return has_time && has_rss;
}

static bool read_row(char *line, const struct layout *l, struct mem_log_row *row)
{
	char *fields[MAX_FIELDS];
	bool has_time = false;
	int n = split(line, fields);

	for (int c = 0; c < N_MEM_COLUMNS; c++)
		row->value[c] = NAN;
	if (n != l->n)
		return false;
	for (int i = 0; i < n; i++) {
		int c = l->column[i];

		if (c < 0 || (!*fields[i] && c != TIMESTAMP))
			continue;
		if (c == TIMESTAMP)
			has_time = csv_time(fields[i], &row->time_s);
		else if (!csv_number(fields[i], &row->value[c]))
			return false;
	}
	return has_time && !isnan(row->value[MEM_COLUMN_RSS]);
}

static int add_row(struct mem_log *log, const struct mem_log_row *row)
{
	if (log->n == MAX_ROWS)
		return -EFBIG;
	if (!GROW(log->rows, log->n, log->cap))
		return -ENOMEM;
	log->rows[log->n++] = *row;
	return 0;
}

/* A line of MAX_LINE bytes or more is not whole: its rest is read over. false: there is none. */
static bool next_line(FILE *f, char line[MAX_LINE], bool *ret_whole)
{
	int c;

	if (!fgets(line, MAX_LINE, f))
		return false;
	*ret_whole = strlen(line) < MAX_LINE - 1 || strchr(line, '\n');
	if (!*ret_whole)
		while ((c = getc(f)) != EOF && c != '\n')
			;
	return true;
}

static int read_rows(FILE *f, const struct layout *l, struct mem_log *log)
{
	char line[MAX_LINE];
	bool whole;

	for (uint64_t number = 2; next_line(f, line, &whole); number++) {
		struct mem_log_row row;
		int r;

		if (*line == '\n' || *line == 0)
			continue;
		if (!whole || !read_row(line, l, &row) ||
		    (log->n && row.time_s < log->rows[log->n - 1].time_s)) {
			if (!log->skipped++)
				log->first_skipped = number;
			continue;
		}
		r = add_row(log, &row);
		if (r < 0)
			return r;
	}
	return ferror(f) ? -EIO : 0;
}

/* The first line: the names of the columns, or the first row of a log without them. -EBADMSG; -ENOMEM */
static int read_first(char *line, struct layout *ret_layout, struct mem_log *log)
{
	char copy[MAX_LINE];
	struct mem_log_row row;

	if (strncmp(line, "\xef\xbb\xbf", 3) == 0) /* a spreadsheet marks its text as UTF-8 */
		line += 3;
	memcpy(copy, line, strlen(line) + 1);
	if (read_layout(copy, ret_layout)) {
		log->of_memscope = ret_layout->of_memscope;
		return 0;
	}
	if (!read_row(line, &unnamed, &row))
		return -EBADMSG;
	*ret_layout = unnamed;
	return add_row(log, &row);
}

int mem_log_parse(FILE *f, const char *name, struct mem_log **ret_log, struct err *e)
{
	_cleanup_(mem_log_freep) struct mem_log *log = calloc(1, sizeof(*log));
	struct layout layout;
	char line[MAX_LINE];
	bool whole;
	int r;

	if (!log)
		return err_set(e, -ENOMEM, "%s: out of memory", name);
	r = next_line(f, line, &whole) && whole ? read_first(line, &layout, log) : -EBADMSG;
	if (r == -EBADMSG)
		return err_set(
			e, r,
			"%s: not a memory log: its first line neither names the columns timestamp "
			"and rss_kb nor is a row timestamp,rss_kb,vsz_kb,cpu_percent",
			name);
	if (r == 0)
		r = read_rows(f, &layout, log);
	if (r < 0)
		return err_set(e, r, "%s: %s", name, strerror(-r));
	if (!log->n)
		return err_set(e, -ENODATA, "%s: there is no row in this memory log", name);
	*ret_log = TAKE_PTR(log);
	return 0;
}

int mem_log_read(const char *path, struct mem_log **ret_log, struct err *e)
{
	_cleanup_(freep) char *inside = NULL;
	_cleanup_(fclosep) FILE *f = NULL;
	struct stat st;

	if (strcmp(path, "-") == 0)
		return mem_log_parse(stdin, "standard input", ret_log, e);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (asprintf(&inside, "%s/trend.csv", path) < 0) {
			inside = NULL;
			return err_set(e, -ENOMEM, "out of memory");
		}
		path = inside;
	}
	f = fopen(path, "re");
	if (!f)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	return mem_log_parse(f, path, ret_log, e);
}
