/*
 * The directory that an archive keeps for one target (--archive DIR: DIR/NAME), a name that stays the
 * same when the target is started again.
 */
#ifndef MEMSCOPE_RUN_ARCHIVE_NAME_H
#define MEMSCOPE_RUN_ARCHIVE_NAME_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Of a process, the first of these that it has, as one word that is fit for a file name: the name of its
 * container, its systemd unit (redis-server.service), the pattern that it was found by (NULL: none), its
 * command name. A container or unit that we are in ourselves does not tell it from others.
 */
void archive_name_of(pid_t pid, const char *pattern, char *out, uint32_t cap);

#endif
