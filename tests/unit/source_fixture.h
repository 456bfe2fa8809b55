/*
 * A profile of a function with an inlined call, its code and its file, for tests of what shows them:
 *
 *   prog.c:3  mix()      0x1000 mov     2
 *   prog.c:7  step()     0x1003 imul    5, inlined into mix at line 4
 *   prog.c:4  mix()      0x1007 jnz → 0x1003
 *   and a function elsewhere, without code, 1
 */
#ifndef MEMSCOPE_TESTS_SOURCE_FIXTURE_H
#define MEMSCOPE_TESTS_SOURCE_FIXTURE_H

#include "analyse/line_costs.h"
#include "model/code_text.h"
#include "unit/profile_fixture.h"

struct source_fixture {
	struct fixture f;
	struct line_costs costs;
	struct code_sources sources;
	struct code_text code;
	struct code_instruction in[3];
	struct code_origin origins[3];
	struct source_text text;
	const char *lines[9];
	struct code_problem problem;
};

static inline void source_fixture_add(struct source_fixture *s, uint64_t vaddr, const char *module, struct line *lines, uint32_t n,
				      int64_t value)
{
	location_id loc = dict_location(s->f.d, fixture_module(&s->f, MODULE_ELF, module), vaddr);

	dict_location_name(s->f.d, loc, lines, n);
	profile_add(s->f.p, dict_stack(s->f.d, &loc, 1), (labels_id){ 0 }, &value);
}

/* `line7`: what the file has as its seventh line. */
static inline void source_fixture_make(struct source_fixture *s, const char *line7)
{
	static const struct value_type cpu = { "samples", "count" };
	string_id file, mix, step;

	*s = (struct source_fixture){ .f = fixture_new(&cpu, 1) };
	file = dict_string(s->f.d, "/src/prog.c");
	mix = dict_string(s->f.d, "mix");
	step = dict_string(s->f.d, "step");
	source_fixture_add(s, 0x1000, "/opt/prog", &(struct line){ .function = mix, .file = file, .line = 3 }, 1, 2);
	source_fixture_add(s, 0x1003, "/opt/prog",
			   (struct line[]){ { .function = step, .file = file, .line = 7 },
					    { .function = mix, .file = file, .line = 4 } },
			   2, 5);
	source_fixture_add(s, 0x99, "/opt/lib.so", &(struct line){ .function = dict_string(s->f.d, "far") }, 1, 1);
	line_costs_make(s->f.p, 0, &s->costs);

	s->origins[0] = (struct code_origin){ "mix", "/src/prog.c", 3 };
	s->origins[1] = (struct code_origin){ "step", "/src/prog.c", 7 };
	s->origins[2] = (struct code_origin){ "mix", "/src/prog.c", 4 };
	s->in[0] = (struct code_instruction){ 0x1000, 3, 1, &s->origins[0], "mov %rax, %rbx", NULL, 0 };
	s->in[1] = (struct code_instruction){ 0x1003, 4, 2, &s->origins[1], "imul %rcx, %rbx", NULL, 0 };
	s->in[2] = (struct code_instruction){ 0x1007, 2, 1, &s->origins[2], "jnz 0x1003", NULL, 2 };
	s->code = (struct code_text){ .module = fixture_module(&s->f, MODULE_ELF, "/opt/prog"),
				      .name = "mix", .start = 0x1000, .end = 0x1009, .n = 3,
				      .instructions = s->in };
	for (int i = 0; i < 9; i++)
		s->lines[i] = i == 6 ? line7 : i == 3 ? "\tx = step(x);" : "";
	s->text = (struct source_text){ .path = (char *)"/src/prog.c", .n = 9, .lines = s->lines };
	s->problem = (struct code_problem){ fixture_module(&s->f, MODULE_ELF, "/opt/lib.so"), "file changed" };
	s->sources = (struct code_sources){ .codes = &s->code, .n_codes = 1, .texts = &s->text,
					    .n_texts = 1, .problems = &s->problem, .n_problems = 1,
					    .left_out = 4 };
}

static inline const struct function_cost *source_fixture_function(const struct source_fixture *s, const char *name)
{
	for (uint32_t i = 0; i < s->costs.n_functions; i++)
		if (strcmp(dict_str(s->f.d, s->costs.functions[i].function), name) == 0)
			return &s->costs.functions[i];
	return NULL;
}

static inline void source_fixture_free(struct source_fixture *s)
{
	line_costs_fini(&s->costs);
	fixture_free(&s->f);
}

#endif
