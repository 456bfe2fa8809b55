/*
 * A frame of Perl's as the walk recorded it, its statement and what names its function, with a cookie of each, to
 * function, file and line. Statements live as long as the code that they are in, globs as long as their stash. Either may
 * have gone meanwhile and its memory be anything: the cookies and every string are checked, and both are read
 * once more at the end. Of code that is executed once (a file that is required, BEGIN, a string that is evaluated) the name is left.
 *
 *   COP: line:4 at 0x24  file at 0x30, with threads a text, else its glob, which is called _<FILE  seq:4 at 0x3c
 *   SV:  body:8 references:4 flags:4 …   the lowest byte of the flags is its type
 *   GV:  in its body the name (HEK) at 0x20, its stash at 0x28
 *   CV:  in its body its stash at 0x20, its name (HEK) or glob at 0x38, flags:4 at 0x5c
 *   HEK: hash:4 length:4 text…  NUL  flags:1
 *
 * A name is as caller() has it: Package::function, of a sub without a name Package::__ANON__.
 */
#include "abi.h"
#include "lang/perl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	SV_GV = 9,
	SV_HV = 12,
	SV_CV = 13,
	HEK_UTF8 = 1,
	CV_NAMED = 0x8000,
	CV_LEXICAL = 0x10000,
	SV_HAS_AUX = 0x02000000,
	AUX_NAME = 0,
	AUX_COUNT = 0x1c,
	XPVHV_BYTES = 0x20,
	XPVHV_MAX = 0x18,
};

struct reader {
	const struct lang_runtime *rt;
	const struct lang_memory *mem;
};

/* What the cookie is made of. */
struct seen {
	uint64_t line, file, seq, hek, stash;
	bool lexical;
};

static bool read_word(const struct reader *r, uint64_t at, uint64_t *ret_word)
{
	return at >= 4096 && lang_read(r->mem, at, ret_word, sizeof(*ret_word));
}

/* The body of an SV of this type. */
static bool read_body(const struct reader *r, uint64_t sv, uint8_t type, uint64_t *ret_body,
		      uint32_t *ret_flags)
{
	uint8_t head[16];

	if (sv < 4096 || sv % 8 || !lang_read(r->mem, sv, head, sizeof(head)))
		return false;
	memcpy(ret_body, head, sizeof(*ret_body));
	memcpy(ret_flags, head + 12, sizeof(*ret_flags));
	return (*ret_flags & 0xff) == type;
}

static bool read_statement(const struct reader *r, uint64_t cop, struct seen *s)
{
	uint8_t buf[0x20];

	if (!lang_read(r->mem, cop + 0x20, buf, sizeof(buf)))
		return false;
	s->line = s->seq = 0;
	memcpy(&s->line, buf + 4, 4);
	memcpy(&s->file, buf + 0x10, 8);
	memcpy(&s->seq, buf + 0x1c, 4);
	return true;
}

static bool read_function(const struct reader *r, enum ms_perl_kind kind, uint64_t name,
			  struct seen *s)
{
	uint64_t body;
	uint32_t flags;

	if (kind < MS_PERL_SUB || !name)
		return true;
	if (kind != MS_PERL_CV)
		return read_body(r, name, SV_GV, &body, &flags) &&
		       read_word(r, body + 0x20, &s->hek) && read_word(r, body + 0x28, &s->stash);
	if (!read_body(r, name, SV_CV, &body, &flags) || !read_word(r, body + 0x20, &s->stash) ||
	    !read_word(r, body + 0x38, &s->hek) ||
	    !lang_read(r->mem, body + 0x5c, &flags, sizeof(flags)))
		return false;
	s->lexical = flags & CV_LEXICAL;
	return flags & CV_NAMED;
}

static bool is_statement(const struct seen *s, const uint64_t words[2])
{
	return ms_perl_cookie(s->seq, s->line, s->file) ==
	       ((words[0] >> 48 & 0xff) << 3 | (words[1] & 7));
}

static bool is_function(const struct seen *s, const uint64_t words[2])
{
	return ms_perl_name_cookie(s->hek, s->stash) == (words[1] >> 48 & 0xff);
}

/* --- text --- */

/* Appends text as UTF-8: of Latin-1, if it is not `utf8`; control characters become \xNN. */
static void put_text(char *to, size_t room, const uint8_t *from, size_t len, bool utf8, bool *cut)
{
	size_t n = strlen(to);

	for (size_t i = 0; i < len; i++) {
		char one[8];
		size_t k;

		if (from[i] < 0x20 || from[i] == 0x7f)
			k = (size_t)snprintf(one, sizeof(one), "\\x%02x", from[i]);
		else if (from[i] >= 0x80 && !utf8)
			k = (size_t)snprintf(one, sizeof(one), "%c%c", 0xc0 | from[i] >> 6,
					     0x80 | (from[i] & 0x3f));
		else
			k = (size_t)snprintf(one, sizeof(one), "%c", from[i]);
		if (n + k >= room) {
			*cut = true;
			return;
		}
		memcpy(to + n, one, k + 1);
		n += k;
	}
}

/* Is all of it UTF-8? */
static bool is_utf8(const uint8_t *text, size_t len)
{
	for (size_t i = 0, more; i < len; i += more) {
		more = text[i] < 0x80                      ? 1
		       : text[i] >= 0xc2 && text[i] < 0xe0 ? 2
		       : text[i] >= 0xe0 && text[i] < 0xf0 ? 3
		       : text[i] >= 0xf0 && text[i] < 0xf5 ? 4
							   : 0;
		if (!more || more > len - i)
			return false;
		for (size_t k = 1; k < more; k++)
			if ((text[i + k] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

/* Appends the text of a HEK from byte `from` on. -EIO: it cannot be read, -EBADMSG: it is none. */
static int put_hek(const struct reader *r, uint64_t hek, size_t from, char *to, size_t room,
		   bool *cut)
{
	uint8_t text[LANG_FILE_MAX], flags;
	int32_t len;
	size_t n;

	if (hek < 4096 || !lang_read(r->mem, hek + 4, &len, sizeof(len)))
		return -EIO;
	if (len < 0 || len > 1 << 20 || (size_t)len < from)
		return -EBADMSG;
	n = (size_t)len - from;
	*cut |= n > sizeof(text);
	n = n > sizeof(text) ? sizeof(text) : n;
	if (!lang_read(r->mem, hek + 8 + from, text, n) ||
	    !lang_read(r->mem, hek + 8 + (uint32_t)len + 1, &flags, 1))
		return -EIO;
	put_text(to, room, text, n, (flags & HEK_UTF8) && is_utf8(text, n), cut);
	return 0;
}

/* The name of a stash. */
static int put_package(const struct reader *r, uint64_t stash, char *to, size_t room, bool *cut)
{
	uint64_t body, aux, max, name;
	uint32_t flags;
	int32_t count;

	if (!read_body(r, stash, SV_HV, &body, &flags))
		return -EIO;
	if (!(flags & SV_HAS_AUX))
		return -EBADMSG;
	aux = body + XPVHV_BYTES;
	if (!r->rt->perl_hv_aux) {
		if (!read_word(r, stash + 0x10, &aux) || !read_word(r, body + XPVHV_MAX, &max))
			return -EIO;
		if (max >= 1 << 28)
			return -EBADMSG;
		aux += 8 * (max + 1);
	}
	if (!read_word(r, aux + AUX_NAME, &name) ||
	    !lang_read(r->mem, aux + AUX_COUNT, &count, sizeof(count)) ||
	    (count && !read_word(r, name, &name)))
		return -EIO;
	if (!name) { /* its name has been taken away */
		put_text(to, room, (const uint8_t *)"__ANON__", 8, true, cut);
		return 0;
	}
	return put_hek(r, name, 0, to, room, cut);
}

static int put_function(const struct reader *r, enum ms_perl_kind kind, uint64_t name,
			const struct seen *s, struct lang_frame *frame)
{
	char *to = frame->function;
	const size_t room = sizeof(frame->function);
	int rc = 0;

	*to = '\0';
	if (kind == MS_PERL_MAIN || kind == MS_PERL_EVAL || kind == MS_PERL_REQUIRE || !name) {
		strcpy(to, kind == MS_PERL_MAIN      ? "(main)"
			   : kind == MS_PERL_EVAL    ? "(eval)"
			   : kind == MS_PERL_REQUIRE ? "(require)"
						     : "(unknown)");
		return 0;
	}
	if (kind == MS_PERL_FORMAT)
		strcpy(to, "format ");
	if (!s->lexical) {
		if (s->stash)
			rc = put_package(r, s->stash, to, room, &frame->cut);
		else
			strcat(to, "__ANON__");
		if (rc < 0)
			return rc;
		put_text(to, room, (const uint8_t *)"::", 2, true, &frame->cut);
	}
	return put_hek(r, s->hek, 0, to, room, &frame->cut);
}

/* A text that ends with NUL. */
static int put_string(const struct reader *r, uint64_t at, char *to, size_t room, bool *cut)
{
	uint8_t text[LANG_FILE_MAX];
	size_t n = 0;

	/* Page by page: what is behind the text may not be mapped. */
	while (n < sizeof(text)) {
		size_t part = 256 - ((at + n) & 255), end;

		part = part > sizeof(text) - n ? sizeof(text) - n : part;
		if (at < 4096 || !lang_read(r->mem, at + n, text + n, part))
			return -EIO;
		end = strnlen((char *)text + n, part);
		n += end;
		if (end < part) {
			put_text(to, room, text, n, is_utf8(text, n), cut);
			return 0;
		}
	}
	*cut = true;
	put_text(to, room, text, n, is_utf8(text, n), cut);
	return 0;
}

static int put_file(const struct reader *r, const struct seen *s, struct lang_frame *frame)
{
	uint64_t body, hek;
	uint32_t flags;
	int rc = 0;

	*frame->file = '\0';
	if (!s->file)
		return 0;
	if (r->rt->perl_threads) {
		rc = put_string(r, s->file, frame->file, sizeof(frame->file), &frame->cut);
	} else {
		if (!read_body(r, s->file, SV_GV, &body, &flags) ||
		    !read_word(r, body + 0x20, &hek))
			return -EIO;
		rc = put_hek(r, hek, 2, frame->file, sizeof(frame->file), &frame->cut);
	}
	/* "(eval 123)": another number each time it is evaluated. */
	if (rc == 0 && !strncmp(frame->file, "(eval ", 6))
		strcpy(frame->file, "(eval)");
	return rc;
}

/* Is all that the frame is made of what it was? A statement may have been freed alone: then a name is left. */
static bool read_seen(const struct reader *r, const uint64_t words[2], struct seen *s,
		      bool *ret_has_statement)
{
	enum ms_perl_kind kind = (enum ms_perl_kind)(words[0] & 7);

	*s = (struct seen){ 0 };
	*ret_has_statement =
		read_statement(r, words[0] & MS_PERL_ADDR, s) && is_statement(s, words);
	return read_function(r, kind, words[1] & MS_PERL_ADDR, s) && is_function(s, words);
}

enum lang_decoded perl_decode(const struct lang_runtime *rt, const struct lang_memory *mem,
			      const uint64_t words[2], struct lang_frame *ret_frame)
{
	const struct reader r = { rt, mem };
	enum ms_perl_kind kind = (enum ms_perl_kind)(words[0] & 7);
	uint64_t name = words[1] & MS_PERL_ADDR;
	struct lang_frame frame = { .cut = false };
	bool has_statement, still;
	struct seen s, after;
	int rc;

	if (kind < MS_PERL_MAIN || kind > MS_PERL_FORMAT)
		return LANG_DAMAGED;
	if (!read_seen(&r, words, &s, &has_statement))
		return LANG_GONE;
	rc = put_function(&r, kind, name, &s, &frame);
	if (rc == 0 && has_statement)
		rc = put_file(&r, &s, &frame);
	if (!read_seen(&r, words, &after, &still) || s.lexical != after.lexical)
		return LANG_GONE;
	if (rc < 0 && still)
		return rc == -EIO ? LANG_GONE : LANG_DAMAGED;
	if (has_statement && still) {
		frame.line = (uint32_t)s.line;
	} else if (kind == MS_PERL_EVAL) {
		strcpy(frame.file, "(eval)");
		frame.line = (uint32_t)(name >> 3);
	} else if ((kind == MS_PERL_CV && !name) || rc < 0) {
		return LANG_GONE;
	} else {
		*frame.file = '\0';
	}
	*ret_frame = frame;
	return LANG_DECODED;
}
