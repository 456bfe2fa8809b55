/*
 * An answer to a question of memscope heap (render/tables/answer.h), as a table of the screen: what its columns are is in
 * the answer itself, so any question's can be shown.
 */
#ifndef MEMSCOPE_SCREEN_HEAP_PAGE_H
#define MEMSCOPE_SCREEN_HEAP_PAGE_H

#include "render/tables/answer.h"
#include "screen/view.h"

#include <cjson/cJSON.h>

enum { COLUMNS_MAX = 16, QUESTION_MAX = 512 };

struct answer_page {
	char question[QUESTION_MAX];
	cJSON *doc;
	const cJSON *described; /* borrowed: an array of columns for each table */
	int n_tables, table;    /* how many there are, which one is shown       */
	const char *keys[COLUMNS_MAX], *lines; /* lines: the member with chains, NULL */
	enum answer_kind kinds[COLUMNS_MAX];
	struct column columns[COLUMNS_MAX];
	char titles[COLUMNS_MAX][24];
	uint32_t n_columns;
	cJSON **rows; /* n_rows of them, as they came   */
	uint32_t n_rows;
	bool *open;
	struct view was; /* of the view while another page is shown */
};

/* -EBADMSG, -ENOMEM. */
int answer_page_read(const char *question, const char *json, size_t bytes, struct answer_page **ret_page);
void answer_page_free(struct answer_page *p);

/* Columns and rows of another table of the answer, the first one at the beginning. -ENOMEM: it has no rows then. */
int answer_page_choose(struct answer_page *p, int which);
/* A cell as it is shown. */
void answer_page_put(const struct answer_page *p, uint32_t row, uint32_t column, struct strbuf *to);

/* Text at the left edge. */
static inline bool answer_is_name(enum answer_kind kind)
{
	return kind == ANSWER_NAME || kind == ANSWER_TREE;
}

#endif
