/*
 * Sites and functions of a file that items of -e and --count name: looked for in a cell (collect/probes/places_cell.h), whose answer is
 * checked. What they become is event_places.c's.
 */
#ifndef MEMSCOPE_COLLECT_EVENTS_EVENT_FINDS_H
#define MEMSCOPE_COLLECT_EVENTS_EVENT_FINDS_H

#include "base/bytes.h"
#include "base/cell_talk.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "collect/events/event_spec.h"
#include "collect/probes/alloc_image.h"

enum {
	EVENT_NAME_MAX = 512,         /* bytes, with its NUL              */
	EVENT_FINDS_MAX = 65536,      /* sites, and functions, of one file */
};

/* What is looked for: of event_spec.h what a file's names are matched with. */
struct event_item {
	enum event_kind kind; /* EVENT_USDT, EVENT_UPROBE */
	bool at_return, timed;
	char group[64], event[128];
};

struct event_wants {
	struct event_item items[EVENT_SPECS_MAX];
	uint32_t n;
	bool cookies; /* probes have them: uprobes_cookies() */
};

struct event_site {
	uint32_t item;
	uint64_t off, semaphore_off; /* in the file; 0: it has no semaphore */
	const char *name;            /* "provider:name"                    */
};

struct event_function {
	uint32_t item;
	uint64_t off; /* in the file                                   */
	uint32_t at;  /* where its probe is best, bytes behind that    */
	bool emulated, entry_emulated; /* the instruction there, and at its entry, is a cheap one (placement.h) */
	/*
	 * Of items at the return, and of those that are timed, unless it is of Go or probes have no cookies: how many returns there are,
	 * -E2BIG: too many, -EOPNOTSUPP: where it returns is not known. Else 0.
	 */
	int n_returns;
	struct bytes returns; /* offsets in the file, 8 bytes each */
	const char *name;
};

/* What was left out, of an item. */
struct event_missed {
	uint32_t refused;  /* of names that there was no room for: MS_EVENTS_MAX in one file */
	uint32_t too_many; /* beyond EVENT_FINDS_MAX                                       */
	uint32_t unplaced; /* functions that cannot be probed, …                           */
	const char *last;  /* … the last of them, for                                      */
	bool last_chooses; /* it chooses another function when the program starts; else it is not in the file */
};

/* Strings and offsets lie in `t`. */
struct event_finds {
	struct talk t;
	bool is_go;
	struct event_missed missed[EVENT_SPECS_MAX];
	struct event_site *sites;
	struct event_function *functions;
	uint32_t n_sites, n_functions;
};

void event_finds_fini(struct event_finds *f);

/*
 * Asks a cell. What is no ELF file has nothing. -errno with a sentence: it ended early, took too long or lied; then there is nothing, too.
 * event_finds_fini() it in any case.
 */
int event_finds_ask(const struct alloc_image *im, const struct event_wants *wants,
		    struct event_finds *ret, struct err *e);

/*
 * What a cell answered, of a file of `file_bytes`; borrows from `answer`. -EBADMSG, and nothing: it does not hold together.
 *
 *   is_go:1  { refused:4 too_many:4 unplaced:4 chooses:1 name }×items
 *   n:4 { item:1 off:8 semaphore:8 name }×n   n:4 { item:1 off:8 at:4 emulated:1 entry_emulated:1 n_returns:4 off:8×n_returns name }×n
 *
 * A name ends with a NUL.
 */
int event_finds_take(struct bytes answer, uint64_t file_bytes, const struct event_wants *wants,
		     struct event_finds *ret);
/* Where the i-th of its returns is. */
uint64_t event_function_return(const struct event_function *f, int i);

/* --- in the cell --- */

/* Searches the file of `im` and writes the answer. 0, or -ENOMEM. */
int event_search(const struct alloc_image *im, const struct event_wants *wants,
		 struct strbuf *answer);

#endif
