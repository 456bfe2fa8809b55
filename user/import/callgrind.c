/*
 * Callgrind's output, "Callgrind Format Specification" of valgrind's manual; cachegrind's is the same without calls:
 *
 *   # callgrind format
 *   version: 1 … creator: callgrind-3.19 … pid: 665 … cmd: ./t … part: 1 … thread: 2
 *   positions: line           or instr, or both
 *   events: Ir Dr             what a cost line counts
 *   ob=(1) /usr/lib/libc.so   an object, file and function; "(1) NAME" names number 1, "(1)" alone is it again
 *   fl=(3) malloc.c
 *   fn=(7) malloc
 *   3254 17                   a cost line: positions, then events; "+3", "-3", "*": from the position before
 *   fi=(4) lock.h             what follows is of another file (inlined); fe: likewise, back again
 *   +4 2
 *   cob=(2)  cfi=(5)  cfn=(9) who is called next, where that is not the caller's object or file
 *   calls=12 1203             how often, and where the function is; below it one cost line: the place of the
 *   3260 940                  call, and what it cost with all that it called
 *   jump=…  jcnd=…            followed by a line without costs: passed over, as its line is
 *
 * Costs become stacks as call_paths.h says. Several parts in a file are added up, threads have labels. How often something was
 * called is not kept: no other format of profiles has it.
 */
#include "base/chunks.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "import/call_paths.h"
#include "import/readers.h"
#include "import/scan.h"
#include "model/about.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_POSITIONS = 4, MAX_NAME = 64 };

/* What is named by number: objects, files, functions. */
enum { OBJECT, SOURCE, FUNCTION, N_KINDS };

struct cg_name {
	struct {
		uint64_t number;
		uint32_t kind, unused;
	} key;
	string_id text;
	UT_hash_handle hh;
};

struct cg_function {
	struct {
		string_id object, file, name;
		uint32_t thread;
	} key;
	uint32_t number;
	UT_hash_handle hh;
};

struct cg_cost {
	struct {
		uint32_t function, callee, line;
		string_id file;
	} key;
	UT_hash_handle hh;
	int64_t values[];
};

struct cg_event {
	char name[MAX_NAME], unit[MAX_NAME];
};

struct callgrind {
	struct dict *d;
	struct cg_name *names;
	struct chunks functions, costs;
	struct cg_function *by_key;
	struct cg_cost *by_place, *last_cost;
	struct cg_event events[PROFILE_MAX_TYPES];
	uint32_t n_events, n_event_names, n_positions, line_position, thread;
	uint64_t at[MAX_POSITIONS];
	string_id object, file, function_file, name, callee_object, callee_file, callee_name;
	uint32_t function, callee; /* 1 + number; 0: not looked up */
	bool named, call, ours;
	char command[256];
	int64_t pid;
	uint64_t bad, first_bad, lost_events;
};

static void callgrind_fini(struct callgrind *c)
{
	HASH_CLEAR(hh, c->by_key);
	HASH_CLEAR(hh, c->by_place);
	hash_free(c->names);
	chunks_free(&c->functions);
	chunks_free(&c->costs);
}

static bool begins(struct bytes line, const char *word)
{
	return line.len >= strlen(word) && !memcmp(line.data, word, strlen(word));
}

bool callgrind_recognise(struct bytes data)
{
	static const char *const header[] = {
		"version:",   "creator:", "pid:",     "cmd:",    "part:", "desc:", "thread:",
		"positions:", "event:",   "summary:", "totals:", "#",     "rcmd:"
	};
	struct bytes line;
	bool first = true;

	while (bytes_line(&data, &line)) {
		bool known = false;

		if (first && begins(line, "# callgrind format"))
			return true;
		if (begins(line, "events:"))
			return !first;
		for (size_t i = 0; i < sizeof(header) / sizeof(*header); i++)
			known |= begins(line, header[i]);
		if (!known && scan_trim(line).len)
			return false;
		first = false;
	}
	return false;
}

/* --- names ------------------------------------------------------------------------------------ */

/* "(7) malloc", "(7)", "malloc" */
static int take_name(struct callgrind *c, uint32_t kind, struct bytes b, string_id *ret)
{
	struct bytes rest = b;
	struct cg_name probe, *known;
	int64_t number;

	b = scan_trim(b);
	if (!scan_text(&rest, "(") || !scan_number(&rest, &number) || number < 0 ||
	    !scan_text(&rest, ")")) {
		*ret = dict_string_n(c->d, (const char *)b.data, b.len);
		return 0;
	}
	memset(&probe, 0, sizeof(probe));
	probe.key.kind = kind;
	probe.key.number = (uint64_t)number;
	known = hash_get(c->names, key, &probe.key);
	if (!known)
		return -ENOMEM;
	rest = scan_trim(rest);
	if (rest.len)
		known->text = dict_string_n(c->d, (const char *)rest.data, rest.len);
	*ret = known->text;
	return 0;
}

static struct cg_function *function_of(struct callgrind *c, string_id object, string_id file,
				       string_id name)
{
	struct cg_function probe, *f;

	memset(&probe, 0, sizeof(probe));
	probe.key.object = object;
	probe.key.file = file;
	probe.key.name = name;
	probe.key.thread = c->thread;
	HASH_FIND(hh, c->by_key, &probe.key, sizeof(probe.key), f);
	if (f)
		return f;
	f = chunks_add(&c->functions);
	if (!f)
		return NULL;
	memcpy(&f->key, &probe.key, sizeof(f->key));
	f->number = c->functions.n - 1;
	HASH_ADD(hh, c->by_key, key, sizeof(f->key), f);
	return hash_added(f) ? f : NULL;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The positions at the front of a cost line. */
static bool take_positions(struct callgrind *c, struct bytes *line)
{
	uint64_t at[MAX_POSITIONS];

	for (uint32_t i = 0; i < c->n_positions; i++) {
		bool up, down, hex;
		int64_t number;

		scan_blanks(line);
		at[i] = c->at[i];
		if (scan_text(line, "*"))
			continue;
		up = scan_text(line, "+");
		down = !up && scan_text(line, "-");
		hex = line->len > 2 && line->data[0] == '0' && (line->data[1] | 0x20) == 'x';
		if (hex ? !scan_hex(line, (uint64_t *)&number) : !scan_number(line, &number))
			return false;
		at[i] = up     ? at[i] + (uint64_t)number
			: down ? at[i] - (uint64_t)number
			       : (uint64_t)number;
	}
	memcpy(c->at, at, sizeof(at[0]) * c->n_positions);
	return true;
}

static struct cg_cost *cost_of(struct callgrind *c, uint32_t callee)
{
	struct cg_cost probe, *cost = c->last_cost;
	uint64_t line = c->line_position < c->n_positions ? c->at[c->line_position] : 0;

	memset(&probe.key, 0, sizeof(probe.key));
	probe.key.function = c->function - 1;
	probe.key.callee = callee;
	probe.key.line = line <= UINT32_MAX ? (uint32_t)line : 0;
	probe.key.file = c->file;
	if (cost && memcmp(&cost->key, &probe.key, sizeof(probe.key)) == 0)
		return cost;
	HASH_FIND(hh, c->by_place, &probe.key, sizeof(probe.key), cost);
	if (!cost) {
		cost = chunks_add(&c->costs);
		if (!cost)
			return NULL;
		memcpy(&cost->key, &probe.key, sizeof(cost->key));
		HASH_ADD(hh, c->by_place, key, sizeof(cost->key), cost);
		if (!hash_added(cost))
			return NULL;
	}
	c->last_cost = cost;
	return cost;
}

/* A cost line, or the line below calls=. False: it is none. */
static bool take_cost(struct callgrind *c, struct bytes line, int *ret_error)
{
	struct cg_cost *cost;
	struct cg_function *f;
	uint32_t callee = 0;
	int64_t n;

	if (!take_positions(c, &line) || (line.len && !scan_is_blank(line.data[0])))
		return false;
	if (!scan_trim(line).len)
		return true; /* of a jump */
	if (!c->function) {
		f = function_of(c, c->object, c->function_file, c->name);
		*ret_error = f ? 0 : -ENOMEM;
		if (!f)
			return false;
		c->function = f->number + 1;
	}
	if (c->call) {
		f = function_of(c, c->callee_object.ix ? c->callee_object : c->object,
				c->callee_file.ix ? c->callee_file : c->file, c->callee_name);
		*ret_error = f ? 0 : -ENOMEM;
		if (!f)
			return false;
		callee = f->number + 1;
		c->call = false;
		c->callee_object = c->callee_file = (string_id){ 0 };
	}
	cost = cost_of(c, callee);
	if (!cost) {
		*ret_error = -ENOMEM;
		return false;
	}
	for (uint32_t i = 0; scan_trim(line).len; i++) {
		if (!scan_number(&line, &n) || n < 0)
			return false;
		if (i < c->n_events && __builtin_add_overflow(cost->values[i], n, &cost->values[i]))
			cost->values[i] = INT64_MAX;
		c->lost_events += i >= c->n_events;
	}
	return true;
}

static void copy_word(char *to, size_t cap, struct bytes word)
{
	snprintf(to, cap, "%.*s", (int)(word.len < cap - 1 ? word.len : cap - 1),
		 (const char *)word.data);
}

static void set_events(struct callgrind *c, struct bytes line)
{
	struct bytes word = { 0 };
	uint32_t n = 0;

	/* Parts of one run count the same; costs of others would not add up. */
	while (!c->costs.n && n < PROFILE_MAX_TYPES && scan_word(&line, &word)) {
		char name[MAX_NAME];

		copy_word(name, sizeof(name), word);
		if (strcmp(c->events[n].name, name) != 0) {
			/* Its description came before, or not at all. */
			struct cg_event found = { .unit = "count" };

			for (uint32_t i = 0; i < c->n_event_names; i++)
				if (strcmp(c->events[i].name, name) == 0)
					found = c->events[i];
			snprintf(found.name, sizeof(found.name), "%s", name);
			if (n == c->n_event_names)
				c->n_event_names++;
			c->events[n] = found;
		}
		if (!c->events[n].unit[0])
			strcpy(c->events[n].unit, "count");
		n++;
	}
	if (n)
		c->n_events = n;
	if (!c->costs.n)
		c->costs.elem_size = sizeof(struct cg_cost) + c->n_events * sizeof(int64_t);
}

/* "event: cpu : cpu in nanoseconds", as memscope writes it: the unit of a value. */
static void describe_event(struct callgrind *c, struct bytes line)
{
	struct cg_event *event = &c->events[c->n_event_names];
	struct bytes name = { 0 }, word, last = { 0 }, before = { 0 };

	if (!c->ours || c->n_event_names == PROFILE_MAX_TYPES || !scan_word(&line, &name))
		return;
	while (scan_word(&line, &word)) {
		before = last;
		last = word;
	}
	if (before.len != 2 || memcmp(before.data, "in", 2) != 0)
		return;
	copy_word(event->name, sizeof(event->name), name);
	copy_word(event->unit, sizeof(event->unit), last);
	c->n_event_names++;
}

static void set_positions(struct callgrind *c, struct bytes line)
{
	struct bytes word = { 0 };

	c->n_positions = 0;
	c->line_position = MAX_POSITIONS;
	while (c->n_positions < MAX_POSITIONS && scan_word(&line, &word)) {
		if (word.len == 4 && memcmp(word.data, "line", 4) == 0)
			c->line_position = c->n_positions;
		c->n_positions++;
	}
}

/* "WORD: TEXT" of a header. False: it is none. */
static bool take_header(struct callgrind *c, struct bytes line)
{
	int64_t number;

	if (scan_text(&line, "events:")) {
		set_events(c, line);
	} else if (scan_text(&line, "event:")) {
		describe_event(c, line);
	} else if (scan_text(&line, "positions:")) {
		set_positions(c, line);
	} else if (scan_text(&line, "creator:")) {
		c->ours = begins(scan_trim(line), "memscope");
	} else if (scan_text(&line, "cmd:")) {
		copy_word(c->command, sizeof(c->command), scan_trim(line));
	} else if (scan_text(&line, "pid:")) {
		if (scan_number(&line, &number))
			c->pid = number;
	} else if (scan_text(&line, "thread:")) {
		c->thread = scan_number(&line, &number) && number > 0 && number < UINT32_MAX
				    ? (uint32_t)number
				    : 0;
		c->function = 0;
	} else if (scan_text(&line, "part:")) {
		memset(c->at, 0, sizeof(c->at));
	} else {
		return scan_text(&line, "version:") || scan_text(&line, "desc:") ||
		       scan_text(&line, "summary:") || scan_text(&line, "totals:") ||
		       scan_text(&line, "rcmd:");
	}
	return true;
}

/* "fn=(7) malloc" and the like. False: it is none. */
static bool take_spec(struct callgrind *c, struct bytes line, int *ret_error)
{
	if (scan_text(&line, "fn=")) {
		*ret_error = take_name(c, FUNCTION, line, &c->name);
		c->file = c->function_file;
		c->function = 0;
		c->named = true;
	} else if (scan_text(&line, "fl=")) {
		*ret_error = take_name(c, SOURCE, line, &c->function_file);
		c->file = c->function_file;
		c->function = 0;
	} else if (scan_text(&line, "fi=") || scan_text(&line, "fe=")) {
		*ret_error = take_name(c, SOURCE, line, &c->file);
	} else if (scan_text(&line, "ob=")) {
		*ret_error = take_name(c, OBJECT, line, &c->object);
		c->function = 0;
	} else if (scan_text(&line, "cob=")) {
		*ret_error = take_name(c, OBJECT, line, &c->callee_object);
	} else if (scan_text(&line, "cfi=") || scan_text(&line, "cfl=")) {
		*ret_error = take_name(c, SOURCE, line, &c->callee_file);
	} else if (scan_text(&line, "cfn=")) {
		*ret_error = take_name(c, FUNCTION, line, &c->callee_name);
	} else if (scan_text(&line, "calls=")) {
		c->call = true;
	} else {
		return scan_text(&line, "jump=") || scan_text(&line, "jcnd=") ||
		       scan_text(&line, "jfi=") || scan_text(&line, "jfn=") ||
		       scan_text(&line, "frfn=");
	}
	return true;
}

static int take_line(struct callgrind *c, struct bytes line, uint64_t number)
{
	uint8_t first = line.len ? line.data[0] : '#';
	int r = 0;
	bool known;

	if (first == '#' || !scan_trim(line).len)
		return 0;
	if (scan_is_digit(first) || first == '+' || first == '-' || first == '*')
		known = c->named && take_cost(c, line, &r);
	else
		known = take_spec(c, line, &r) || (r == 0 && take_header(c, line));
	if (r == 0 && !known && !c->bad++)
		c->first_bad = number;
	return r;
}

/* --- what came of it -------------------------------------------------------------------------- */

static bool is_unknown(const char *name)
{
	return !*name || strcmp(name, "???") == 0;
}

static module_id module_of(struct callgrind *c, string_id object)
{
	const char *name = dict_str(c->d, object);
	struct module m = { .kind = MODULE_ELF, .path = object };

	if (is_unknown(name))
		return (module_id){ 0 };
	if (strcmp(name, "[kernel]") == 0)
		m.kind = MODULE_KERNEL;
	else if (strcmp(name, "[vdso]") == 0)
		m.kind = MODULE_VDSO;
	else if (strcmp(name, "//anon") == 0 || strcmp(name, "[anon]") == 0)
		m.kind = MODULE_ANON;
	else if (c->ours && name[0] == '[')
		m.kind = MODULE_LANG;
	return dict_module(c->d, &m);
}

/* The program's name, without its path and arguments. */
static string_id command_name(const struct callgrind *c)
{
	const char *from = c->command;
	size_t len = strcspn(from, " ");

	for (size_t i = 0; i < len; i++)
		if (c->command[i] == '/')
			from = c->command + i + 1;
	return dict_string_n(c->d, from, len - (size_t)(from - c->command));
}

static labels_id labels_of(struct callgrind *c, const struct cg_function *f, bool process)
{
	struct label labels[3];
	uint32_t n = 0;
	string_id comm = process ? f->key.name : c->ours ? (string_id){ 0 } : command_name(c);

	if (comm.ix && strcmp(dict_str(c->d, comm), "all") != 0)
		labels[n++] = (struct label){ .key = dict_string(c->d, "comm"), .str = comm };
	if (c->pid > 0)
		labels[n++] = (struct label){ .key = dict_string(c->d, "pid"), .num = c->pid };
	if (f->key.thread)
		labels[n++] =
			(struct label){ .key = dict_string(c->d, "tid"), .num = f->key.thread };
	return dict_labels(c->d, labels, n);
}

/*
 * In what memscope wrote, a process is a function that nobody calls, and whose calls stand at the root: its name is
 * the label of all that it calls. A function that several processes call is one function there: it has the label of none.
 */
static void name_functions(struct callgrind *c, struct call_function *functions)
{
	uint32_t processes = 0;

	for (uint32_t i = 0; i < c->functions.n; i++) {
		const struct cg_function *f = chunks_at(&c->functions, i);
		const char *name = dict_str(c->d, f->key.name);
		bool process = c->ours && strcmp(dict_str(c->d, f->key.object), "[process]") == 0;

		processes += process;
		functions[i] = (struct call_function){
			.name = is_unknown(name) ? dict_string(c->d, "[unknown]") : f->key.name,
			.module = process ? (module_id){ 0 } : module_of(c, f->key.object),
			.labels = labels_of(c, f, process),
			.hidden = process,
		};
	}
	for (uint32_t i = 0; i < c->functions.n && processes == 1; i++) {
		if (!functions[i].hidden)
			continue;
		for (uint32_t k = 0; k < c->functions.n; k++)
			functions[k].labels = functions[i].labels;
		break;
	}
	/* Several: they are frames. */
	for (uint32_t i = 0; i < c->functions.n && processes > 1; i++)
		functions[i].hidden = false;
}

static int add_costs(struct callgrind *c, struct profile *p)
{
	_cleanup_(freep) struct call_function *functions =
		calloc(c->functions.n + 1ul, sizeof(*functions));
	_cleanup_(freep) struct call_cost *costs = calloc(c->costs.n + 1ul, sizeof(*costs));

	if (!functions || !costs)
		return -ENOMEM;
	name_functions(c, functions);
	for (uint32_t i = 0; i < c->costs.n; i++) {
		const struct cg_cost *cost = chunks_at(&c->costs, i);
		string_id file = cost->key.file;

		costs[i] = (struct call_cost){
			.function = cost->key.function,
			.callee = cost->key.callee,
			.file = is_unknown(dict_str(c->d, file)) ? (string_id){ 0 } : file,
			.line = cost->key.line,
			.values = cost->values,
		};
	}
	return call_paths_add(p, functions, c->functions.n, costs, c->costs.n);
}

static int set_meta(const struct callgrind *c, struct profile *p)
{
	char target[300];
	const char *comments[4] = {
		"Costs of functions and lines are counted; paths of more than one call are apportioned",
		target,
	};

	/* What memscope writes there is a title, which begins with the target. */
	snprintf(target, sizeof(target), "%s%.*s", about_prefix(ABOUT_TARGET),
		 (int)(c->ours ? strcspn(c->command, ",") : strlen(c->command)), c->command);
	return profile_set_meta(p, &(struct profile_meta){ .period_type = { "", "" },
							   .comments = comments + c->ours });
}

static void note_damage(const struct callgrind *c, const struct input *in, struct import_info *info)
{
	bool cut = !input_line_whole(in), bad = c->bad;

	/* Of a line that was cut nobody can say what it was. */
	if (cut && c->first_bad == input_n_lines(in))
		bad = false;
	import_note_fault(in, info);
	if (!info->damage[0] && bad)
		snprintf(info->damage, sizeof(info->damage),
			 "line %" PRIu64
			 " is no line of callgrind's; all that were understood were kept",
			 c->first_bad);
	else if (!info->damage[0] && cut)
		snprintf(info->damage, sizeof(info->damage),
			 "it ends within line %" PRIu64
			 ", which was left out; what is before it was kept",
			 input_n_lines(in));
	else if (!info->damage[0] && c->lost_events)
		snprintf(info->damage, sizeof(info->damage),
			 "it has more than %d events: the first ones were kept", PROFILE_MAX_TYPES);
}

int callgrind_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		   struct profile **ret_profile, struct err *e)
{
	_cleanup_(callgrind_fini) struct callgrind c = {
		.d = d,
		.functions = CHUNKS_OF(struct cg_function),
		.costs = CHUNKS_OF(struct cg_cost),
		.n_positions = 1,
	};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct value_type types[PROFILE_MAX_TYPES];
	struct bytes line;
	int r = 0;

	while (r == 0 && input_line(in, &line) && (input_line_whole(in) || line.len < 2))
		r = take_line(&c, line, input_n_lines(in));
	if (r == 0 && !c.n_events)
		return err_set(e, -EBADMSG,
			       "%s: callgrind's output that does not say which events it counts",
			       name);
	for (uint32_t i = 0; i < c.n_events; i++)
		types[i] = (struct value_type){ c.events[i].name, c.events[i].unit };
	if (r == 0 && !(p = profile_new(d, types, c.n_events)))
		r = -ENOMEM;
	if (r == 0)
		r = add_costs(&c, p);
	if (r == 0)
		r = set_meta(&c, p);
	if (r < 0 || dict_oom(d))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	note_damage(&c, in, info);
	*ret_profile = TAKE_PTR(p);
	return 0;
}
