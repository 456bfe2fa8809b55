#include "run/serve/serve_config.h"

#include "run/run.h"

bool serve_goes_on(const struct run *r)
{
	const struct serve_config *serve = r->cfg->serve;

	return serve && (r->end.why == RUN_END_AGAIN || r->end.why == RUN_END_MEMORY ||
			 (r->end.why == RUN_END_TARGET && serve->found_again));
}
