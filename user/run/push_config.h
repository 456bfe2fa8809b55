/* What --push and its options ask for. */
#ifndef MEMSCOPE_RUN_PUSH_CONFIG_H
#define MEMSCOPE_RUN_PUSH_CONFIG_H

#include "base/err.h"

#include <stdint.h>

enum { PUSH_STORES = 4, PUSH_HEADERS = 8 };

struct push_config {
	const char *const *stores;   /* "pyroscope=URL", "otlp=URL": n_stores of them */
	uint32_t n_stores;
	const char *const *headers;  /* "X-Scope-OrgID: team": n_headers of them     */
	uint32_t n_headers;
	const char *token_file;      /* NULL: none                                   */
	const char *ca_file;         /* NULL: the system's                           */
	const char *spool;           /* where what waits is kept; NULL: .push in the archive */
	uint64_t spool_bytes;        /* of each store                                */
	double timeout_s;            /* of one request                               */
};

/* "512M", "2G": bytes, at least 1M. -EINVAL with a sentence. */
int push_spool_size(const char *text, uint64_t *ret_bytes, struct err *e);
/* Looks at nothing outside of it. -EINVAL with a sentence. */
int push_config_check(const struct push_config *cfg, struct err *e);

#endif
