/* Table: the protocols of --push. */
#include "run/push/protocol.h"

#include "base/strbuf.h"

#include <string.h>

/* clang-format off */
const struct push_protocol push_protocols[] = {
	{ "pyroscope", "/push.v1.PusherService/Push",
	  { "Content-Type: application/proto", "Connect-Protocol-Version: 1" },
	  push_pyroscope_body, push_pyroscope_verdict },
	{ "otlp", "/v1development/profiles",
	  { "Content-Type: application/x-protobuf", "Content-Encoding: gzip" },
	  push_otlp_body, push_otlp_verdict },
	{ 0 },
};
/* clang-format on */

enum { SHOWN = 160 };

/* The body's begin, on one line, where it is text of some kind. */
static void add_body(const struct http_answer *a, struct strbuf *out)
{
	size_t len = a->body.len < SHOWN ? a->body.len : SHOWN;

	if (!len || memchr(a->body.data, '\0', len))
		return;
	for (size_t i = 0; i < len; i++)
		if (a->body.data[i] < ' ' && !strchr("\t\r\n", a->body.data[i]))
			return;
	strbuf_puts(out, ": ");
	while (len && strchr("\r\n\t ", a->body.data[len - 1]))
		len--;
	strbuf_add_clean(out, (const char *)a->body.data, len);
}

enum push_verdict push_status_verdict(const struct http_answer *a, char *why, size_t cap)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	*why = '\0';
	if (a->status >= 200 && a->status < 300)
		return PUSH_TAKEN;
	strbuf_printf(&text, "status %d", a->status);
	add_body(a, &text);
	snprintf(why, cap, "%s", text.s ? text.s : "");
	if (a->status < 400) /* another address; it is not followed */
		return PUSH_LATER;
	/* Whoever may not, or not so often, has not sent what is wrong. */
	if (a->status == 401 || a->status == 403 || a->status == 407 || a->status == 408 ||
	    a->status == 429)
		return PUSH_LATER;
	if (a->status == 502 || a->status == 503 || a->status == 504)
		return PUSH_LATER;
	return a->status >= 500 ? PUSH_FAILED : PUSH_REFUSED;
}
