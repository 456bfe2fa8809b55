/*
 * A page of a run of 10 minutes with many sites, as page.c writes it: what it costs to make, and how large it is.
 *
 *   report_page SITES SECONDS FILE.html [BUSY]
 *   report_page SITES SECONDS DIR BUSY SEED    a run's directory instead, with its profile and when samples came, for memscope diff
 *
 * Sites are as busy as those of real programs are, by a law of rank: BUSY (60) of them at every second, the others less and
 * less often. With BUSY as large as SITES each second has all of them, which no program does: the largest page there can be.
 */
#include "base/sink.h"
#include "render/formats/writers.h"
#include "render/html/page.h"
#include "render/render.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t state = 88172645463325252ull;

/* xorshift64 (Marsaglia 2003): the same page each time. */
static uint32_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

static double uniform(void)
{
	return draw() / 4294967296.0;
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static location_id function(struct dict *d, uint32_t n)
{
	static const char *const modules[] = { "/usr/bin/server", "/usr/lib/libparse.so.1",
					       "/usr/lib/libstore.so.3", "[kernel]" };
	uint32_t m = n % 13 == 0 ? 3 : n % 3;
	struct module module = { .kind = m == 3 ? MODULE_KERNEL : MODULE_ELF,
				 .path = dict_string(d, modules[m]) };
	struct line line = { 0 };
	char name[64];

	snprintf(name, sizeof(name), "%s_%s_%u", m == 3 ? "sys" : "ns::Type",
		 n % 2 ? "handle" : "encode", n);
	line.function = dict_string(d, name);
	return dict_location_lines(d, dict_module(d, &module), 4096 + 16 * (uint64_t)n, &line, 1);
}

/* A stack of 8 to 24 frames below a few that all have. */
static stack_id stack(struct dict *d, uint32_t n)
{
	location_id frames[32];
	uint32_t depth = 8 + n % 17;

	frames[0] = function(d, 5000 + n % 3000);
	for (uint32_t i = 1; i < depth; i++)
		frames[i] = function(d, (n / (1 + (depth - i) % 7) + 31 * i) % 2500);
	return dict_stack(d, frames, depth);
}

static int fill(struct profile *p, struct sample_times *times, uint32_t sites, uint32_t seconds,
		double busy)
{
	struct dict *d = profile_dict(p);
	struct label comm = { .key = dict_string(d, "comm"), .str = dict_string(d, "server") };
	labels_id labels = dict_labels(d, &comm, 1);

	for (uint32_t i = 0; i < sites; i++) {
		stack_id s = stack(d, i);
		double active = fmin(1, busy / (1 + i)), size = 64 * pow(4, 5 * uniform());

		for (uint32_t t = 0; t < seconds; t++) {
			int64_t objects = 1 + (int64_t)(uniform() * 50 / (1 + i / 100)), bytes;

			if (uniform() > active && t % seconds != draw() % seconds)
				continue;
			bytes = objects * (int64_t)size;
			if (profile_add(p, s, labels, (int64_t[]){ objects, bytes }) < 0 ||
			    sample_times_add(times, profile_n_samples(p) - 1, t * 1000000000ull,
					     &bytes) < 0)
				return -1;
		}
	}
	return 0;
}

/* --- lines and instructions: of 60 functions, and of a file of 9,000 lines --- */

enum { CODES = 60, INSTRUCTIONS = 250, LINES = 9000 };

static char *text(const char *format, uint32_t n)
{
	char *s = NULL;

	return asprintf(&s, format, n, draw() & 0xffff) < 0 ? NULL : s;
}

static int by_address(const void *a, const void *b)
{
	const struct code_text *x = a, *y = b;

	return x->module.ix != y->module.ix ? (x->module.ix > y->module.ix ? 1 : -1)
					    : (x->start > y->start) - (x->start < y->start);
}

/* Where the leaves of fill() are: functions 5,000 and on. Nothing is freed: it lasts as long as the program. */
static int make_sources(struct dict *d, struct code_sources *s)
{
	struct source_text *t = calloc(1, sizeof(*t));
	struct code_text *codes = calloc(CODES, sizeof(*codes));
	struct code_origin *origins = calloc(LINES, sizeof(*origins));

	if (!t || !codes || !origins || !(t->lines = calloc(LINES, sizeof(*t->lines))))
		return -1;
	t->path = text("/src/file%u.cc", 1);
	for (t->n = 0; t->n < LINES; t->n++)
		t->lines[t->n] = text("\tresult[%u] = parse(input + %u, length - 1);", t->n);
	for (uint32_t i = 0; i < CODES; i++) {
		const struct location *l = dict_location_get(d, function(d, 5000 + i));
		struct code_text *c = &codes[i];

		*c = (struct code_text){ .module = l->module,
					 .start = l->vaddr,
					 .end = l->vaddr + 16,
					 .n = INSTRUCTIONS };
		c->name = dict_str(d, l->lines[0].function);
		c->instructions = calloc(INSTRUCTIONS, sizeof(*c->instructions));
		for (uint32_t k = 0; c->instructions && k < INSTRUCTIONS; k++) {
			origins[i * 100 + k / 4] =
				(struct code_origin){ c->name, t->path, i * 100 + k / 4 };
			c->instructions[k] = (struct code_instruction){
				l->vaddr + k,
				1,
				1,
				&origins[i * 100 + k / 4],
				text("mov %%rax, 0x%x(%%rbx,%%rcx,8) /* %u */", k),
				NULL,
				k % 10 == 9 ? k - 5 : 0
			};
		}
	}
	qsort(codes, CODES, sizeof(*codes), by_address);
	*s = (struct code_sources){ codes, t, NULL, CODES, 1, 0, 0 };
	return 0;
}

static int write_file(const struct profile *p, const char *dir, const char *name,
		      int (*write)(const struct profile *, const struct render_opts *,
				   struct sink *, struct err *),
		      struct err *e)
{
	_cleanup_(sink_closep) struct sink *out = NULL;
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	r = sink_open_file(path, &out, e);
	if (r == 0)
		r = write(p, &(struct render_opts){ .value_type = -1 }, out, e);
	return r == 0 ? sink_commit(out, e) : r;
}

static int write_run(struct profile *p, const char *dir, struct err *e)
{
	int r = write_file(p, dir, "alloc.pb.gz", pprof_format_write, e);

	return r < 0 ? r : write_file(p, dir, "alloc.times.csv", times_write, e);
}

int main(int argc, char **argv)
{
	static const struct value_type types[] = { { "alloc_objects", "count" },
						   { "alloc_space", "bytes" } };
	uint32_t sites = argc > 1 ? (uint32_t)atoi(argv[1]) : 10000,
		 seconds = argc > 2 ? (uint32_t)atoi(argv[2]) : 600;
	_cleanup_(sample_times_freep) struct sample_times *times = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct profile_meta meta = { .time_ns = 1700000000000000000,
				     .duration_ns = seconds * 1000000000ll,
				     .default_type = 1 };
	struct code_sources sources;
	struct line_costs costs;
	struct rusage use;
	struct err e = { 0 };
	double before;

	state += argc > 5 ? 7919 * (uint64_t)atoi(argv[5]) : 0;
	times = sample_times_new((uint32_t[]){ 1 }, 1, SAMPLE_TIMES_BIN_NS, SAMPLE_TIMES_MAX);
	p = d ? profile_new(d, types, 2) : NULL;
	if (argc < 4 || !p || !times ||
	    fill(p, times, sites, seconds, argc > 4 ? atof(argv[4]) : 60) < 0 ||
	    profile_set_meta(p, &meta) < 0) {
		fprintf(stderr, "report_page SITES SECONDS FILE.html [BUSY]\n");
		return 1;
	}
	if (argc > 5) {
		profile_set_times(p, TAKE_PTR(times));
		if (write_run(p, argv[3], &e) < 0)
			fprintf(stderr, "%s\n", e.msg);
		return e.msg[0] != 0;
	}
	before = cpu_s();
	if (make_sources(d, &sources) < 0 || line_costs_make(p, 1, &costs) < 0)
		return 1;
	if (sink_open_file(argv[3], &out, &e) < 0 ||
	    page_write(&(struct page_run){ .profiles = { { "alloc", p, times, &costs } },
					   .sources = &sources,
					   .n_profiles = 1,
					   .seconds = seconds },
		       out, &e) < 0 ||
	    sink_commit(out, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	getrusage(RUSAGE_SELF, &use);
	printf("{\"sites\": %u, \"seconds\": %u, \"entries\": %llu, \"bin_s\": %g, \"cpu_s\": %.2f, \"peak_mib\": %.1f}\n",
	       profile_n_samples(p), seconds, (unsigned long long)sample_times_n_entries(times),
	       (double)sample_times_bin_ns(times) / 1e9, cpu_s() - before, use.ru_maxrss / 1024.0);
	return 0;
}
