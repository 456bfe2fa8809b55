/* What `memscope serve` is asked for beyond a run's own configuration. cmd/serve.c makes it from the options. */
#ifndef MEMSCOPE_RUN_SERVE_SERVE_CONFIG_H
#define MEMSCOPE_RUN_SERVE_SERVE_CONFIG_H

#include "net/http_server.h"

#include <stdbool.h>
#include <stdint.h>

struct serve_config {
	double own_limit; /* what memscope itself may cost, all it does on the host counted, percent of one CPU */
	const char *config;  /* --config: where options come from beside the command line; NULL: from nowhere */
	char *const *check; /* the program and its words that check what SIGHUP is to bring: exit status 0, or a sentence on stderr */
	bool found_again;   /* the target ends, and is then looked for again  */
	struct http_options http; /* where its HTTP server listens, and for whom; n_listen 0: nowhere */
	bool listen_default; /* nobody asked for that address */
	uint64_t since_ns;  /* when the run before this one in the same process ended, CLOCK_MONOTONIC; 0: there was none */
};

#endif
