/*
 * Which objects are meant, as anyone may write it: refused with a sentence, or a tree of conditions, no deeper than the text has
 * parentheses for, in which every kind has the sides and the text that it needs.
 */
#include "heap/snapshot/query.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is)
{
	if (!is)
		abort();
}

static size_t check_tree(const struct query *q)
{
	bool two = q->kind == QUERY_AND || q->kind == QUERY_OR;
	bool one = two || (q->kind >= QUERY_NOT && q->kind <= QUERY_RETAINED_BY);
	bool text = q->field == QUERY_TYPE || q->field >= QUERY_ARENA;

	check(q->kind <= QUERY_COMPARE && one == (q->left != NULL) && two == (q->right != NULL));
	check(q->kind != QUERY_HAS_TEXT || q->text);
	check(q->kind != QUERY_COMPARE || (q->field < QUERY_FIELDS && q->op <= QUERY_LIKE));
	check(q->kind != QUERY_COMPARE || !text || q->text || q->field == QUERY_AGE);
	return 1 + (q->left ? check_tree(q->left) : 0) + (q->right ? check_tree(q->right) : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct query *q = NULL;
	struct err e = { 0 };
	int r = query_parse(text, &q, &e);

	check((r == 0) == (q != NULL) && (r < 0) == (e.msg[0] != '\0'));
	if (q)
		check(check_tree(q) <= 2 * strlen(text));
	query_is_named("std::vector<int, std::allocator<int> >", text);
	query_free(q);
	free(text);
	return 0;
}
