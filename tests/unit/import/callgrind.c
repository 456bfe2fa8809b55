#include "import_fixture.h"

#define HEAD                                                                                       \
	"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 665\ncmd:  /tmp/t -x\n"

/* main, with an inlined file and a call; malloc; a function that calls itself. */
static const char both_positions[] = HEAD
	"part: 1\n\npositions: instr line\nevents: Ir Dr\nsummary: 48 8\n\n"
	"ob=(1) /tmp/t\nfl=(1) t.c\nfn=(1) main\n0x401000 5 10 2\n+4 +1 3\n"
	"fi=(2) inline.h\n+4 70 1\nfe=(1)\n"
	"cob=(2) /lib/libc.so\ncfi=(3) malloc.c\ncfn=(2) malloc\ncalls=2 0x8000 100\n+4 8 20 3\n"
	"jcnd=1/2 +8 9\n* *\n"
	"cfn=(3) rec\ncalls=1 0x402000 20\n+4 +1 14 3\n"
	"fn=(3)\n0x402000 20 4\ncfn=(3)\ncalls=3 0x402000 20\n* +1 10 1\n+4 -2 10 3\n"
	"ob=(2)\nfl=(3)\nfn=(2)\n0x8000 100 20 3\n";

static void own_costs_are_exact_and_jumps_are_passed_over(void **state)
{
	struct profile *p = read_text(both_positions, "callgrind");

	assert_non_null(p);
	assert_string_equal(info.damage, "");
	assert_int_equal(total_of(p, "Ir"), 48);
	assert_int_equal(total_of(p, "Dr"), 8);
	assert_int_equal(value_of(p, "main", "Ir"), 14);
	assert_int_equal(value_of(p, "main;malloc", "Ir"), 20);
	assert_int_equal(value_of(p, "main;malloc", "Dr"), 3);
	/* Its calls of itself are in its own costs. */
	assert_int_equal(value_of(p, "main;rec", "Ir"), 14);
	profile_free(p);
}

static void lines_are_of_the_file_that_they_were_inlined_from(void **state)
{
	struct profile *p = read_text(both_positions, "callgrind");
	bool inlined = false, rec = false;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, s.stack));
		const char *file = dict_str(d, l->lines[0].file);

		if (strcmp(file, "inline.h") == 0) {
			inlined = true;
			assert_int_equal(l->lines[0].line, 70);
			assert_string_equal(path_of(s.stack), "main");
			assert_int_equal(s.values[0], 1);
		}
		/* 20, then the line of the call (21), then two less. */
		if (strcmp(path_of(s.stack), "main;rec") == 0 && s.values[0] == 10) {
			rec = true;
			assert_int_equal(l->lines[0].line, 19);
			assert_string_equal(file, "t.c");
		}
	}
	assert_true(inlined && rec);
	profile_free(p);
}

/* f is called by a (30 of 40) and b (10 of 40): its own 8 are 6 and 2; whoever called a and b. */
static void what_several_call_is_apportioned_and_adds_up(void **state)
{
	struct profile *p = read_text(
		HEAD "events: Ir\n"
		     "fn=main\n1 5\ncfn=a\ncalls=1 1\n2 35\ncfn=b\ncalls=1 1\n3 11\n"
		     "fn=a\n1 5\ncfn=f\ncalls=1 1\n2 30\nfn=b\n1 1\ncfn=f\ncalls=1 1\n2 10\n"
		     "fn=f\n1 8\ncfn=g\ncalls=9 1\n2 32\nfn=g\n1 32\n",
		"callgrind");

	assert_int_equal(total_of(p, "Ir"), 51);
	assert_int_equal(value_of(p, "main;a;f", "Ir"), 6);
	assert_int_equal(value_of(p, "main;b;f", "Ir"), 2);
	assert_int_equal(value_of(p, "main;a;f;g", "Ir"), 24);
	assert_int_equal(value_of(p, "main;b;f;g", "Ir"), 8);
	profile_free(p);
}

/* a and b call each other: what they cost is there once. */
static void cycles_lose_nothing(void **state)
{
	struct profile *p = read_text(HEAD "events: Ir\n"
					   "fn=main\n1 1\ncfn=a\ncalls=1 1\n2 100\n"
					   "fn=a\n1 40\ncfn=b\ncalls=1 1\n2 90\n"
					   "fn=b\n1 60\ncfn=a\ncalls=1 1\n2 50\n",
				      "callgrind");

	assert_int_equal(total_of(p, "Ir"), 101);
	assert_int_equal(value_of(p, "main;a", "Ir"), 40);
	assert_int_equal(value_of(p, "main;a;b", "Ir"), 60);
	profile_free(p);
	/* Nobody calls them: one of them is where it begins. */
	p = read_text(
		HEAD
		"events: Ir\nfn=a\n1 40\ncfn=b\ncalls=1 1\n2 90\nfn=b\n1 60\ncfn=a\ncalls=1 1\n2 50\n",
		"callgrind");
	assert_int_equal(total_of(p, "Ir"), 100);
	profile_free(p);
}

static void parts_add_up_and_threads_stay_apart(void **state)
{
	struct profile *p = read_text(HEAD "part: 1\nthread: 1\nevents: Ir\nfn=(1) f\n+3 7\n"
					   "part: 2\nthread: 1\nevents: Ir\nfn=(1)\n+3 8\n"
					   "part: 1\nthread: 2\nevents: Ir\nfn=(1)\n+3 100\n",
				      "callgrind");
	const struct label *comm = dict_label_find(d, profile_sample(p, 0).labels, "comm");
	const struct label *tid = dict_label_find(d, profile_sample(p, 0).labels, "tid");

	assert_int_equal(profile_n_samples(p), 2);
	assert_int_equal(profile_sample(p, 0).values[0] + profile_sample(p, 1).values[0], 115);
	assert_int_equal(tid->num, 1);
	assert_string_equal(dict_str(d, comm->str), "t");
	profile_free(p);
}

static void units_and_processes_of_our_own_files_come_back(void **state)
{
	struct profile *p = read_text(
		"# callgrind format\nversion: 1\ncreator: memscope\ncmd: tsort (pid 7), on a CPU\npositions: line\n"
		"event: samples : samples in count\nevent: cpu : cpu in nanoseconds\nevents: samples cpu\n\n"
		"ob=(1) [process]\nfl=(1) ???\nfn=(1) tsort\ncob=(2) tsort\ncfi=(2) t.c\ncfn=(2) main\ncalls=1 7\n0 3 300\n\n"
		"ob=(2)\nfl=(2)\nfn=(2)\n7 1 100\ncob=(3) [kernel]\ncfi=(1)\ncfn=(3) do_read\ncalls=1 0\n9 2 200\n\n"
		"ob=(3)\nfl=(1)\nfn=(3)\n0 2 200\n",
		"callgrind");
	const struct location *l;

	assert_string_equal(profile_type(p, 1)->unit, "nanoseconds");
	assert_int_equal(value_of(p, "main", "cpu"), 100);
	assert_int_equal(value_of(p, "main;do_read", "cpu"), 200);
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		assert_string_equal(dict_str(d, dict_label_find(d, s.labels, "comm")->str),
				    "tsort");
		l = dict_location_get(d, dict_stack_leaf(d, s.stack));
		assert_int_equal(dict_module_get(d, l->module)->kind == MODULE_KERNEL,
				 strcmp(path_of(s.stack), "main;do_read") == 0);
	}
	profile_free(p);
}

static void cachegrinds_output_has_no_calls(void **state)
{
	struct profile *p = read_text(
		"desc: I1 cache:\ncmd: ./t\nevents: Ir I1mr\nfl=a.c\nfn=f\n3 10 1\n4 2 0\nsummary: 12 1\n",
		"callgrind");

	assert_int_equal(value_of(p, "f", "Ir"), 12);
	assert_int_equal(value_of(p, "f", "I1mr"), 1);
	profile_free(p);
}

static void damage_is_said_with_its_line(void **state)
{
	struct profile *p =
		read_text(HEAD "events: Ir\nfn=f\n3 10\nwhat is this\n4 5\n", "callgrind");

	assert_int_equal(total_of(p, "Ir"), 15);
	assert_non_null(strstr(info.damage, "line 9 is no line of callgrind's"));
	profile_free(p);
	memset(&info, 0, sizeof(info));
	p = read_text(HEAD "events: Ir\nfn=f\n3 10\n4 50", "callgrind");
	assert_int_equal(total_of(p, "Ir"), 10);
	assert_non_null(strstr(info.damage, "it ends within line 9"));
	profile_free(p);
	memset(&info, 0, sizeof(info));
	p = read_text(HEAD "events: Ir\nfn=f\n3 10\nf", "callgrind");
	assert_non_null(strstr(info.damage, "it ends within line 9"));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(own_costs_are_exact_and_jumps_are_passed_over),
		FACT(lines_are_of_the_file_that_they_were_inlined_from),
		FACT(what_several_call_is_apportioned_and_adds_up),
		FACT(cycles_lose_nothing),
		FACT(parts_add_up_and_threads_stay_apart),
		FACT(units_and_processes_of_our_own_files_come_back),
		FACT(cachegrinds_output_has_no_calls),
		FACT(damage_is_said_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
