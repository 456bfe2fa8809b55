/*
 * Steals time from every CPU: steal.bpf.c, at moments that keep no step with anything.
 *
 *   steal OBJECT MEAN_MS PERCENT [SECONDS]      until stdin ends, or for SECONDS; then: stolen NS times N
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct globals {
	unsigned long long mean_ns, thefts, stolen_ns;
};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	double mean_ms = argc > 2 ? atof(argv[2]) : 0, percent = argc > 3 ? atof(argv[3]) : 0;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	struct globals g = { .mean_ns = (unsigned long long)(mean_ms * 1e6) };
	struct bpf_object *obj;
	struct bpf_program *prog;
	struct bpf_map *bss;
	size_t size;
	__u32 zero = 0;
	char c;

	if (mean_ms <= 0 || mean_ms > 100 || percent <= 0 || percent > 50) {
		fprintf(stderr, "usage: steal OBJECT MEAN_MS PERCENT [SECONDS]\n");
		return 2;
	}
	/* An odd part more, so that no other period is a multiple of it. */
	attr.sample_period = (__u64)(mean_ms * 1e6 * 100 / percent) + 12347;
	obj = bpf_object__open(argv[1]);
	if (!obj || bpf_object__load(obj))
		return fail(argv[1]);
	prog = bpf_object__find_program_by_name(obj, "steal");
	bss = bpf_object__find_map_by_name(obj, ".bss");
	if (!prog || !bss || !bpf_map__initial_value(bss, &size) || size != sizeof(g))
		return fail("steal.bpf.o");
	if (bpf_map_update_elem(bpf_map__fd(bss), &zero, &g, BPF_ANY))
		return fail("map");
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
		int fd =
			(int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0)
			continue; /* offline */
		if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(prog)) < 0)
			return fail("PERF_EVENT_IOC_SET_BPF");
		attr.sample_period += 1000003;
	}
	if (argc > 4)
		sleep((unsigned)atoi(argv[4]));
	else
		while (read(0, &c, 1) > 0)
			;
	if (bpf_map_lookup_elem(bpf_map__fd(bss), &zero, &g))
		return fail("map");
	printf("stolen %llu times %llu\n", g.stolen_ns, g.thefts);
	return 0;
}
