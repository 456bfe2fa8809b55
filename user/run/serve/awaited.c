/*
 * Targets that were asked for by name and are not there yet: looked for now and then. When one has come, this run ends and
 * another one follows, with it. (One that is there, and goes, is waited for by run/groups.c.)
 */
#include "base/clock.h"
#include "base/strbuf.h"
#include "run/component.h"
#include "run/serve/serve_config.h"

#define LOOK_NS 5000000000ULL
#define REST    500 /* all engines are asked: that may take one part in so many of the time */

struct awaited {
	struct run *run;
	uint64_t look_ns;
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve && cfg->awaited;
}

static int ready(void *self, struct err *e)
{
	struct awaited *a = self;

	(void)e;
	a->look_ns = now_ns() + LOOK_NS;
	return 0;
}

static void tick(void *self, uint64_t now)
{
	struct awaited *a = self;
	const struct run_config *cfg = a->run->cfg;
	struct group found[GROUPS_MAX];
	uint64_t cpu_ns, rest_ns;
	int n;

	if (now < a->look_ns)
		return;
	cpu_ns = thread_cpu_ns();
	n = groups_there(cfg->mounts, cfg->awaited_containers, cfg->awaited, found, NULL, NULL);
	rest_ns = (thread_cpu_ns() - cpu_ns) * REST;
	a->look_ns = now + (rest_ns > LOOK_NS ? rest_ns : LOOK_NS);
	if (n <= 0)
		return;
	run_ends(a->run, RUN_END_AGAIN, "%.64s is there now", group_title(&found[0]));
	groups_free(found, (uint32_t)n);
}

const struct component awaited_component = {
	.name = "awaited",
	.size = sizeof(struct awaited),
	.wanted = wanted,
	.ready = ready,
	.tick = tick,
};
