/* What `memscope serve` is asked for beyond a run's own configuration. cmd/serve.c makes it from the options. */
#ifndef MEMSCOPE_RUN_SERVE_SERVE_CONFIG_H
#define MEMSCOPE_RUN_SERVE_SERVE_CONFIG_H

struct serve_config {
	double own_limit; /* what memscope itself may cost, all it does on the host counted, percent of one CPU */
};

#endif
