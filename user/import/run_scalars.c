#include "import/run_scalars.h"

#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

enum { MAX_SUMMARY_BYTES = 16 << 20 };

DEFINE_CLEANUP(cJSON *, json_freep, cJSON_Delete)

const struct run_scalar_name run_scalar_names[N_RUN_SCALARS] = {
	[RUN_DURATION] = { "duration", "duration_ns", "nanoseconds", false },
	[RUN_CPU] = { "CPU time", "cpu_ns", "nanoseconds", true },
	[RUN_BLOCKED] = { "blocked", "blocked_ns", "nanoseconds", true },
	[RUN_RUNNABLE] = { "waiting for a CPU", "runnable_ns", "nanoseconds", true },
	[RUN_RSS_PEAK] = { "RSS, peak", "rss_peak_bytes", "bytes", false },
	[RUN_RSS_LAST] = { "RSS, last", "rss_last_bytes", "bytes", false },
	[RUN_ALLOCATED] = { "allocated", "alloc_bytes", "bytes", true },
	[RUN_ALLOCATIONS] = { "allocations", "alloc_objects", "count", true },
	[RUN_LIVE] = { "live at the end", "live_bytes", "bytes", false },
	[RUN_RESIDENT] = { "made resident", "resident_bytes", "bytes", true },
};

static const cJSON *at(const cJSON *in, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(in, key);
}

static double number(const cJSON *in, const char *key, double factor)
{
	const cJSON *item = at(in, key);

	return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble * factor
								   : NAN;
}

static void put(struct run_scalars *s, enum run_scalar which, double value)
{
	s->value[which] = value;
}

static void put_interval(struct run_scalars *s, enum run_scalar which, const cJSON *interval)
{
	if (!interval)
		return;
	s->low[which] = number(interval, "low", 1);
	s->high[which] = number(interval, "high", 1);
}

/* A count of samples, so Poisson's. */
static void put_sampled_cpu(struct run_scalars *s, const cJSON *oncpu)
{
	double cpu = number(oncpu, "cpu_ns", 1), samples = number(oncpu, "samples", 1);

	put(s, RUN_CPU, cpu);
	if (samples > 0) {
		s->low[RUN_CPU] = cpu * (1 - 1.96 / sqrt(samples));
		s->high[RUN_CPU] = cpu * (1 + 1.96 / sqrt(samples));
	}
}

static void put_alloc(struct run_scalars *s, const cJSON *alloc)
{
	const cJSON *tier = at(alloc, "tier");

	/* A tier that was off, or declined, has zeros that mean nothing. */
	if (!cJSON_IsString(tier) ||
	    (strcmp(tier->valuestring, "exact") != 0 && strcmp(tier->valuestring, "sampled") != 0))
		return;
	put(s, RUN_ALLOCATED, number(alloc, "bytes", 1));
	put(s, RUN_ALLOCATIONS, number(alloc, "objects", 1));
	put(s, RUN_LIVE, number(alloc, "live_bytes", 1));
	put_interval(s, RUN_ALLOCATED, at(alloc, "bytes_interval"));
	put_interval(s, RUN_LIVE, at(alloc, "live_interval"));
}

int run_scalars_parse(struct bytes json, const char *name, struct run_scalars *ret_scalars,
		      struct err *e)
{
	_cleanup_(json_freep) cJSON *root = NULL;
	const cJSON *growth, *kind, *end;
	struct run_scalars s = { 0 };
	double resident = 0;

	errno = 0;
	root = cJSON_ParseWithLength((const char *)json.data, json.len);
	if (!root && errno == ENOMEM) /* of which it says nothing itself */
		return err_set(e, -ENOMEM, "%s: out of memory", name);
	growth = at(at(root, "growth"), "resident");
	end = at(root, "end");
	if (!cJSON_IsObject(root) || !cJSON_IsObject(at(root, "sources")))
		return err_set(e, -EBADMSG, "%s: not the summary of a run", name);
	for (int i = 0; i < N_RUN_SCALARS; i++)
		s.value[i] = s.low[i] = s.high[i] = NAN;
	put(&s, RUN_DURATION, number(root, "duration_ns", 1));
	put(&s, RUN_CPU, number(at(root, "time"), "oncpu_ns", 1));
	if (isnan(s.value[RUN_CPU]))
		put_sampled_cpu(&s, at(root, "oncpu"));
	put(&s, RUN_BLOCKED, number(at(root, "time"), "blocked_ns", 1));
	put(&s, RUN_RUNNABLE, number(at(root, "time"), "runnable_ns", 1));
	put(&s, RUN_RSS_PEAK, number(at(root, "rss"), "peak_kb", 1024));
	put(&s, RUN_RSS_LAST, number(at(root, "rss"), "last_kb", 1024));
	put_alloc(&s, at(root, "alloc"));
	cJSON_ArrayForEach(kind, growth) resident += cJSON_IsNumber(kind) ? kind->valuedouble : 0;
	if (cJSON_IsObject(growth))
		put(&s, RUN_RESIDENT, resident);
	s.ended_by_itself = cJSON_IsString(end) && strcmp(end->valuestring, "target") == 0;
	*ret_scalars = s;
	return 0;
}

int run_scalars_read(const char *dir, struct run_scalars *ret_scalars, struct err *e)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(closep) int fd = -1;
	char path[4096];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/summary.json", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT
				       : err_set(e, -errno, "%s: cannot be opened: %m", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_SUMMARY_BYTES)
		return err_set(e, -EBADMSG, "%s: not the summary of a run", path);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return err_set(e, -ENOMEM, "%s: out of memory", path);
	n = read(fd, text, (size_t)st.st_size);
	if (n < 0)
		return err_set(e, -errno, "%s: cannot be read: %m", path);
	return run_scalars_parse(bytes_of(text, (size_t)n), path, ret_scalars, e);
}
