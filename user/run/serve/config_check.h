/*
 * Another process of this program reads and checks what SIGHUP is to bring, which therefore can neither block nor change
 * the one that runs. It says on stderr what is wrong.
 */
#ifndef MEMSCOPE_RUN_SERVE_CONFIG_CHECK_H
#define MEMSCOPE_RUN_SERVE_CONFIG_CHECK_H

#include "run/serve/serve_config.h"

#include <stdbool.h>
#include <sys/types.h>

#define CONFIG_CHECK_NS 10000000000ULL /* for reading a file; on a dead network it takes for ever */

/* The process, or -errno. */
pid_t config_check_start(const struct serve_config *serve);
/* Has it ended? Then *ret_good says whether the configuration is. */
bool config_check_ended(pid_t check, bool *ret_good);
/* Kills and reaps it. */
void config_check_stop(pid_t check);
/* From start to end, for CONFIG_CHECK_NS at most: is it good? */
bool config_check(const struct serve_config *serve);

#endif
