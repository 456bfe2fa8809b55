/*
 * What `perf script` prints (perf-script(1)), as it prints it without -F or with fields left out:
 *
 *   my prog 1234/1235 [001]  5678.123456:   10101010 cpu-clock:pppH:
 *           ffffffff81a2b3c4 do_syscall_64+0x5b ([kernel.kallsyms])
 *               55d0c0ffee12 fold<int>(inlined)
 *               55d0c0ffee12 main+0x12 (/usr/bin/prog)
 *     main.c:17
 *   (an empty line)
 *
 * or, for a recording without stacks, the header and its one frame on one line. A command's name may
 * hold blanks and digits: the header is looked for as a whole behind it. Only samples of the event
 * that comes first are taken, those of others are counted. The last one is left out
 * when no empty line ends it: the text was cut, and how much of its stack is there is not known. Addresses are the process's, without its
 * mappings: locations are distinguished by name and image.
 */
#include "base/grow.h"
#include "import/readers.h"
#include "import/scan.h"
#include "model/sample_times.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	MAX_FRAMES = 1 << 16,
	MAX_INLINED = 128,
	EVENT_BYTES = 128,
};

struct header {
	struct bytes comm, event;
	int64_t pid, tid; /* -1: not there */
	int64_t period;   /* 0: not there  */
	int64_t time_ns;  /* -1: not there */
	struct bytes rest;
};

struct script {
	struct dict *d;
	struct import_info *info;
	struct profile *profile;
	struct sample_times *times;
	char event[EVENT_BYTES];
	uint32_t n_types;
	int64_t period, first_ns, last_ns;
	bool in_sample, wanted;
	struct header header;
	labels_id labels;
	location_id *frames; /* leaf first */
	uint32_t n_frames, cap_frames;
	struct line lines[MAX_INLINED]; /* inlined into the frame that is still to come, and it */
	uint32_t n_lines;
	module_id module;
	bool stacks; /* samples have frames on lines of their own, and an empty line behind them */
	bool whole;  /* lines end in the frame itself: what comes next is another, or its source */
	uint64_t bad, untimed;
	int64_t origin_ns;
};

static void script_fini(struct script *s)
{
	profile_free(s->profile);
	sample_times_free(s->times);
	free(s->frames);
}

/* --- headers --- */

/* "5678.123456:", in nanoseconds. */
static bool take_time(struct bytes *b, int64_t *ret_ns)
{
	struct bytes at = *b;
	int64_t s, ns = 0, unit = 1000000000;

	if (!scan_number(&at, &s) || !at.len || at.data[0] != '.')
		return false;
	for (bytes_skip(&at, 1); at.len && scan_is_digit(at.data[0]); bytes_skip(&at, 1)) {
		unit /= 10;
		ns += unit * (at.data[0] - '0');
	}
	if (!at.len || at.data[0] != ':' || s < 0 || s > INT64_MAX / 1000000000 - 1)
		return false;
	bytes_skip(&at, 1);
	*b = at;
	*ret_ns = s * 1000000000 + ns;
	return true;
}

static bool take_cpu(struct bytes *b)
{
	struct bytes at = *b;
	int64_t cpu;

	if (!scan_text(&at, "[") || !scan_number(&at, &cpu) || !scan_text(&at, "]"))
		return false;
	*b = at;
	return true;
}

/* "cycles:uppp:", "sched:sched_switch:": the name without the colon and the modifiers. */
static bool take_event(struct bytes *b, struct bytes *ret_event)
{
	struct bytes at = *b, word;
	size_t colon;

	if (!scan_word(&at, &word) || word.len < 2 || word.data[word.len - 1] != ':' ||
	    scan_is_digit(word.data[0]))
		return false;
	word.len--;
	for (colon = word.len; colon && word.data[colon - 1] != ':'; colon--)
		if (!strchr("ukhGHpPSDWIebR", word.data[colon - 1]))
			break;
	if (colon > 1 && word.data[colon - 1] == ':')
		word.len = colon - 1;
	*b = at;
	*ret_event = word;
	return true;
}

/* What follows the command's name. */
static bool take_numbers(struct bytes at, struct header *h)
{
	struct bytes word;
	int64_t number;

	if (!scan_number(&at, &h->tid))
		return false;
	h->pid = -1;
	if (at.len && at.data[0] == '/') {
		bytes_skip(&at, 1);
		h->pid = h->tid;
		if (!scan_number(&at, &h->tid))
			return false;
	}
	if (!at.len || !scan_is_blank(at.data[0]))
		return false;
	take_cpu(&at);
	h->time_ns = -1;
	take_time(&at, &h->time_ns);
	word = at;
	h->period =
		scan_number(&word, &number) && word.len && scan_is_blank(word.data[0]) ? number : 0;
	if (h->period)
		at = word;
	if (h->period < 0 || !take_event(&at, &h->event))
		return false;
	h->rest = scan_trim(at);
	return true;
}

static bool take_header(struct bytes line, struct header *h)
{
	struct bytes at = line, word;

	scan_blanks(&line);
	if (!scan_word(&at, &word))
		return false;
	while (at.len) {
		if (take_numbers(at, h)) {
			h->comm = scan_trim(bytes_of(line.data, (size_t)(at.data - line.data)));
			return true;
		}
		if (!scan_word(&at, &word))
			return false;
	}
	return false;
}

/* "prog 1234 5678.123456: PERF_RECORD_MMAP2 …": of --show-mmap-events and its kin. */
static bool is_record(struct bytes line)
{
	static const char word[] = " PERF_RECORD_";

	return memmem(line.data, line.len, word, sizeof(word) - 1) != NULL;
}

/* "        ffffffff81a2b3c4 do_syscall_64": a frame of a sample. */
static bool looks_like_a_frame(struct bytes line)
{
	uint64_t addr;

	return line.len && scan_is_blank(line.data[0]) && scan_hex(&line, &addr) && line.len &&
	       scan_is_blank(line.data[0]);
}

bool perf_script_recognise(struct bytes data)
{
	struct header h;
	struct bytes line;

	if (data.len > IMPORT_HEAD)
		data.len = IMPORT_HEAD;
	while (bytes_line(&data, &line)) {
		if (!scan_trim(line).len || line.data[0] == '#' || is_record(line))
			continue;
		/* Printed without the event: it cannot be read, and the reason is said. */
		return take_header(line, &h) || looks_like_a_frame(line) ||
		       (bytes_line(&data, &line) && looks_like_a_frame(line));
	}
	return false;
}

/* --- frames --- */

/* "NAME (IMAGE)": cuts the last pair of brackets off `b`, which may hold pairs itself. */
static bool cut_image(struct bytes *b, struct bytes *ret_image)
{
	size_t i = b->len;
	int open = 0;

	if (!i || b->data[i - 1] != ')')
		return false;
	while (i--) {
		open += b->data[i] == ')';
		open -= b->data[i] == '(';
		if (!open)
			break;
	}
	if (open)
		return false;
	*ret_image = bytes_of(b->data + i + 1, b->len - i - 2);
	*b = scan_trim(bytes_of(b->data, i));
	return true;
}

/* "main+0x12" → "main". */
static struct bytes without_offset(struct bytes name)
{
	size_t i = name.len;

	while (i && ((name.data[i - 1] >= 'a' && name.data[i - 1] <= 'f') ||
		     scan_is_digit(name.data[i - 1])))
		i--;
	if (i > 3 && i < name.len && !memcmp(name.data + i - 3, "+0x", 3))
		name.len = i - 3;
	return name;
}

static bool is(struct bytes b, const char *text)
{
	return b.len == strlen(text) && !memcmp(b.data, text, b.len);
}

static bool begins(struct bytes b, const char *text)
{
	return b.len >= strlen(text) && !memcmp(b.data, text, strlen(text));
}

static module_id module_of(struct script *s, struct bytes image, uint64_t addr)
{
	struct module m = { .kind = MODULE_ELF };

	if (!image.len || is(image, "[unknown]"))
		return (module_id){ 0 };
	if (begins(image, "[kernel.kallsyms]") || is(image, "[kernel]"))
		image = bytes_of("[kernel]", 8);
	if (addr >> 63)
		m.kind = MODULE_KERNEL;
	else if (is(image, "[vdso]"))
		m.kind = MODULE_VDSO;
	else if (image.data[0] == '[' || begins(image, "//anon"))
		m.kind = MODULE_ANON;
	m.path = dict_string_n(s->d, (const char *)image.data, image.len);
	return dict_module(s->d, &m);
}

/* A place without a symbol goes by its image, and so do all such places of it. */
static string_id image_name(struct script *s, struct bytes image)
{
	char name[256];
	size_t at = image.len;

	if (!image.len || image.data[0] == '[')
		return dict_string_n(s->d, image.len ? (const char *)image.data : "[unknown]",
				     image.len ? image.len : 9);
	while (at && image.data[at - 1] != '/')
		at--;
	snprintf(name, sizeof(name), "[%.*s]", (int)(image.len - at < 200 ? image.len - at : 200),
		 (const char *)image.data + at);
	return dict_string(s->d, name);
}

/* What was read of a frame is a place of the stack. -ENOMEM. */
static int end_frame(struct script *s)
{
	if (!s->n_lines)
		return 0;
	if (!GROW(s->frames, s->n_frames, s->cap_frames))
		return -ENOMEM;
	s->frames[s->n_frames++] = dict_location_lines(s->d, s->module, 0, s->lines, s->n_lines);
	s->n_lines = 0;
	s->whole = false;
	return 0;
}

static bool take_frame(struct script *s, struct bytes line, int *ret_error)
{
	struct bytes image = { 0 }, name;
	bool inlined;
	uint64_t addr;

	if (!scan_hex(&line, &addr) || (line.len && !scan_is_blank(line.data[0])))
		return false;
	name = scan_trim(line);
	cut_image(&name, &image);
	inlined = is(image, "inlined");
	if (s->whole || s->n_lines == MAX_INLINED)
		*ret_error = end_frame(s);
	if (*ret_error < 0 || s->n_frames == MAX_FRAMES)
		return false;
	name = without_offset(name);
	s->lines[s->n_lines++] = (struct line){
		.function = name.len && !is(name, "[unknown]")
				    ? dict_string_n(s->d, (const char *)name.data, name.len)
				    : image_name(s, inlined ? bytes_of("", 0) : image),
	};
	s->whole = !inlined;
	s->module = inlined ? (module_id){ 0 } : module_of(s, image, addr);
	return true;
}

/* "  main.c:17" below a frame, "  libc.so.6[2724a]" where that is not known (-F +srcline). An inlined
 * call is told of behind it: "  main.c:17 (inlined)". */
static bool take_source(struct script *s, struct bytes line)
{
	struct bytes number, image;
	size_t colon;
	int64_t n;

	line = scan_trim(line);
	if (s->n_lines && cut_image(&line, &image)) {
		if (!is(image, "inlined") || !line.len)
			return false;
		s->whole = false;
		s->module = (module_id){ 0 };
	}
	if (line.data[line.len - 1] == ']')
		return s->n_lines > 0;
	for (colon = line.len; colon && line.data[colon - 1] != ':'; colon--)
		;
	number = bytes_of(line.data + colon, line.len - colon);
	if (!s->n_lines || colon < 2 || !scan_number(&number, &n) || number.len || n < 0 ||
	    n > UINT32_MAX)
		return false;
	s->lines[s->n_lines - 1].file = dict_string_n(s->d, (const char *)line.data, colon - 1);
	s->lines[s->n_lines - 1].line = (uint32_t)n;
	return true;
}

/* --- samples --- */

/* The unit of a value that memscope names its events by (render/formats/perf_script.c); "count" of all others. */
static const char *unit_of(const char *event)
{
	static const char *const times[] = { "blocked", "runnable", "lifetime", "delay" };
	size_t len = strlen(event);

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		if (strcmp(event, times[i]) == 0)
			return "nanoseconds";
	return len > 6 && strcmp(event + len - 6, "_space") == 0 ? "bytes" : "count";
}

/* The first sample says what is counted. */
static int begin_profile(struct script *s)
{
	const struct header *h = &s->header;
	struct value_type types[2] = { { "samples", "count" }, { s->event, "count" } };

	snprintf(s->event, sizeof(s->event), "%.*s",
		 (int)(h->event.len < EVENT_BYTES - 1 ? h->event.len : EVENT_BYTES - 1),
		 (const char *)h->event.data);
	if (!strcmp(s->event, "cpu-clock") || !strcmp(s->event, "task-clock"))
		types[1] = (struct value_type){ "cpu", "nanoseconds" };
	else if (strcmp(unit_of(s->event), "count") != 0)
		/* Each stands for a stack and a stretch of time, and is no sample. */
		types[0].name = "events", types[1].unit = unit_of(s->event);
	s->n_types = h->period ? 2 : 1;
	s->period = h->period;
	s->first_ns = s->last_ns = s->origin_ns = h->time_ns;
	s->profile = profile_new(s->d, types, s->n_types);
	/* The value to show first is the period. */
	s->times = sample_times_new(s->n_types == 2 ? (uint32_t[]){ 1, 0 } : (uint32_t[]){ 0 },
				    s->n_types, SAMPLE_TIMES_FINE_NS, SAMPLE_TIMES_MAX);
	return s->profile && s->times ? 0 : -ENOMEM;
}

static bool same_event(const struct script *s)
{
	size_t len = s->header.event.len < EVENT_BYTES - 1 ? s->header.event.len : EVENT_BYTES - 1;

	return strlen(s->event) == len && !memcmp(s->event, s->header.event.data, len);
}

static void add_number(struct script *s, struct label *labels, uint32_t *n, const char *key,
		       int64_t number)
{
	if (number >= 0)
		labels[(*n)++] = (struct label){ .key = dict_string(s->d, key), .num = number };
}

static int begin_sample(struct script *s)
{
	struct label labels[3] = { {
		.key = dict_string(s->d, "comm"),
		.str = dict_string_n(s->d, (const char *)s->header.comm.data, s->header.comm.len),
	} };
	uint32_t n = labels[0].str.ix ? 1 : 0;
	int r = 0;

	if (!s->profile)
		r = begin_profile(s);
	if (r < 0)
		return r;
	s->wanted = same_event(s);
	if (!s->wanted)
		s->info->other_events++;
	add_number(s, labels, &n, "pid", s->header.pid);
	add_number(s, labels, &n, "tid", s->header.tid);
	s->labels = dict_labels(s->d, labels, n);
	s->in_sample = true;
	s->n_frames = s->n_lines = 0;
	s->whole = false;
	if (s->header.time_ns >= 0 && s->wanted) {
		if (s->first_ns < 0 || s->header.time_ns < s->first_ns)
			s->first_ns = s->header.time_ns;
		if (s->header.time_ns > s->last_ns)
			s->last_ns = s->header.time_ns;
	}
	return 0;
}

/* Since the first sample of the text: perf prints them in the order of time. */
static int add_time(struct script *s, uint32_t sample)
{
	int64_t values[2] = { s->n_types == 2 ? s->header.period : 1, 1 };
	int64_t ns = s->header.time_ns - s->origin_ns;

	return sample_times_add(s->times, sample, ns > 0 ? (uint64_t)ns : 0, values);
}

static int end_sample(struct script *s)
{
	int64_t values[2] = { 1, s->header.period };
	uint32_t sample;
	int r;

	if (!s->in_sample)
		return 0;
	s->in_sample = false;
	if (!s->wanted)
		return 0;
	r = end_frame(s);
	if (r == 0)
		r = profile_add_to(s->profile, dict_stack(s->d, s->frames, s->n_frames), s->labels,
				   values, &sample);
	if (r == 0 && s->header.time_ns >= 0)
		r = add_time(s, sample);
	s->untimed += s->header.time_ns < 0;
	return r;
}

static int take_line(struct script *s, struct bytes line)
{
	int r = 0;

	if (!scan_trim(line).len) {
		s->stacks |= s->in_sample;
		return end_sample(s);
	}
	if (line.data[0] == '#' || (!s->in_sample && is_record(line)))
		return 0;
	if (s->in_sample && scan_is_blank(line.data[0])) {
		if (!take_frame(s, line, &r) && r == 0)
			s->bad += !take_source(s, line);
		return r;
	}
	r = end_sample(s);
	if (r < 0)
		return r;
	if (!take_header(line, &s->header)) {
		s->bad++;
		return 0;
	}
	r = begin_sample(s);
	/* Without a stack: the frame is on the same line; a tracepoint's fields are not one. */
	if (r == 0 && s->header.rest.len && take_frame(s, s->header.rest, &r) && r == 0)
		r = end_sample(s);
	return r;
}

static int set_meta(struct script *s)
{
	struct profile_meta meta = { .period_type = { "", "" } };

	if (s->first_ns >= 0)
		meta.duration_ns = s->last_ns - s->first_ns;
	if (s->n_types == 2) {
		meta.period_type = *profile_type(s->profile, 1);
		meta.period = s->period;
		meta.default_type = strcmp(unit_of(s->event), "count") != 0;
	}
	return profile_set_meta(s->profile, &meta);
}

int perf_script_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		     struct profile **ret_profile, struct err *e)
{
	_cleanup_(script_fini) struct script s = { .d = d, .info = info };
	struct bytes line;
	int r = 0;

	while (r == 0 && input_line(in, &line))
		r = take_line(&s, line);
	info->cut = s.in_sample && s.wanted && (s.stacks || s.n_lines || s.n_frames);
	if (r == 0 && !info->cut)
		r = end_sample(&s);
	if (r == 0 && !s.profile)
		return err_set(e, -EBADMSG,
			       "%s: what perf script prints, without one sample that says of which "
			       "event it is (-F comm,pid,tid,time,event,ip,sym,dso)",
			       name);
	if (r == 0)
		r = set_meta(&s);
	/* Where some have no time, the sums would not be the profile's. */
	if (r == 0 && !s.untimed && profile_n_samples(s.profile))
		profile_set_times(s.profile, TAKE_PTR(s.times));
	if (r < 0 || dict_oom(d))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	info->skipped_lines = s.bad;
	import_note_fault(in, info);
	*ret_profile = TAKE_PTR(s.profile);
	return 0;
}
