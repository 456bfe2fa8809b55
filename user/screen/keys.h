/*
 * Keys: one row of keys.c each, from which the help page and the line of hints are made.
 */
#ifndef MEMSCOPE_SCREEN_KEYS_H
#define MEMSCOPE_SCREEN_KEYS_H

#include <stdint.h>

/* Keys that are no character, as the terminal reports them. */
enum key {
	KEY_NONE = 0x110000,
	KEY_MOVE_UP,
	KEY_MOVE_DOWN,
	KEY_MOVE_LEFT,
	KEY_MOVE_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_FIRST,
	KEY_LAST,
	KEY_RETURN,
	KEY_ERASE,
	KEY_ESCAPE,
	KEY_CLICK,        /* of the mouse, on a row: it moves there, … */
	KEY_DOUBLE_CLICK, /* … and enters                              */
	KEY_WHEEL_UP,
	KEY_WHEEL_DOWN,
	KEY_SIZE,         /* the terminal has another size             */
	KEY_F_1,
	KEY_F_3,
	KEY_F_4,
	KEY_F_6,
	KEY_F_10,
};
#define KEY_CTRL(letter) ((uint32_t)(letter) & 0x1f)

enum action {
	ACT_NONE,
	ACT_UP,
	ACT_DOWN,
	ACT_PAGE_UP,
	ACT_PAGE_DOWN,
	ACT_FIRST,
	ACT_LAST,
	ACT_ENTER,
	ACT_OPEN,
	ACT_CLOSE,
	ACT_OPEN_HOT,
	ACT_BACK,
	ACT_SEARCH,
	ACT_NEXT_MATCH,
	ACT_SORT,
	ACT_REVERSE,
	ACT_FILTER,
	ACT_FLAME,
	ACT_HEAP,
	ACT_WINDOW,
	ACT_ZERO,
	ACT_PAUSE,
	ACT_SAVE,
	ACT_CENSUS,
	ACT_DOMINATORS,
	ACT_LEAKS,
	ACT_ALLOCATOR,
	ACT_FRAGMENTATION,
	ACT_CACHES,
	ACT_DUPS,
	ACT_REFCOUNTS,
	ACT_THUNKS,
	ACT_TABLE,
	ACT_ASK,
	ACT_MARK,
	ACT_DIFFERENCE,
	ACT_BY,
	ACT_COMPARE,
	ACT_AGAIN,
	ACT_HELP,
	ACT_SUSPEND,
	ACT_REDRAW,
	ACT_QUIT,
};

/* In which views a key does something. */
enum view_kind {
	IN_PICKER = 1,
	IN_PROFILE = 2,
	IN_FLAME = 4,
	IN_HEAP = 8,
	IN_HELP = 16,
	IN_LISTS = IN_PICKER | IN_PROFILE | IN_HEAP,
	IN_ALL = IN_LISTS | IN_FLAME | IN_HELP,
};

struct key_row {
	uint32_t keys[4];  /* code points and enum key; 0: no more   */
	const char *name;  /* as the help page shows them            */
	enum action action;
	unsigned in;       /* enum view_kind                         */
	const char *hint;  /* in the last line of the screen; NULL: only in help */
	const char *help;
};

extern const struct key_row key_rows[]; /* ends with a row without a name */

/* What a key does in such a view. */
enum action key_action(uint32_t key, enum view_kind in);

#endif
