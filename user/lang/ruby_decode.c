/*
 * A frame of Ruby's as the walk recorded it, to function, file and line: by a method entry, which has the iseq, or
 * the C method, and the class; by an iseq (bodies of classes and files); or by both (blocks, and else what is inside of a
 * method). What was freed meanwhile is known by the object's type and the cookie, read before and after.
 *
 *   method entry   flags:8 class:8 def:8 id:8 owner:8        def: type:4 … iseq:8 … id:8 at 32
 *   iseq           flags:8 … body:8 at 16                    body: type:4 size:4 code:8 … path:8 base:8 label:8 line at 64
 */
#include "abi.h"
#include "lang/ruby.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ENTRY_WORDS = 5,
	IMEMO_ENTRY = 0x601a,
	IMEMO_ISEQ = 0x701a,
	IMEMO_MASK = 0xf01f,
	DEF_ISEQ = 8,
	DEF_ID = 32,
	DEF_TYPE_MASK = 0xf,
	DEF_TYPE_ISEQ = 0,
	ISEQ_BODY = 16,
	BODY_PATH = 64,
	BODY_BYTES = 96,
	/* enum iseq_type, and how far such code may be nested. */
	TYPE_EVAL = 6,
	PARENTS_MAX = 16,
};

struct code {
	bool method, in_c, inside; /* inside of the method: the iseq is not the entry's */
	uint64_t entry[ENTRY_WORDS], iseq;
	uint64_t iseq_flags, body;
	uint64_t head[BODY_BYTES / 8];
};

static bool read_iseq(const struct lang_memory *mem, struct code *code)
{
	return lang_read(mem, code->iseq, &code->iseq_flags, sizeof(code->iseq_flags)) &&
	       lang_read(mem, code->iseq + ISEQ_BODY, &code->body, sizeof(code->body)) &&
	       lang_read(mem, code->body, code->head, sizeof(code->head));
}

/* What the words of a frame say. */
struct words {
	bool method, in_c, inside;
	uint64_t entry, iseq;
	uint32_t at; /* MS_RUBY_AT: unknown */
	uint64_t cookie;
};

static struct words words_of(const uint64_t words[2])
{
	uint64_t at = words[0] & MS_FRAME_ADDR_MASK;
	uint32_t instr = (uint32_t)words[1];

	if (at & MS_RUBY_INSIDE)
		return (struct words){
			.inside = true,
			.entry = words[1] & MS_RUBY_ADDR,
			.iseq = at & MS_RUBY_ADDR,
			.at = (uint32_t)(at >> MS_RUBY_ENTRY_SHIFT << 3 | (words[1] & 7)),
			.cookie = words[1] >> MS_RUBY_ENTRY_SHIFT & 0xff,
		};
	return (struct words){
		.method = instr & MS_RUBY_METHOD,
		.in_c = instr & MS_RUBY_CFUNC,
		.entry = instr & MS_RUBY_METHOD ? at : 0,
		.iseq = at,
		.at = instr & MS_RUBY_AT,
		.cookie = words[1] >> 32 & MS_LANG_COOKIE_MASK,
	};
}

static bool read_code(const struct lang_memory *mem, const struct words *w, struct code *code)
{
	uint32_t type;

	memset(code, 0, sizeof(*code));
	code->method = w->method;
	code->in_c = w->in_c;
	code->inside = w->inside;
	code->iseq = w->iseq;
	if (w->entry && !lang_read(mem, w->entry, code->entry, sizeof(code->entry)))
		return false;
	if (code->in_c)
		return true;
	if (code->method) {
		if (!lang_read(mem, code->entry[2], &type, sizeof(type)) ||
		    (type & DEF_TYPE_MASK) != DEF_TYPE_ISEQ ||
		    !lang_read(mem, code->entry[2] + DEF_ISEQ, &code->iseq, sizeof(code->iseq)))
			return false;
	}
	return read_iseq(mem, code);
}

static bool is_the_one(const struct code *code, const struct words *w)
{
	uint64_t cookie;

	if (code->inside)
		cookie = ms_ruby_cookie(code->body, code->head[1], code->entry[4]) & 0xff;
	else if (code->method)
		cookie =
			ms_ruby_cookie(code->entry[2], code->entry[4], code->in_c ? 0 : code->iseq);
	else
		cookie = ms_ruby_cookie(code->body, code->head[1], code->head[0] >> 32);
	return cookie == w->cookie && (!w->entry || (code->entry[0] & IMEMO_MASK) == IMEMO_ENTRY) &&
	       (code->in_c || (code->iseq_flags & IMEMO_MASK) == IMEMO_ISEQ);
}

/* The label of an iseq, and that of the method that it is in: of code that is evaluated, from 3.4 on of the code around it. */
static int read_label(const struct ruby_rt *ruby, const struct lang_memory *mem,
		      const struct code *code, uint64_t *ret_string, uint64_t *ret_base)
{
	struct code at = *code;

	for (int i = 0; i < PARENTS_MAX; i++) {
		uint32_t type = (uint32_t)at.head[0];

		*ret_string = at.head[BODY_PATH / 8 + 2];
		*ret_base = at.head[BODY_PATH / 8 + 1];
		if (!ruby->parent || type != TYPE_EVAL)
			return 0;
		if (!lang_read(mem, at.body + ruby->parent, &at.iseq, sizeof(at.iseq)))
			return -EIO;
		if (!at.iseq)
			return 0;
		if (!read_iseq(mem, &at))
			return -EIO;
	}
	return 0;
}

/* Appends "Class#", "Class." or, of a class without a name, nothing. */
static int read_owner(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t owner,
		      char name[LANG_NAME_MAX], bool *cut)
{
	uint64_t string;
	size_t len;
	bool own;
	int r = ruby_class(ruby, mem, owner, &string, &own);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = ruby_text(ruby, mem, string, name, LANG_NAME_MAX, cut);
	len = strlen(name);
	if (r == 0 && len + 2 < LANG_NAME_MAX)
		memcpy(name + len, own ? "." : "#", 2);
	return r;
}

/* Labels of what is no method: <main>, <top (required)>, <class:Foo>, singleton class. Methods may be called <, <=, <<, <=>. */
static bool is_method(const char *name)
{
	return *name && !(name[0] == '<' && isalpha((unsigned char)name[1])) && !strchr(name, ' ');
}

/*
 * "block in run" to "block in App::Job#run", as Ruby's own labels are from 3.4 on: the class before the name of the method,
 * with which the label ends. A block that define_method() has made a method is in what is no method, and stays as it is.
 */
static int insert_owner(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t owner,
			uint64_t method, struct lang_frame *frame)
{
	char name[LANG_NAME_MAX] = "", whole[LANG_NAME_MAX] = "";
	size_t len = strlen(frame->function), own;
	bool cut = frame->cut;
	int r = ruby_text(ruby, mem, method, name, sizeof(name), &cut);

	own = strlen(name);
	if (r < 0 || cut || own > len || strcmp(frame->function + len - own, name) != 0 ||
	    !is_method(name))
		return r;
	memcpy(whole, frame->function, len - own);
	r = read_owner(ruby, mem, owner, whole, &cut);
	if (r < 0 || cut || strlen(whole) + own >= sizeof(whole))
		return r;
	strcat(whole, name);
	memcpy(frame->function, whole, sizeof(whole));
	return 0;
}

static int read_function(const struct ruby_rt *ruby, const struct lang_memory *mem,
			 const struct code *code, struct lang_frame *frame)
{
	uint64_t string, id, method = 0;
	int r = code->in_c ? 0 : read_label(ruby, mem, code, &string, &method);

	if (r == 0 && code->method)
		r = read_owner(ruby, mem, code->entry[4], frame->function, &frame->cut);
	if (r == 0 && code->in_c) {
		if (!lang_read(mem, code->entry[2] + DEF_ID, &id, sizeof(id)))
			return -EIO;
		r = ruby_name(ruby, mem, id, &string);
	}
	if (r == 0)
		r = ruby_text(ruby, mem, string, frame->function, sizeof(frame->function),
			      &frame->cut);
	return r == 0 && code->inside ? insert_owner(ruby, mem, code->entry[4], method, frame) : r;
}

/* Takes `before` and the last character off a text that is both: "(eval at a.rb:7)". */
static void strip(char *text, const char *before, char last)
{
	size_t len = strlen(text), skip = strlen(before);

	if (len <= skip || strncmp(text, before, skip) != 0 || text[len - 1] != last)
		return;
	memmove(text, text + skip, len - skip);
	text[len - skip - 1] = '\0';
}

/* A path, or the path as it was given and the real one, which code of eval() has not. */
static int read_file(const struct ruby_rt *ruby, const struct lang_memory *mem, uint64_t path,
		     struct lang_frame *frame)
{
	uint64_t flags, string = path;
	int r;

	if (!ruby_is_object(path) || !lang_read(mem, path, &flags, sizeof(flags)))
		return -EIO;
	if ((flags & RUBY_T_MASK) == RUBY_T_ARRAY) {
		r = ruby_element(mem, path, 1, &string);
		if (r == 0 && !ruby_is_object(string))
			r = ruby_element(mem, path, 0, &string);
		if (r < 0)
			return r;
	}
	r = ruby_text(ruby, mem, string, frame->file, sizeof(frame->file), &frame->cut);
	if (r < 0)
		return r;
	/* Code of eval() is "(eval at FILE:LINE)" from 3.3 on. */
	strip(frame->file, "(eval at ", ')');
	/* Files that RubyGems hides from backtraces; those of Ruby itself have no path there: "<internal:kernel>". */
	if (!strncmp(frame->file, "<internal:/", 11))
		strip(frame->file, "<internal:", '>');
	return 0;
}

static int read_place(const struct ruby_rt *ruby, const struct lang_memory *mem,
		      const struct code *code, uint32_t at, struct lang_frame *frame)
{
	int64_t line = at == MS_RUBY_AT ? 0 : ruby_line(ruby, mem, code->body, at);
	uint64_t first = code->head[BODY_PATH / 8 + 3];

	if (line < 0)
		return (int)line;
	first = ruby->tagged_line ? first >> 1 : (uint32_t)first;
	frame->line = (uint32_t)line;
	frame->first_line = first <= INT32_MAX ? (uint32_t)first : 0;
	return read_file(ruby, mem, code->head[BODY_PATH / 8], frame);
}

enum lang_decoded ruby_decode(const struct lang_runtime *rt, const struct lang_memory *mem,
			      const uint64_t words[2], struct lang_frame *ret_frame)
{
	struct words w = words_of(words);
	struct lang_frame frame = { 0 };
	struct code code, after;
	int r;

	if (!w.iseq || !read_code(mem, &w, &code) || !is_the_one(&code, &w))
		return LANG_GONE;
	r = read_function(&rt->ruby, mem, &code, &frame);
	if (r == 0 && !code.in_c)
		r = read_place(&rt->ruby, mem, &code, w.at, &frame);
	if (!read_code(mem, &w, &after) || memcmp(&code, &after, sizeof(code)) != 0)
		return LANG_GONE;
	if (r < 0)
		return r == -EIO ? LANG_GONE : LANG_DAMAGED;
	*ret_frame = frame;
	return LANG_DECODED;
}
