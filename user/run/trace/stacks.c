#include "run/trace/stacks.h"
#include "analyse/stack_text.h"
#include "base/clock.h"
#include "base/hash.h"
#include "run/output/files.h"
#include "run/pipeline.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX   (32u << 20)  /* of stacks that no line waits for */
#define NAMES_EACH 200000000ULL /* between two readings of symbols, at least … */
#define NAMES_PART 9            /* … and so many times what one has taken      */

struct trace_stack {
	struct event_key key;
	uint32_t lines; /* that refer to it */
	bool known;
	stack_id stack; /* where it has come: it waits for names */
	char *text;     /* NULL: not yet */
	size_t len;
	struct trace_stack *next; /* that wait */
	UT_hash_handle hh;
};

struct trace_stacks {
	struct run *run;
	bool json;
	struct trace_stack *all, *waiting;
	size_t text; /* of all */
	uint64_t next_names_ns;
};

struct trace_stacks *trace_stacks_new(struct run *r, bool json)
{
	struct trace_stacks *s = calloc(1, sizeof(*s));

	if (s)
		*s = (struct trace_stacks){ .run = r, .json = json };
	return s;
}

static void stack_free(struct trace_stacks *s, struct trace_stack *stack)
{
	HASH_DEL(s->all, stack);
	s->text -= stack->len;
	free(stack->text);
	free(stack);
}

void trace_stacks_free(struct trace_stacks *s)
{
	struct trace_stack *stack, *next;

	if (!s)
		return;
	HASH_ITER (hh, s->all, stack, next)
		stack_free(s, stack);
	free(s);
}

struct trace_stack *trace_stack_get(struct trace_stacks *s, const struct event_key *key)
{
	struct trace_stack *stack;

	HASH_FIND(hh, s->all, key, sizeof(*key), stack);
	if (!stack) {
		stack = hash_new(s->all, key, key);
		if (!stack)
			return NULL;
		stack->next = s->waiting;
		s->waiting = stack;
	}
	stack->lines++;
	return stack;
}

void trace_stack_put(struct trace_stack *stack)
{
	stack->lines--;
}

bool trace_stack_text(const struct trace_stack *stack, const char **ret_text, size_t *ret_len)
{
	*ret_text = stack->text;
	*ret_len = stack->len;
	return stack->text;
}

/* Those that a line refers to stay, and so do those that are written out again and again. */
static void forget(struct trace_stacks *s)
{
	struct trace_stack *stack, *next;

	if (s->text < TEXT_MAX)
		return;
	HASH_ITER (hh, s->all, stack, next)
		if (!stack->lines && stack->text)
			stack_free(s, stack);
}

static bool is_named(const struct dict *d, stack_id stack)
{
	for (; stack.ix; stack = dict_stack_parent(d, stack))
		if (!dict_location_get(d, dict_stack_leaf(d, stack))->named)
			return false;
	return true;
}

static void write_out(struct trace_stacks *s, struct trace_stack *stack)
{
	enum stack_verdict verdict = ingest_place_verdict(s->run->ingest, &stack->key);
	struct strbuf text = { 0 };

	if (s->json)
		stack_text_json(s->run->dict, stack->stack, verdict, &text);
	else
		stack_text_put(s->run->dict, stack->stack, verdict, &text);
	stack->len = text.len;
	stack->text = strbuf_take(&text);
	if (!stack->text) {
		stack->len = 0;
		s->run->oom = true;
	}
	s->text += stack->len;
}

/* Are there some whose functions have no names yet? */
static bool find_arrived(struct trace_stacks *s)
{
	bool unnamed = false;

	for (struct trace_stack *stack = s->waiting; stack; stack = stack->next) {
		if (!stack->known)
			stack->known =
				ingest_place_stack(s->run->ingest, &stack->key, &stack->stack);
		unnamed |= stack->known && !is_named(s->run->dict, stack->stack);
	}
	return unnamed;
}

static void read_names(struct trace_stacks *s, uint64_t now)
{
	uint64_t took;

	if (output_name(s->run, false, NULL, NULL) < 0)
		s->run->oom = true;
	took = now_ns() - now;
	s->next_names_ns = now + took + NAMES_PART * took;
	if (NAMES_PART * took < NAMES_EACH)
		s->next_names_ns = now + took + NAMES_EACH;
}

void trace_stacks_name(struct trace_stacks *s, bool anyway, uint64_t now)
{
	struct trace_stack **at = &s->waiting;

	if (!s->waiting)
		return;
	if (find_arrived(s) && (anyway || now >= s->next_names_ns))
		read_names(s, now);
	while (*at) {
		struct trace_stack *stack = *at;

		if (!anyway && !(stack->known && is_named(s->run->dict, stack->stack))) {
			at = &stack->next;
			continue;
		}
		*at = stack->next;
		write_out(s, stack);
	}
	forget(s);
}
