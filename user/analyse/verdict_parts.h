/*
 * Clauses of the last sentence (summary_verdict()): what the CPU time goes to, what is waited for. Each begins where the
 * sentence stands and ends without a full stop.
 */
#ifndef MEMSCOPE_ANALYSE_VERDICT_PARTS_H
#define MEMSCOPE_ANALYSE_VERDICT_PARTS_H

#include "analyse/causes.h"

/* Appends to `buf`; what does not fit is cut off. */
void verdict_append(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define SAY(v, ...)  verdict_append((v)->sentence, sizeof((v)->sentence), __VA_ARGS__)
#define NEXT(v, ...) verdict_append((v)->next, sizeof((v)->next), __VA_ARGS__)

/* --- verdict_cpu.c --- */

/* The function to name, by self; NULL: none stands out. */
const struct top_row *verdict_hot(const struct run_summary *s);
/* The image without names that has more of the CPU time than any function; NULL: there is none. */
const struct nameless_row *verdict_nameless(const struct run_summary *s);
/* So much tracing that the CPU profile is one of the tracing. */
bool verdict_probes_lead(const struct run_summary *s);
/* "it", or "it and its children". */
const char *verdict_whose(const struct run_summary *s);
/* ", 94% of it in hash_records itself" */
void verdict_say_hot(struct verdict *v, const struct run_summary *s);
/* ", 98% of it in cc1plus (12 processes)" */
void verdict_say_commands(struct verdict *v, const struct run_summary *s);

/* --- verdict_wait.c --- */

/* "waited 5.0 s for disk (/var/journal), most of it in write_journal" */
void verdict_say_wait(struct verdict *v, const struct causes *c);
/* "its threads waited 25 s for the lock totals_lock, most of it in update_totals; thread 7 held it …" */
void verdict_say_lock(struct verdict *v, const struct causes *c);
/* The same in short, where what is under the lock has been said. */
void verdict_say_handed_on(struct verdict *v, const struct causes *c);

/* --- verdict_loop.c --- */

/* "waited for a socket (10.0.0.3:5432): a request to it was outstanding 92% of the time, while 3 requests to port 8080 waited" */
void verdict_say_peer(struct verdict *v, const struct causes *c);
/* ", with 2.5 of its tasks on average in fetch_price (app.py:33)": where most await that; nothing, where it is not known. */
void verdict_say_tasks(struct verdict *v, const struct run_summary *s, enum task_wait wait, const char *whose);

#endif
