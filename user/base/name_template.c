#include "base/name_template.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { VALUE_MAX = 100 }; /* bytes: a name has room for 255 */

static int unknown_field(const char *key, size_t len, const struct name_field *fields,
			 struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf list = { 0 };

	for (const struct name_field *f = fields; f->key; f++)
		strbuf_printf(&list, "%s{%s}", f == fields ? "" : ", ", f->key);
	return err_set(e, -EINVAL, "--names: there is no {%.*s}; there are %s",
		       (int)(len < 40 ? len : 40), key, list.s ? list.s : "");
}

static void add_value(const char *value, struct strbuf *out)
{
	for (size_t i = 0; value[i] && i < VALUE_MAX; i++) {
		bool fit = (isalnum((unsigned char)value[i]) && (unsigned char)value[i] < 0x80) ||
			   (strchr("._+-@", value[i]) && (i || value[i] != '.'));

		strbuf_putc(out, fit ? value[i] : '_');
	}
}

static int add_field(const char *key, size_t len, const struct name_field *fields,
		     struct strbuf *out, struct err *e)
{
	const struct name_field *f = fields;

	while (f->key && (strlen(f->key) != len || memcmp(f->key, key, len) != 0))
		f++;
	if (!f->key)
		return unknown_field(key, len, fields, e);
	if (!f->value || !*f->value)
		return err_set(e, -EINVAL,
			       "--names: {%s} is not known of this profile, or has several values",
			       f->key);
	add_value(f->value, out);
	return 0;
}

int name_template_fill(const char *template, const struct name_field *fields, struct strbuf *out,
		       struct err *e)
{
	for (const char *s = template; *s; s++) {
		const char *end = *s == '{' ? strchr(s, '}') : NULL;
		int r;

		if (*s == '}' || (*s == '{' && !end))
			return err_set(e, -EINVAL,
				       "--names: a brace stands alone; a field is like {%s}",
				       fields->key);
		if (!end) {
			strbuf_putc(out, *s);
			continue;
		}
		r = add_field(s + 1, (size_t)(end - s - 1), fields, out, e);
		if (r < 0)
			return r;
		s = end;
	}
	if (strbuf_oom(out))
		return err_set(e, -ENOMEM, "out of memory");
	if (!out->len || out->s[out->len - 1] == '/')
		return err_set(e, -EINVAL, "--names: that is the name of no file");
	return 0;
}
