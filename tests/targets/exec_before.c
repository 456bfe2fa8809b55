/*
 * Works, then becomes exec_after, a program linked at the same address (neither is a PIE).
 *
 *   exec_before MS
 *
 * go → before PID CPU_NS ON_NS; then exec_after's lines: after PID CPU_NS ON_NS; end
 */
#include "target.h"

BURNER(work_before_exec)

int main(int argc, char **argv)
{
	static char self[4096], path[4110];
	uint64_t want_ns, per_ms = burn_per_ms();
	struct work_clock clock;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc != 2 || n <= 0)
		die("usage: exec_before MS");
	want_ns = (uint64_t)atoi(argv[1]) * NSEC_PER_MSEC;
	say_ready();
	next_command();
	clock = work_begin();
	while (cpu_ns() - clock.cpu_ns < want_ns)
		work_before_exec(per_ms);
	work_end(&clock);
	say("before %d %llu %llu", (int)getpid(), (unsigned long long)clock.cpu_ns,
	    (unsigned long long)clock.on_ns);
	*strrchr(self, '/') = '\0';
	snprintf(path, sizeof(path), "%s/exec_after", self);
	execl(path, "exec_after", argv[1], (char *)NULL);
	die(path);
}
