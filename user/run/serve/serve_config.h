/* What `memscope serve` is asked for beyond a run's own configuration. cmd/serve.c makes it from the options. */
#ifndef MEMSCOPE_RUN_SERVE_SERVE_CONFIG_H
#define MEMSCOPE_RUN_SERVE_SERVE_CONFIG_H

#include "net/http_server.h"

#include <stdbool.h>
#include <stdint.h>

/* What is left out where a run needs more memory than it may have, again and again: nothing; frames of languages; all but
 * on-CPU samples, too. */
enum serve_level { SERVE_ALL, SERVE_NO_LANGS, SERVE_ONCPU, SERVE_LEVELS };

#define SERVE_WRITERS 8
#define SERVE_SOON_NS 600000000000ULL /* a run that ends earlier for memory ended too soon */

/* What a run that follows another one in this process knows of those before. */
struct serve_past {
	uint64_t since_ns;     /* when the last one ended, CLOCK_MONOTONIC; 0: there was none */
	enum serve_level level;
	uint32_t soon;         /* in a row ended for memory, too soon             */
	uint32_t memory_ends;  /* … for memory, all together                      */
	int32_t writers[SERVE_WRITERS]; /* processes of the last run that still write its windows; 0: none */
};

struct serve_config {
	double own_limit; /* what its probes may cost the host, percent of one CPU */
	const char *config;  /* --config: where options come from beside the command line; NULL: from nowhere */
	char *const *check; /* the program and its words that check what SIGHUP is to bring: exit status 0, or a sentence on stderr */
	bool found_again;   /* the target ends, and is then looked for again  */
	struct http_options http; /* where its HTTP server listens, and for whom; n_listen 0: nowhere */
	bool listen_default; /* nobody asked for that address */
	uint32_t own_memory_mb; /* what its processes and the kernel's tables may take; 0: no limit */
	struct serve_past past;
};

#endif
