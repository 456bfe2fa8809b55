#include "collect/events/event_probes.h"

#include "base/cleanup.h"
#include "base/grow.h"
#include "collect/events/event_parts.h"
#include "collect/events/pmu.h"
#include "collect/events/tracefs.h"
#include "collect/probes/uprobes.h"
#include "collect/session/session_wire.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 128 }; /* counts read at a time */

static void set_why(struct event_probes *ep, uint32_t spec, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void set_why(struct event_probes *ep, uint32_t spec, const char *fmt, ...)
{
	va_list ap;

	if (*ep->items[spec].why)
		return;
	va_start(ap, fmt);
	vsnprintf(ep->items[spec].why, sizeof(ep->items[spec].why), fmt, ap);
	va_end(ap);
}

int event_add(struct event_probes *ep, uint32_t spec, const char *name, uint64_t id)
{
	struct event *ev;

	if (ep->n == MS_EVENTS_MAX)
		return -E2BIG;
	if (!GROW(ep->events, ep->n, ep->cap))
		return -ENOMEM;
	ev = &ep->events[ep->n];
	*ev = (struct event){ .spec = spec, .name = strdup(name), .id = id };
	if (!ev->name)
		return -ENOMEM;
	return (int)ep->n++;
}

/* --- perf events --- */

static struct perf_event_attr attr_of(const struct event_spec *s, uint32_t hz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = s->type,
		.config = s->config,
		.config1 = s->config1,
		.config2 = s->config2,
		.disabled = 1,
		.exclude_user = s->no_user,
		.exclude_kernel = s->no_kernel,
		.precise_ip = s->precise & 3,
	};

	if (s->period || event_unit(s) == EVENT_UNIT_COUNT)
		attr.sample_period = s->period ? s->period : 1;
	else {
		attr.freq = 1;
		attr.sample_freq = s->freq ? s->freq : hz;
	}
	return attr;
}

static int open_event(const struct event_spec *s, uint32_t hz, uint32_t cpu)
{
	struct perf_event_attr attr = attr_of(s, hz);
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static const char *open_why(const struct event_spec *s, int code)
{
	switch (code) {
	case -ENOENT:
	case -ENODEV:
	case -EOPNOTSUPP:
		return event_unit(s) == EVENT_UNIT_OF_HARDWARE
			       ? "this machine has no such counter; virtual machines often have none"
			       : "this kernel has no such event";
	case -EINVAL:
		return "the kernel refuses it: see its terms and modifiers, and "
		       "kernel.perf_event_max_sample_rate";
	case -EBUSY:
		return "the counter is in use by another program";
	default:
		return session_perf_why(code);
	}
}

static bool has_cpu(const struct event_spec *s, uint32_t cpu)
{
	return !*s->pmu || pmu_has_cpu(PMU_DIR, s->pmu, cpu);
}

/* The first CPU that is online, and that it counts on, is asked. */
const char *event_why_not(const struct event_spec *spec)
{
	static uint32_t cpus[4096];
	uint32_t n = session_online_cpus(cpus, 4096), i = 0;
	int fd;

	while (i + 1 < n && !has_cpu(spec, cpus[i]))
		i++;
	fd = open_event(spec, 99, cpus[i]);
	if (fd < 0)
		return open_why(spec, fd);
	close(fd);
	return NULL;
}

static void ask(struct event_probes *ep, uint32_t spec)
{
	const char *why = event_why_not(&ep->specs[spec]);

	if (why)
		set_why(ep, spec, "%s", why);
}

/* --- tracepoints --- */

struct finding {
	struct event_probes *ep;
	uint32_t spec;
	int error;
};

static void found(void *ctx, const char *system, const char *name, uint64_t id)
{
	struct finding *f = ctx;
	char full[256];
	int r;

	snprintf(full, sizeof(full), "%s:%s", system, name);
	r = f->error ? 0 : event_add(f->ep, f->spec, full, id);
	if (r < 0)
		f->error = r;
}

/* Those of an item of which there are too many make room for the others'. */
static void cut_back(struct event_probes *ep, uint32_t n)
{
	while (ep->n > n)
		free(ep->events[--ep->n].name);
}

static int find_tracepoints(struct event_probes *ep, uint32_t spec, int *events_fd)
{
	const struct event_spec *s = &ep->specs[spec];
	struct finding f = { ep, spec, 0 };
	struct err e = { 0 };
	uint32_t before;
	int n;

	if (*events_fd == -1)
		*events_fd = tracefs_open(&e);
	if (*events_fd < 0) {
		set_why(ep, spec, "%s", *e.msg ? e.msg : "the list of tracepoints cannot be read");
		return 0;
	}
	before = ep->n;
	n = tracefs_find(*events_fd, s->group, s->event, found, &f);
	if (n < 0)
		set_why(ep, spec, "the list of tracepoints cannot be read: %s", strerror(-n));
	else if (!n && strchr(s->group, '*') == NULL)
		set_why(ep, spec, "this kernel has no such tracepoint (a function is uprobe:%s:%s)",
			s->group, s->event);
	else if (!n)
		set_why(ep, spec, "this kernel has no such tracepoint");
	if (f.error == -E2BIG) {
		set_why(ep, spec,
			"it stands for %d tracepoints: all events of a run are %d at most", n,
			MS_EVENTS_MAX);
		cut_back(ep, before);
	}
	return f.error == -ENOMEM ? -ENOMEM : 0;
}

/* --- all --- */

static int find(struct event_probes *ep)
{
	int events_fd = -1, r = 0;

	for (uint32_t i = 0; i < ep->n_specs && r == 0; i++) {
		const struct event_spec *s = &ep->specs[i];

		switch (s->kind) {
		case EVENT_PERF:
			r = event_add(ep, i, s->text, 0);
			if (r == -E2BIG)
				set_why(ep, i, "all events of a run are %d at most", MS_EVENTS_MAX);
			r = r == -ENOMEM ? r : 0;
			ask(ep, i);
			break;
		case EVENT_TRACEPOINT:
			r = find_tracepoints(ep, i, &events_fd);
			break;
		case EVENT_USDT:
		case EVENT_UPROBE:
			ep->has_sites = true;
			break;
		}
	}
	if (events_fd >= 0)
		close(events_fd);
	return r;
}

int event_probes_new(const struct event_spec *specs, uint32_t n, struct event_probes **ret_probes,
		     struct err *e)
{
	_cleanup_(event_probes_freep) struct event_probes *ep = calloc(1, sizeof(*ep));
	uint32_t failed = 0;

	if (!ep)
		return err_set(e, -ENOMEM, "out of memory");
	ep->specs = specs;
	ep->n_specs = n;
	if (find(ep) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		failed += event_probes_why(ep, i) != NULL;
	if (n && failed == n)
		return err_set(e, -ENODEV, "-e %s: %s", specs[0].text, event_probes_why(ep, 0));
	*ret_probes = TAKE_PTR(ep);
	return 0;
}

static enum ms_event_program program_of(const struct event_spec *s)
{
	return s->kind == EVENT_PERF         ? MS_EVENT_PERF
	       : s->kind == EVENT_TRACEPOINT ? MS_EVENT_TRACEPOINT
					     : MS_EVENT_SITE;
}

void event_probes_opts(const struct event_probes *ep, struct session_opts *opts)
{
	for (uint32_t i = 0; i < ep->n_specs; i++)
		if (!*ep->items[i].why)
			opts->event_programs |= 1u << program_of(&ep->specs[i]);
	for (uint32_t i = 0; i < ep->n_specs; i++)
		opts->event_timed |= ep->specs[i].timed;
	if (opts->event_timed)
		opts->event_programs |= 1u << MS_EVENT_RETURN;
	opts->n_events = ep->has_sites ? MS_EVENTS_MAX : ep->n;
	opts->event_alone[MS_EVENT_SITE] = ep->n; /* the first one that will be found */
	for (uint32_t i = ep->n; i-- > 0;)
		opts->event_alone[program_of(&ep->specs[ep->events[i].spec])] = i;
}

bool event_has_number(const struct event_probes *ep, uint32_t number)
{
	struct session_opts alone = { 0 };

	if (uprobes_cookies())
		return true;
	event_probes_opts(ep, &alone);
	return alone.event_alone[program_of(&ep->specs[ep->events[number].spec])] == number;
}

int event_set_row(const struct event_probes *ep, uint32_t number)
{
	const struct event *ev = &ep->events[number];
	const struct event_spec *s = &ep->specs[ev->spec];
	uint64_t one_in = ep->items[ev->spec].thin;
	struct ms_event row = {
		.at_entry = ev->at_entry,
		.timed = s->timed && !ev->untimed && !ep->items[ev->spec].untimed,
	};

	/* A perf event's period is the kernel's. */
	if (s->kind != EVENT_PERF && s->period)
		one_in *= s->period;
	row.one_in = one_in > UINT32_MAX ? UINT32_MAX : (uint32_t)one_in;
	return bpf_map_update_elem(session_map_fd(ep->session, SESSION_EVENT_ROWS), &number, &row,
				   BPF_ANY);
}

/* Attaches the program to a perf event, which it takes over. */
static int link_event(struct event_probes *ep, uint32_t number, int fd)
{
	struct event *ev = &ep->events[number];
	struct bpf_program *prog =
		session_event_program(ep->session, program_of(&ep->specs[ev->spec]));
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = number);
	int link = -1;

	if (!GROW(ev->fds, ev->n_fds, ev->cap_fds)) {
		close(fd);
		return -ENOMEM;
	}
	if (uprobes_cookies()) {
		link = bpf_link_create(bpf_program__fd(prog), fd, BPF_PERF_EVENT, &opts);
		if (link < 0) {
			close(fd);
			return link;
		}
	} else if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(prog)) < 0) {
		link = -errno;
		close(fd);
		return link;
	}
	ev->fds[ev->n_fds++] = (struct event_fd){ .perf = fd, .link = link };
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

static int attach_perf(struct event_probes *ep, uint32_t number, uint32_t hz)
{
	const struct event_spec *s = &ep->specs[ep->events[number].spec];
	static uint32_t cpus[4096];
	uint32_t n = session_online_cpus(cpus, 4096);
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		bool wanted = session_wants_cpu(ep->session, cpus[i]) && has_cpu(s, cpus[i]);
		int fd = wanted ? open_event(s, hz, cpus[i]) : -ENODEV;

		if (fd >= 0)
			r = link_event(ep, number, fd);
		else if (fd != -ENODEV) /* went offline */
			r = fd;
	}
	return r;
}

static int attach_tracepoint(struct event_probes *ep, uint32_t number)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = ep->events[number].id,
		.disabled = 1,
	};
	uint32_t cpu = 0;
	int fd;

	session_online_cpus(&cpu, 1);
	/* The program runs on all CPUs, whichever the event is of. */
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : link_event(ep, number, fd);
}

/* What it has counted, of all processes. */
static uint64_t read_count(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static uint64_t stop_and_read(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	return read_count(fd);
}

static void detach(struct event_probes *ep, struct event *ev)
{
	for (uint32_t i = 0; i < ev->n_fds; i++) {
		int fds[2] = { ev->fds[i].perf, ev->fds[i].link };

		if (ep->specs[ev->spec].kind == EVENT_PERF)
			ev->seen += stop_and_read(ev->fds[i].perf);
		uprobes_detach(fds, fds[1] >= 0 ? 2 : 1);
	}
	ev->n_fds = 0;
}

/* None of it goes on. Of a pattern it is one of many. */
static void attach_failed(struct event_probes *ep, uint32_t number, const char *why)
{
	struct event *ev = &ep->events[number];

	detach(ep, ev);
	if (event_probes_get(ep, number).is_one_of)
		event_failed(ep, ev->spec, 1, "%s: %s", ev->name, why);
	else
		set_why(ep, ev->spec, "%s", why);
}

static bool has_any(const struct event_probes *ep, uint32_t spec)
{
	bool any = false;

	for (uint32_t i = 0; i < ep->n; i++)
		any |= ep->events[i].spec == spec && ep->events[i].n_fds;
	return any;
}

void event_probes_attach(struct event_probes *ep, struct session *s, uint32_t hz)
{
	ep->session = s;
	if (ep->has_sites)
		event_sites_measure(ep);
	for (uint32_t i = 0; i < ep->n_specs; i++)
		ep->items[i].thin = 1;
	for (uint32_t i = 0; i < ep->n; i++) {
		uint32_t spec = ep->events[i].spec;
		int r;

		if (*ep->items[spec].why || ep->specs[spec].kind > EVENT_TRACEPOINT)
			continue;
		if (!event_has_number(ep, i)) {
			set_why(ep, spec,
				"this kernel (before 5.15) can have one event of each kind at a time");
			continue;
		}
		r = event_set_row(ep, i);
		if (r == 0)
			r = ep->specs[spec].kind == EVENT_PERF ? attach_perf(ep, i, hz)
							       : attach_tracepoint(ep, i);
		if (r < 0)
			attach_failed(ep, i, open_why(&ep->specs[spec], r));
	}
	for (uint32_t i = 0; i < ep->n_specs; i++)
		if (ep->specs[i].kind == EVENT_TRACEPOINT && ep->items[i].failed && !has_any(ep, i))
			set_why(ep, i, "%s", ep->items[i].failed_why);
}

/* What comes between the two counts is in the second one alone: less was missed then, if anything. */
static uint64_t missed_so_far(const struct event_probes *ep, uint32_t number)
{
	const struct event *ev = &ep->events[number];
	struct event_count count;
	uint64_t seen = ev->seen;

	for (uint32_t i = 0; i < ev->n_fds; i++)
		seen += read_count(ev->fds[i].perf);
	event_probes_count(ep, number, &count);
	return seen > count.fired ? seen - count.fired : 0;
}

void event_probes_begin(struct event_probes *ep)
{
	for (uint32_t i = 0; i < ep->n; i++)
		if (ep->specs[ep->events[i].spec].kind == EVENT_PERF)
			ep->events[i].before = missed_so_far(ep, i);
}

void event_probes_stop(struct event_probes *ep, uint32_t spec)
{
	for (uint32_t i = 0; i < ep->n; i++)
		if (ep->events[i].spec == spec)
			detach(ep, &ep->events[i]);
	event_sites_stop(ep, spec);
}

void event_probes_detach(struct event_probes *ep)
{
	for (uint32_t i = 0; i < ep->n_specs; i++)
		event_probes_stop(ep, i);
}

void event_probes_thin(struct event_probes *ep, uint32_t spec, uint32_t one_in)
{
	ep->items[spec].thin = one_in;
	for (uint32_t i = 0; i < ep->n; i++)
		if (ep->events[i].spec == spec)
			event_set_row(ep, i);
}

void event_probes_free(struct event_probes *ep)
{
	if (!ep)
		return;
	event_probes_detach(ep);
	event_sites_free(ep);
	for (uint32_t i = 0; i < ep->n; i++) {
		free(ep->events[i].name);
		free(ep->events[i].fds);
	}
	free(ep->events);
	free(ep);
}

/* --- asked --- */

uint32_t event_probes_n_specs(const struct event_probes *ep)
{
	return ep->n_specs;
}

const struct event_spec *event_probes_spec(const struct event_probes *ep, uint32_t spec)
{
	return &ep->specs[spec];
}

const char *event_probes_why(const struct event_probes *ep, uint32_t spec)
{
	return *ep->items[spec].why ? ep->items[spec].why : NULL;
}

uint32_t event_probes_n(const struct event_probes *ep)
{
	return ep->n;
}

struct event_probe event_probes_get(const struct event_probes *ep, uint32_t number)
{
	const struct event *ev = &ep->events[number];
	const struct event_spec *s = &ep->specs[ev->spec];

	return (struct event_probe){ .spec = ev->spec,
				     .name = ev->name,
				     .is_one_of = s->kind != EVENT_PERF &&
						  (event_is_pattern(s->group) ||
						   event_is_pattern(s->event)) };
}

static struct event_count sum_of(const struct ms_event_count *of_cpu, int cpus)
{
	struct event_count sum = { 0 };

	for (int i = 0; i < cpus; i++) {
		sum.fired += of_cpu[i].fired;
		sum.count += of_cpu[i].count;
		sum.taken += of_cpu[i].taken;
		sum.stacks += of_cpu[i].stacks;
		sum.returns += of_cpu[i].returns;
		if (of_cpu[i].longest_ns > sum.longest_ns)
			sum.longest_ns = of_cpu[i].longest_ns;
		if (of_cpu[i].shortest_ns &&
		    (!sum.shortest_ns || of_cpu[i].shortest_ns < sum.shortest_ns))
			sum.shortest_ns = of_cpu[i].shortest_ns;
	}
	return sum;
}

void event_probes_count(const struct event_probes *ep, uint32_t number,
			struct event_count *ret_count)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_(freep) struct ms_event_count *of_cpu = NULL;

	*ret_count = (struct event_count){ 0 };
	if (cpus <= 0 || !ep->session)
		return;
	of_cpu = calloc((size_t)cpus, sizeof(*of_cpu));
	if (of_cpu && bpf_map_lookup_elem(session_map_fd(ep->session, SESSION_EVENT_COUNTS),
					  &number, of_cpu) == 0)
		*ret_count = sum_of(of_cpu, cpus);
}

void event_probes_counts(const struct event_probes *ep, struct event_count *ret_counts, uint32_t n)
{
	int cpus = libbpf_num_possible_cpus();
	int fd = ep->session ? session_map_fd(ep->session, SESSION_EVENT_COUNTS) : -1;
	_cleanup_(freep) struct ms_event_count *of_cpu = NULL;
	uint32_t keys[BATCH], token, got;
	void *in = NULL;

	memset(ret_counts, 0, n * sizeof(*ret_counts));
	if (cpus <= 0 || fd < 0)
		return;
	of_cpu = calloc(BATCH * (size_t)cpus, sizeof(*of_cpu));
	for (uint32_t done = 0; of_cpu && done < n; done += got) {
		got = n - done < BATCH ? n - done : BATCH;
		if (bpf_map_lookup_batch(fd, in, &token, keys, of_cpu, &got, NULL) < 0 &&
		    errno != ENOENT) {
			/* Before 5.13 one by one. */
			for (; done < n; done++)
				event_probes_count(ep, done, &ret_counts[done]);
			return;
		}
		in = &token;
		for (uint32_t i = 0; i < got && keys[i] < n; i++)
			ret_counts[keys[i]] = sum_of(of_cpu + i * (size_t)cpus, cpus);
		if (!got)
			return;
	}
}

uint64_t event_probes_missed(const struct event_probes *ep, uint32_t spec)
{
	const struct event_spec *s = &ep->specs[spec];
	uint64_t missed = 0;

	/* Of a longer period each CPU has a rest. */
	if (s->kind != EVENT_PERF || s->period > 1 || event_unit(s) != EVENT_UNIT_COUNT)
		return 0;
	for (uint32_t i = 0; i < ep->n; i++) {
		uint64_t all = ep->events[i].spec == spec ? missed_so_far(ep, i) : 0;

		missed += all > ep->events[i].before ? all - ep->events[i].before : 0;
	}
	return missed;
}

uint64_t event_probes_missed_tracepoints(const struct event_probes *ep)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = ep->session
			 ? bpf_program__fd(session_event_program(ep->session, MS_EVENT_TRACEPOINT))
			 : -1;

	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 ? info.recursion_misses : 0;
}
