/*
 * Names of files from a template: "profile-{source}-{pid}.pb.gz". What stands in braces is a field; its value may be anybody's
 * text, and becomes one word that is fit for a file name.
 */
#ifndef MEMSCOPE_BASE_NAME_TEMPLATE_H
#define MEMSCOPE_BASE_NAME_TEMPLATE_H

#include "base/err.h"
#include "base/strbuf.h"

struct name_field {
	const char *key, *value; /* value NULL or "": it is not known */
};

/*
 * Fills `template` in, with fields up to one without a key. In values, what is no letter, digit, or one of "._+-@", becomes '_', and
 * so does a dot at their begin: a value never leads to another directory. Those of the template itself are the caller's.
 * -EINVAL with a sentence: there is no such field, its value is not known, a brace stands alone, or the name ends in '/'.
 */
int name_template_fill(const char *template, const struct name_field *fields, struct strbuf *out, struct err *e);

#endif
