/*
 * What exec_before becomes, and what pid_reuse runs: work in one function, then say so.
 *
 *   exec_after MS [exit]
 */
#include "target.h"

BURNER(work_after_exec)

int main(int argc, char **argv)
{
	uint64_t want_ns = (uint64_t)atoi(argc > 1 ? argv[1] : "0") * NSEC_PER_MSEC;
	uint64_t per_ms = burn_per_ms();
	struct work_clock clock = work_begin();

	while (cpu_ns() - clock.cpu_ns < want_ns)
		work_after_exec(per_ms);
	work_end(&clock);
	say("after %d %llu %llu", (int)getpid(), (unsigned long long)clock.cpu_ns,
	    (unsigned long long)clock.on_ns);
	if (argc > 2)
		return 0;
	say("end");
	for (;;)
		next_command();
}
