/* Table: what takes part in a run, in the order in which it is called. */
#include "run/component.h"

extern const struct component containers_component, oncpu_component, offcpu_component,
	endpoints_component, peers_component, locks_component, wakers_component,
	run_delays_component, io_waits_component, syscalls_component, events_component,
	goroutines_component, labels_component, cpus_component, cpus_online_component,
	growth_component, alloc_component, stacks_component, gc_component, trend_component,
	live_series_component, alloc_series_component, workload_component, rss_component,
	container_rss_component, container_trends_component, by_container_component,
	triggers_component, windows_component, census_component;
extern const struct component push_component;
extern const struct component trace_component;

/* Of `memscope serve`. */
extern const struct component awaited_component, own_memory_component, service_component;
extern const struct component own_cpu_component;
extern const struct component http_component, http_profiles_component, http_page_component,
	http_metrics_component;

const struct component *const components[] = {
	&http_component, /* is there for all the others, and closed after them */
	&containers_component,
	&oncpu_component,
	&offcpu_component,
	&endpoints_component,
	&peers_component,
	&locks_component,
	&wakers_component,
	&run_delays_component,
	&io_waits_component,
	&syscalls_component,
	&trace_component,
	&events_component,
	&goroutines_component,
	&labels_component,
	&cpus_component,
	&cpus_online_component,
	&growth_component,
	&alloc_component,
	&stacks_component, /* probes before tables of what is mapped */
	&gc_component,     /* before the row that it has columns of */
	&trend_component,
	&live_series_component,
	&census_component,
	&workload_component,     /* beside the row that the trend has taken */
	&alloc_series_component, /* rates that the allocations' row has brought */
	&container_rss_component,
	&rss_component, /* whose sum is shown where both have one */
	&container_trends_component,
	&by_container_component,
	&triggers_component, /* ask for windows */
	&windows_component,  /* of all the others' profiles */
	&push_component,     /* what windows have put into its spools */
	&http_profiles_component,
	&http_page_component,
	&http_metrics_component,
	&awaited_component,
	&own_memory_component,
	&own_cpu_component,
	&service_component, /* says that all of them are ready */
	NULL,
};
