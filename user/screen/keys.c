#include "screen/keys.h"

#include <stddef.h>

/* clang-format off */
const struct key_row key_rows[] = {
	{ { KEY_RETURN, KEY_DOUBLE_CLICK }, "Enter", ACT_ENTER, IN_PICKER, "profile", "profiles the process or container" },
	{ { KEY_RETURN, KEY_DOUBLE_CLICK }, "Enter", ACT_ENTER, IN_PROFILE, "unfold", "unfolds what is below the row, or folds it" },
	{ { KEY_RETURN, KEY_DOUBLE_CLICK }, "Enter", ACT_ENTER, IN_FLAME, "zoom", "gives the block the whole width" },
	{ { KEY_RETURN, KEY_DOUBLE_CLICK }, "Enter", ACT_ENTER, IN_HEAP, "retainers", "what keeps it alive; unfolds a chain" },
	{ { KEY_MOVE_UP, 'k' }, "Up k", ACT_UP, IN_ALL, NULL, "one row up" },
	{ { KEY_MOVE_DOWN, 'j' }, "Down j", ACT_DOWN, IN_ALL, NULL, "one row down" },
	{ { KEY_PAGE_UP, KEY_CTRL('b') }, "PgUp", ACT_PAGE_UP, IN_ALL, NULL, "a page up" },
	{ { KEY_PAGE_DOWN, KEY_CTRL('f'), ' ' }, "PgDn Space", ACT_PAGE_DOWN, IN_ALL, NULL, "a page down" },
	{ { KEY_FIRST, '<' }, "Home", ACT_FIRST, IN_ALL, NULL, "the first row" },
	{ { KEY_LAST, 'G', '>' }, "End G", ACT_LAST, IN_ALL, NULL, "the last row" },
	{ { KEY_MOVE_RIGHT, '+', 'l' }, "Right +", ACT_OPEN, IN_LISTS | IN_FLAME, NULL, "unfolds; flame view: the block to the right" },
	{ { KEY_MOVE_LEFT, '-' }, "Left -", ACT_CLOSE, IN_LISTS | IN_FLAME, NULL, "folds; flame view: the block to the left" },
	{ { 'e', '*' }, "e *", ACT_OPEN_HOT, IN_PROFILE, "hottest", "unfolds the largest branch down to its end" },
	{ { KEY_ESCAPE, KEY_ERASE }, "Esc Backspace", ACT_BACK, IN_ALL, "back", "out of a search, a filter, a zoom, a view" },
	{ { '/', KEY_F_3 }, "/ F3", ACT_SEARCH, IN_LISTS | IN_FLAME, "search", "searches rows by a part of their text" },
	{ { 'n' }, "n", ACT_NEXT_MATCH, IN_LISTS | IN_FLAME, NULL, "the next row that was searched for" },
	{ { 'f', KEY_F_4 }, "f F4", ACT_FILTER, IN_LISTS, "filter", "shows only rows with a text in them" },
	{ { 's', KEY_F_6 }, "s F6", ACT_SORT, IN_LISTS, "sort", "sorts by the next column" },
	{ { 's', KEY_F_6 }, "s F6", ACT_SORT, IN_FLAME, "value", "blocks by the next column" },
	{ { 'r', 'I' }, "r", ACT_REVERSE, IN_LISTS, NULL, "sorts the other way round" },
	{ { 'F' }, "F", ACT_FLAME, IN_PROFILE | IN_FLAME, "flame", "flame view of the row; the list again" },
	{ { 'h' }, "h", ACT_HEAP, IN_PICKER | IN_PROFILE, "heap", "explains the heap; the process stops while it is copied" },
	{ { 'w' }, "w", ACT_WINDOW, IN_PROFILE | IN_FLAME, "window", "the last 10 seconds, or all since the beginning" },
	{ { 'z' }, "z", ACT_ZERO, IN_PROFILE | IN_FLAME, NULL, "begins again, from nothing" },
	{ { 'm' }, "m", ACT_MARK, IN_PROFILE, "mark", "marks this moment, to compare with" },
	{ { 'd' }, "d", ACT_DIFFERENCE, IN_PROFILE, "difference", "what changed since the mark against before it; all again" },
	{ { 'p' }, "p", ACT_PAUSE, IN_PICKER | IN_PROFILE | IN_FLAME, NULL, "holds still what is shown; goes on" },
	{ { KEY_CTRL('s') }, "Ctrl-S", ACT_SAVE, IN_PROFILE | IN_FLAME, NULL, "writes the profiles into a directory" },
	{ { ':' }, ":", ACT_ASK, IN_HEAP, "ask", "a condition or a question, typed; Up: the last one" },
	{ { 'c' }, "c", ACT_CENSUS, IN_HEAP, "census", "what the heap consists of" },
	{ { 'b' }, "b", ACT_BY, IN_HEAP, "by", "census by module, types referred to, referrer, arena, type" },
	{ { 'd' }, "d", ACT_DOMINATORS, IN_HEAP, "dominators", "objects by what would be freed with them" },
	{ { 'L' }, "L", ACT_LEAKS, IN_HEAP, "leaks", "what nothing refers to any more" },
	{ { 'a' }, "a", ACT_ALLOCATOR, IN_HEAP, "allocator", "what each arena holds" },
	{ { 'g' }, "g", ACT_FRAGMENTATION, IN_HEAP, NULL, "what pins the allocator's free memory" },
	{ { 'C' }, "C", ACT_CACHES, IN_HEAP, "caches", "containers by how many elements they have" },
	{ { 'D' }, "D", ACT_DUPS, IN_HEAP, "dups", "objects of equal contents" },
	{ { 'x' }, "x", ACT_REFCOUNTS, IN_HEAP, NULL, "CPython: objects that C code holds" },
	{ { 't' }, "t", ACT_THUNKS, IN_HEAP, NULL, "Haskell: work that is put off" },
	{ { '\t' }, "Tab", ACT_TABLE, IN_HEAP, NULL, "the next table of the answer, where it has several" },
	{ { 'm' }, "m", ACT_COMPARE, IN_HEAP, "compare", "copies the heap once more: what came and went since" },
	{ { 'R' }, "R", ACT_AGAIN, IN_HEAP, NULL, "copies the heap once more, and forgets the copy before" },
	{ { KEY_CTRL('s') }, "Ctrl-S", ACT_SAVE, IN_HEAP, NULL, "writes the copy as a file, for memscope heap and top" },
	{ { '?', KEY_F_1 }, "? F1", ACT_HELP, IN_ALL, "help", "this page" },
	{ { KEY_CTRL('l') }, "Ctrl-L", ACT_REDRAW, IN_ALL, NULL, "draws the screen anew" },
	{ { KEY_CTRL('z') }, "Ctrl-Z", ACT_SUSPEND, IN_ALL, NULL, "to the shell; fg comes back" },
	{ { 'q', KEY_CTRL('c'), KEY_F_10 }, "q Ctrl-C F10", ACT_QUIT, IN_ALL, "quit", "ends" },
	{ { 0 } },
};
/* clang-format on */

enum action key_action(uint32_t key, enum view_kind in)
{
	for (const struct key_row *row = key_rows; row->name; row++)
		for (size_t i = 0; (row->in & in) && i < 4 && row->keys[i]; i++)
			if (row->keys[i] == key)
				return row->action;
	return ACT_NONE;
}
