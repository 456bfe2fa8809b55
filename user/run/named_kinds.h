/*
 * Kinds of profiles that a directory of memscope's has and the table has not: of events that a run was asked for.
 */
#ifndef MEMSCOPE_RUN_NAMED_KINDS_H
#define MEMSCOPE_RUN_NAMED_KINDS_H

/*
 * Adds those to the table (collect/session/sources.h), as far as there is room, each with one value type of its own name.
 * A directory without a summary or a trend is no run's, and one that cannot be read has none. Names live as long as the
 * program.
 */
void named_kinds_of(const char *dir);

#endif
