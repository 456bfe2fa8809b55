/*
 * The answer to a question, written once and printed as text for people or as JSON for programs.
 *
 * An answer consists of sentences, figures and tables, in the order in which they are given. Text has the sentences and
 * the tables; JSON has an object with the figures as members, the sentences in `notes`, and each table as an array of
 * objects. Figures are in base units there (bytes, nanoseconds, a count), and rounded for reading in the text.
 *
 *   answer_begin(ANSWER_TEXT)
 *   answer_say(a, "%s objects are …", …)   answer_figure(a, "objects", 12)
 *   answer_table(a, "types", columns)      for each row: answer_cell(a, bytes), answer_text(a, name) in the columns' order
 *   answer_write(a, out, e)
 *
 * Names are other people's bytes: both forms clean them.
 */
#ifndef MEMSCOPE_RENDER_TABLES_ANSWER_H
#define MEMSCOPE_RENDER_TABLES_ANSWER_H

#include "base/cleanup.h"
#include "base/err.h"
#include "base/sink.h"

#include <stdint.h>

enum answer_form { ANSWER_TEXT, ANSWER_JSON };

enum answer_kind {
	ANSWER_BYTES,   /* 12.3 MiB                                                  */
	ANSWER_COUNT,   /* 1,234                                                     */
	ANSWER_CHANGE,  /* +12.3 MiB: bytes, an int64_t cast to uint64_t              */
	ANSWER_NS,      /* 4.5 ms                                                    */
	ANSWER_PERCENT, /* 12.3: answer_real()                                        */
	ANSWER_ADDRESS, /* 0x7f…; text in JSON, too                                   */
	ANSWER_NAME,    /* text at the left edge of its column                        */
	ANSWER_TREE,    /* a name, moved to the right by its depth; answer_tree()      */
	ANSWER_LINES,   /* only the last column: texts, answer_line() for each and then answer_lines_end(); indented lines
			 * below the row, an array in JSON; its heading is not printed */
};

/* The last row of an array of columns has no key. */
struct answer_column {
	const char *key;      /* the member in JSON                             */
	const char *heading;
	enum answer_kind kind;
	uint32_t width;       /* in characters, at least; 0: 12                 */
};

/* A cell of bytes or a count that is not known: "-", null in JSON. */
#define ANSWER_NONE UINT64_MAX

struct answer;

/* NULL: out of memory. */
struct answer *answer_begin(enum answer_form form);
void answer_free(struct answer *a);
DEFINE_CLEANUP(struct answer *, answer_freep, answer_free)

/* JSON says of each table what its columns are, too, so that a program that knows no question can show any answer: the member
 * `columns` has an array [key, heading, enum answer_kind] for each column, under the table's key. */
void answer_describe(struct answer *a);

/* A sentence or a heading, a line of its own; an empty one is an empty line, and nothing in JSON. */
void answer_say(struct answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Members of the answer itself: JSON alone, since sentences have them in the text. */
void answer_figure(struct answer *a, const char *key, uint64_t value);
void answer_word(struct answer *a, const char *key, const char *text);

/* Rows that follow are this table's. `columns` lives as long as the answer. */
void answer_table(struct answer *a, const char *key, const struct answer_column *columns);
void answer_cell(struct answer *a, uint64_t value);
void answer_real(struct answer *a, double value);
void answer_text(struct answer *a, const char *text);
/* JSON has the depth, too, as `depth`. */
void answer_tree(struct answer *a, uint32_t depth, const char *text);
void answer_line(struct answer *a, const char *text);
void answer_lines_end(struct answer *a);

/* -ENOMEM if anything before had no memory. What is written is the caller's to commit. */
int answer_write(struct answer *a, struct sink *out, struct err *e);

#endif
