#include "cmd/heap/questions.h"

#include <errno.h>
#include <string.h>

/* clang-format off */
const struct heap_question heap_questions[] = {
	{ "census", NULL, heap_census, NULL, NULL, false, "by top anchor",
	  "What the heap consists of: a row for each type, with how many objects of it there are and how many bytes they take; or for each module, each "
	  "arena of an allocator, each pair of types that refer to each other; with --trace for each function that allocated.",
	  "census -p 1234 --by module" },
	{ "retainers", "type:NAME", heap_retainers, NULL, NULL, false, "top anchor",
	  "What keeps objects alive: chains of references from a variable, a module, a stack or a register to them. WHAT is a type (type:Session), a size "
	  "(size:4096), an address (0x...) or a condition as of query; with --trace also who allocated it (site:make_session).",
	  "retainers -p 1234 type:Session" },
	{ "dominators", NULL, heap_dominators, NULL, NULL, false, "top anchor",
	  "The objects that retain most: what would be freed together with each, because every chain of references to it leads through that object.",
	  "dominators -p 1234 --top 50" },
	{ "allocator", NULL, heap_allocator, NULL, NULL, false, "top",
	  "What each arena of each allocator holds (allocated, cached, free, mapped, retained), and the same by sizes of blocks.",
	  "allocator -p 1234" },
	{ "fragmentation", NULL, heap_fragmentation, NULL, NULL, false, "top",
	  "How much of each arena is free, and the types of the few objects that keep nearly empty pages resident; with --trace also who "
	  "allocated those.",
	  "fragmentation -p 1234" },
	{ "leaks", NULL, heap_leaks, NULL, NULL, false, "top anchor",
	  "Blocks that nothing refers to any more, and those that only such blocks refer to, by type; with --trace also by who allocated them.",
	  "leaks -p 1234" },
	{ "caches", NULL, heap_caches, NULL, NULL, false, "top anchor",
	  "Containers by how many elements they have, and what keeps each; containers of one type that are held in the same way are one row.",
	  "caches -p 1234" },
	{ "dups", NULL, heap_dups, NULL, NULL, false, "top contents",
	  "Objects of equal contents, and the bytes that one for all of them would save. --contents all shows the texts.",
	  "dups -p 1234 --contents all" },
	{ "search", "text:TEXT", heap_search, NULL, NULL, false, "top contents anchor",
	  "The objects whose bytes contain a text, or that meet another condition as of query; a bare word is a text.",
	  "search -p 1234 hello" },
	{ "query", "'type = NAME and size > 4K'", heap_query, NULL, NULL, false, "top contents anchor",
	  "The objects that meet a condition on type, size, retained, references, referrers, address, arena, site, stack, age, lost, refers_to(...), referred_by(...), "
	  "reachable(...) or retained_by(...), with and, or, not: `memscope help objects` has the language.",
	  "query -p 1234 'type ~ \"^std::\" and retained > 1M'" },
	{ "diff", NULL, heap_diff, NULL, NULL, true, "top anchor",
	  "What changed between two or more snapshots, the oldest first, by type; and what keeps the objects of the type that grew most. With -p PID the newest is "
	  "the process as it is now; with --trace also who allocated what came.",
	  "diff before.snapshot after.snapshot" },
	{ "refcounts", NULL, heap_refcounts, NULL, NULL, false, "top",
	  "Objects of CPython whose reference count is higher than the references found: C code holds them, or forgot to release them.",
	  "refcounts -p 1234" },
	{ "thunks", NULL, heap_thunks, NULL, NULL, false, "top",
	  "Of a Haskell program: work that is put off, by the code that would do it, with what would be freed with those thunks.",
	  "thunks -p 1234" },
	{ "snapshot", NULL, heap_snapshot, heap_snapshot_check, heap_snapshot_before_stop, false, "output label contents core",
	  "Writes blocks, types, references and roots into a file, which every question takes instead of -p PID, on any machine; with --core an ELF core for gdb.",
	  "snapshot -p 1234 -o before.snapshot" },
	{ 0 },
};
/* clang-format on */

/* Those that not every question takes. */
static const char *const some_take[] = { "by",    "top",  "contents", "output",
					 "label", "core", "anchor" };

const struct heap_question *heap_question_find(const char *name)
{
	for (const struct heap_question *q = heap_questions; q->name; q++)
		if (strcmp(name, q->name) == 0)
			return q;
	return NULL;
}

void heap_questions_list(char *list, size_t cap)
{
	size_t n = 0;

	*list = '\0';
	for (const struct heap_question *q = heap_questions; q->name && n < cap; q++)
		n += (size_t)snprintf(list + n, cap - n, "%s%s",
				      q == heap_questions ? ""
				      : q[1].name         ? ", "
							  : " or ",
				      q->name);
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	return false;
}

bool heap_question_takes(const struct heap_question *q, const char *option)
{
	for (size_t i = 0; i < sizeof(some_take) / sizeof(*some_take); i++)
		if (strcmp(option, some_take[i]) == 0)
			return has_word(q->options, option);
	return true;
}

static size_t size_of(enum opt_kind kind)
{
	switch (kind) {
	case OPT_FLAG:
		return sizeof(bool);
	case OPT_STRING:
		return sizeof(const char *);
	case OPT_U32:
		return sizeof(uint32_t);
	case OPT_LIST:
		return sizeof(struct opt_list);
	case OPT_CHOICE:
		return sizeof(int);
	default:
		return 0;
	}
}

int heap_question_check(const struct heap_question *q, const struct opt *opts,
			const struct heap_args *args, const struct heap_args *defaults,
			struct err *e)
{
	for (const struct opt *o = opts; o->name; o++) {
		char list[160] = "";
		size_t n = 0;

		if (heap_question_takes(q, o->name) ||
		    memcmp((const char *)args + o->offset, (const char *)defaults + o->offset,
			   size_of(o->kind)) == 0)
			continue;
		for (const struct heap_question *other = heap_questions;
		     other->name && n < sizeof(list); other++)
			if (heap_question_takes(other, o->name))
				n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
						      n ? ", " : "", other->name);
		return err_set(e, -EINVAL, "memscope heap %s takes no --%s, which is for: %s",
			       q->name, o->name, list);
	}
	return 0;
}

void heap_question_help(const struct heap_question *q, const struct opt *opts, FILE *f)
{
	struct opt taken[32] = { 0 };
	char name[64], synopsis[160];
	struct opt_command command = { name, synopsis, q->doc, taken };
	size_t n = 0;

	for (const struct opt *o = opts; o->name && n + 1 < sizeof(taken) / sizeof(*taken); o++)
		if (heap_question_takes(q, o->name))
			taken[n++] = *o;
	snprintf(name, sizeof(name), "heap %s", q->name);
	if (q->compares)
		snprintf(synopsis, sizeof(synopsis), "FILE… FILE|-p PID|-c NAME [OPTION…]");
	else
		snprintf(synopsis, sizeof(synopsis), "-p PID|-c NAME%s [OPTION…]%s%s",
			 q->answer == heap_snapshot ? "" : "|FILE", q->what ? " " : "",
			 q->what ? "WHAT" : "");
	opt_print_help(&command, f);
	fprintf(f, "\nExample: memscope heap %s\n", q->example);
}
