#include "unwind/host_walk.h"

#define WALK_CHAINS
#include "walk/walk_lang.h"

#include <string.h>

static struct {
	struct ms_walk walk;
	const struct publish_mem *mem;
	const struct host_stack *stack;
	uint32_t link; /* of the stack's chain: after the last that was asked for */
} host;

WALK_INLINE struct ms_walk *walk_of(__u32 slot)
{
	(void)slot;
	return &host.walk;
}

WALK_INLINE bool walk_read(struct ms_walk *w, void *dst, __u32 size, __u64 addr)
{
	(void)w;
	const struct host_stack *st = host.stack;
	uint64_t off = addr - st->addr;

	if (addr >= st->addr && off < st->len && size <= st->len - off) {
		memcpy(dst, st->bytes + off, size);
		return true;
	}
	return st->read && st->read(st->ctx, dst, size, addr);
}

WALK_INLINE const struct ms_pool_page *walk_pool_page(struct ms_walk *w, __u32 ix)
{
	(void)w;
	return ix < host.mem->n_words / MS_POOL_PAGE_WORDS
		       ? (const struct ms_pool_page *)host.mem->pool + ix
		       : NULL;
}

WALK_INLINE const struct ms_table *walk_table(struct ms_walk *w, __u32 ix)
{
	(void)w;
	return ix < host.mem->n_tables ? host.mem->tables + ix : NULL;
}

WALK_INLINE const struct ms_rule *walk_rule(struct ms_walk *w, __u32 ix)
{
	(void)w;
	return ix < host.mem->n_rules
		       ? (const void *)((const char *)host.mem->rules + ix * host.mem->rule_stride)
		       : NULL;
}

WALK_INLINE bool walk_replaced(struct ms_walk *w, __u64 at, __u64 *ret_ra)
{
	const struct host_stack *st = host.stack;

	(void)w;
	for (size_t i = 0; i < st->n_returns; i++)
		if (st->returns[i].at == at) {
			*ret_ra = st->returns[i].ra;
			return true;
		}
	return false;
}

WALK_INLINE int walk_chain_head(struct ms_walk *w)
{
	const struct ms_chain_rec *chain = host.stack->chain;

	if (!chain)
		return CHAIN_NONE;
	if (chain->lost)
		return CHAIN_LOST;
	w->lang_entry = chain->entry;
	w->lang_at = chain->n_links ? host.stack->links[0].at & ((1ULL << MS_CHAIN_SHIFT) - 1)
				    : chain->next;
	return CHAIN_COPIED;
}

/* Mostly the next one; a run that is taken back begins again. */
WALK_INLINE int walk_chain_link(struct ms_walk *w, __u64 at, struct lang_link *ret_link)
{
	const struct ms_chain_rec *chain = host.stack->chain;
	const struct ms_chain_link *links = host.stack->links;
	const __u64 mask = (1ULL << MS_CHAIN_SHIFT) - 1;

	if (!chain)
		return CHAIN_NONE;
	for (uint32_t i = 0; i < chain->n_links; i++) {
		uint32_t k = (host.link + i) % chain->n_links;

		if ((links[k].at & mask) != at)
			continue;
		host.link = k + 1;
		memcpy(w->lang_words, links[k].words, sizeof(w->lang_words));
		ret_link->previous = k + 1u < chain->n_links ? links[k + 1].at & mask : chain->next;
		ret_link->boundary = (__u8)(links[k].at >> MS_CHAIN_SHIFT);
		return CHAIN_COPIED;
	}
	return CHAIN_LOST;
}

WALK_INLINE bool walk_chain_has(struct ms_walk *w, __u64 at)
{
	const struct ms_chain_rec *chain = host.stack->chain;

	(void)w;
	for (uint32_t i = 0; chain && i < chain->n_links; i++)
		if ((host.stack->links[i].at & ((1ULL << MS_CHAIN_SHIFT) - 1)) == at)
			return true;
	return false;
}

WALK_INLINE bool walk_chain_is_copied(struct ms_walk *w)
{
	(void)w;
	return host.stack->chain;
}

WALK_INLINE bool walk_chain_is_of_c(struct ms_walk *w, __u64 at)
{
	__u64 words[2] = { w->lang_words[0], w->lang_words[1] };
	struct lang_link link;
	bool is = walk_chain_link(w, at, &link) == CHAIN_COPIED &&
		  (!w->lang_words[0] || w->lang_words[1] & MS_RUBY_CFUNC);

	memcpy(w->lang_words, words, sizeof(words));
	return is;
}

/* What was remembered may be of other tables. */
static void tables_are(const struct publish_mem *mem)
{
	host.mem = mem;
	memset(host.walk.memo, 0, sizeof(host.walk.memo));
}

/* The next frame of a run of a language, or the native frame behind it. false: the walk has ended. */
static bool run_of_lang(struct ms_walk *w, uint64_t frames[MS_MAX_FRAMES])
{
	int step;

	if (w->n >= MS_MAX_FRAMES - 1) {
		w->verdict = MS_TRUNCATED;
		return false;
	}
	step = walk_lang(0);
	if (step == LANG_FRAME) {
		frames[w->n++] = w->lang_words[0];
		frames[w->n++] = w->lang_words[1];
		return true;
	}
	if (step == LANG_SKIP)
		return true;
	if (step == LANG_NOT_OURS)
		w->n = w->lang_n;
	frames[w->n++] = w->lang_native;
	w->lang_running = 0;
	return !w->lang_ended;
}

/* The present frame, and the step to its caller. false: the walk has ended. */
static bool one_frame(struct ms_walk *w, uint64_t frames[MS_MAX_FRAMES])
{
	uint64_t native = walk_frame(w); /* which depends on w->n */
	bool hidden = w->managed == MS_MANAGED_HIDDEN, more;

	if (w->lang.lang && w->n >= MS_MAX_FRAMES - 1)
		return false; /* it may be two words */
	w->lang_words[0] = 0;
	more = walk_step(w, 0);
	if (w->lang_words[0]) {
		frames[w->n++] = w->lang_words[0];
		frames[w->n++] = w->lang_words[1];
	} else if (!hidden) {
		frames[w->n++] = native;
	}
	return more;
}

enum ms_verdict host_walk(const struct publish_mem *mem, const struct host_stack *stack,
			  uint64_t frames[MS_MAX_FRAMES], uint32_t *ret_n, uint64_t *ret_missing)
{
	struct ms_walk *w = &host.walk;

	tables_are(mem);
	host.stack = stack;
	host.link = 0;
	memcpy(w->regs, stack->regs, sizeof(w->regs));
	w->pc = stack->pc;
	w->space = *stack->space;
	w->trampoline = stack->trampoline;
	w->lang.lang = MS_LANG_NONE;
	if (stack->lang)
		w->lang = *stack->lang;
	w->thread_base = stack->thread_base;
	walk_begin(w, 0, true);
	for (uint32_t i = 0; i < MS_MAX_STEPS && w->n < MS_MAX_FRAMES; i++) {
		if (w->lang_running) {
			if (!run_of_lang(w, frames))
				break;
		} else if (ms_lang_has_chain(w->lang.lang) && lang_executes(w)) {
			walk_lang_enter(w);
			walk_lang_entered(w, walk_step(w, 0));
		} else if (!one_frame(w, frames)) {
			break;
		}
	}
	*ret_n = w->n;
	*ret_missing = w->exact ? w->pc : w->pc - 1;
	return (enum ms_verdict)w->verdict;
}

const struct ms_notes *host_notes(void)
{
	return &host.walk.notes;
}

bool host_lang_misplaced(void)
{
	return host.walk.lang_short;
}

bool host_lang_lost(void)
{
	return host.walk.lang_lost != 0;
}

static bool is_proven(struct ms_walk *w, uint64_t pc)
{
	const struct ms_rule *rule;

	w->look = pc;
	if (!walk_find_span(0))
		return false;
	if (!w->has_rows)
		return w->span.kind == MS_SPAN_FP;
	w->look = pc - w->span.bias;
	walk_find_rule(0);
	rule = walk_rule(w, w->rule);
	return rule && rule->kind != MS_RULE_NONE && rule->kind != MS_RULE_BAD;
}

uint32_t host_first_guess(const struct publish_mem *mem, const struct ms_space *space,
			  const uint64_t *frames, uint32_t n)
{
	struct ms_walk *w = &host.walk;
	uint32_t i;

	tables_are(mem);
	w->space = *space;
	for (i = 0; i < n; i++) {
		bool exact = i == 0 || frames[i] >> MS_FRAME_TAG_SHIFT == MS_FRAME_EXACT;

		if (frames[i] >> MS_FRAME_TAG_SHIFT > MS_FRAME_EXACT)
			continue; /* of a language */
		if (!is_proven(w, (frames[i] & MS_FRAME_ADDR_MASK) - !exact))
			break;
	}
	return i;
}
