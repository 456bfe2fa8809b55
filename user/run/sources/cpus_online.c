/*
 * CPUs that come and go while a run is at work (a virtual machine that is made larger, a core that is switched off).
 *
 * Samples, and records of processes and what they map, come from events of each CPU, which the kernel takes away for good with their CPU.
 * So what runs on one that comes back, or is new, is not seen: a service begins another run, any other says what it has not.
 */
#include "base/clock.h"
#include "proc/cpu_use.h"
#include "run/component.h"
#include "run/run.h"

#define LOOK_NS     1000000000ULL
#define LOOKS_SERVE 5
#define YOUNG_NS                                                                                   \
	60000000000ULL /* a service's run does not end before: cores may come and go all the time */

struct online {
	struct run *run;
	bool known;
	cpu_set_t first, last; /* when the run began; at the last look */
	cpu_set_t back;        /* came since the begin, and were not there before or had gone */
	bool went;
	uint64_t next_ns;
};

static int start(void *self, struct err *e)
{
	struct online *o = self;

	(void)e;
	o->known = cpus_online(&o->first);
	o->last = o->first;
	o->next_ns = now_ns() + LOOK_NS;
	return 0;
}

static void look(struct online *o)
{
	cpu_set_t now, came;

	if (!o->known || !cpus_online(&now))
		return;
	CPU_XOR(&came, &now, &o->last);
	o->went |= CPU_COUNT(&came) > 0 && !CPU_EQUAL(&now, &o->first);
	CPU_AND(&came, &came, &now);
	CPU_OR(&o->back, &o->back, &came);
	o->last = now;
}

static void tick(void *self, uint64_t now)
{
	struct online *o = self;

	if (now < o->next_ns)
		return;
	o->next_ns = now + LOOK_NS;
	look(o);
	if (o->run->cfg->serve && CPU_COUNT(&o->back) &&
	    now - session_start_ns(o->run->session) >= YOUNG_NS)
		run_ends(o->run, RUN_END_AGAIN, "CPUs came online: %d", CPU_COUNT(&o->back));
}

static void closing(void *self)
{
	struct online *o = self;

	look(o);
	if (CPU_COUNT(&o->back))
		run_note(
			o->run, true,
			"CPUs came online in the run (%d): what ran there has no samples, and processes "
			"that began there may have no names",
			CPU_COUNT(&o->back));
	else if (o->went)
		run_note(o->run, false, "CPUs went offline in the run: %d of %d were left",
			 CPU_COUNT(&o->last), CPU_COUNT(&o->first));
}

const struct component cpus_online_component = {
	.name = "online CPUs",
	.size = sizeof(struct online),
	.start = start,
	.tick = tick,
	.closing = closing,
};
