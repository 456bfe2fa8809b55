#include "model/code_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t code_text_find(const struct code_text *code, uint64_t vaddr)
{
	uint32_t low = 0, high = code->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (code->instructions[mid].vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && vaddr - code->instructions[low - 1].vaddr < code->instructions[low - 1].size
		       ? low
		       : 0;
}

void code_text_fini(struct code_text *code)
{
	free(code->instructions);
	arena_free(&code->memory);
	*code = (struct code_text){ 0 };
}

int source_text_split(struct source_text *source, char *bytes, size_t len)
{
	uint32_t n = 0, cap = 1;

	source->bytes = bytes;
	for (size_t i = 0; i < len; i++)
		cap += bytes[i] == '\n';
	source->lines = reallocarray(NULL, cap, sizeof(*source->lines));
	if (!source->lines)
		return -ENOMEM;
	for (char *at = bytes, *end = bytes + len; at < end;) {
		char *newline = memchr(at, '\n', (size_t)(end - at)),
		     *next = newline ? newline + 1 : end;

		source->lines[n++] = at;
		if (newline)
			*newline = 0;
		if (newline && newline > at && newline[-1] == '\r')
			newline[-1] = 0;
		at = next;
	}
	source->n = n;
	return 0;
}

void source_text_fini(struct source_text *source)
{
	free(source->path);
	free(source->lines);
	free(source->bytes);
	*source = (struct source_text){ 0 };
}

const struct code_text *code_sources_code(const struct code_sources *s, module_id m, uint64_t vaddr)
{
	uint32_t low = 0, high = s->n_codes;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct code_text *c = &s->codes[mid];

		if (c->module.ix < m.ix || (c->module.ix == m.ix && c->end <= vaddr))
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n_codes && s->codes[low].module.ix == m.ix && s->codes[low].start <= vaddr
		       ? &s->codes[low]
		       : NULL;
}

const struct source_text *code_sources_text(const struct code_sources *s, const char *path)
{
	uint32_t low = 0, high = s->n_texts;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int order = strcmp(s->texts[mid].path, path);

		if (order == 0)
			return &s->texts[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

void code_sources_fini(struct code_sources *s)
{
	for (uint32_t i = 0; i < s->n_codes; i++)
		code_text_fini(&s->codes[i]);
	for (uint32_t i = 0; i < s->n_texts; i++)
		source_text_fini(&s->texts[i]);
	free(s->codes);
	free(s->texts);
	free(s->problems);
	*s = (struct code_sources){ 0 };
}
