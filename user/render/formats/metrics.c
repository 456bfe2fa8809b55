#include "render/formats/metrics.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The weight of one part of Accept: "TYPE[;PARAMETER…][;q=WEIGHT]". */
static double weight(const char *part, size_t len)
{
	double q = 1;

	for (size_t i = 0; i < len; i++) {
		if (part[i] != ';')
			continue;
		while (++i < len && (part[i] == ' ' || part[i] == '\t'))
			;
		if (i + 1 < len && (part[i] == 'q' || part[i] == 'Q') && part[i + 1] == '=')
			q = strtod(part + i + 2, NULL);
		i--;
	}
	return q >= 0 && q <= 1 ? q : 0;
}

static bool is_type(const char *part, size_t len, const char *type)
{
	size_t n = strlen(type);

	return len >= n && strncasecmp(part, type, n) == 0 &&
	       (len == n || part[n] == ';' || part[n] == ' ' || part[n] == '\t');
}

/* A type that is named goes before one that a wildcard stands for. */
enum metrics_format metrics_accepted(const char *accept)
{
	double openmetrics = 0, text = 0;
	bool named = false;

	while (accept && *accept) {
		size_t len;
		double q;

		accept += strspn(accept, " \t,");
		len = strcspn(accept, ",");
		q = weight(accept, len);
		if (is_type(accept, len, "application/openmetrics-text")) {
			openmetrics = fmax(openmetrics, q);
		} else if (is_type(accept, len, "text/plain")) {
			text = named ? fmax(text, q) : q;
			named = true;
		} else if (!named &&
			   (is_type(accept, len, "text/*") || is_type(accept, len, "*/*"))) {
			text = fmax(text, q);
		}
		accept += len;
	}
	return openmetrics > 0 && openmetrics >= text ? METRICS_OPENMETRICS : METRICS_TEXT;
}

const char *metrics_content_type(enum metrics_format format)
{
	return format == METRICS_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* Both formats escape \ and newlines, in labels and in OpenMetrics' help " too. */
static void add_escaped(struct strbuf *out, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\n') {
			strbuf_puts(out, "\\n");
			continue;
		}
		if (*text == '\\' || (quotes && *text == '"'))
			strbuf_putc(out, '\\');
		strbuf_putc(out, *text);
	}
}

static void add_label(struct strbuf *out, const struct metric_label *label)
{
	struct strbuf clean = { 0 };

	strbuf_add_clean(&clean, label->value, strlen(label->value));
	strbuf_printf(out, "%s=\"", label->name);
	add_escaped(out, clean.s ? clean.s : "", true);
	strbuf_putc(out, '"');
	strbuf_free(&clean);
}

static void add_name(struct strbuf *out, const char *name, const char *ending,
		     const struct metric_label *labels, uint32_t n_labels)
{
	strbuf_printf(out, "%s%s", name, ending);
	for (uint32_t i = 0; i < n_labels; i++) {
		strbuf_putc(out, i ? ',' : '{');
		add_label(out, &labels[i]);
	}
	strbuf_puts(out, n_labels ? "} " : " ");
}

/* In the text format a counter is called as its series are. */
void metrics_family(struct strbuf *out, enum metrics_format format,
		    const struct metric_family *family)
{
	const char *ending = family->counter && format == METRICS_TEXT ? "_total" : "";

	strbuf_printf(out, "# HELP %s%s ", family->name, ending);
	add_escaped(out, family->help, format == METRICS_OPENMETRICS);
	strbuf_printf(out, "\n# TYPE %s%s %s\n", family->name, ending,
		      family->counter ? "counter" : "gauge");
}

void metrics_series(struct strbuf *out, enum metrics_format format,
		    const struct metric_family *family, const struct metric_label *labels,
		    uint32_t n_labels, double value, double created_s)
{
	if (!isfinite(value))
		return;
	add_name(out, family->name, family->counter ? "_total" : "", labels, n_labels);
	strbuf_printf(out, "%.17g\n", value);
	if (!family->counter || format != METRICS_OPENMETRICS || !isfinite(created_s))
		return;
	add_name(out, family->name, "_created", labels, n_labels);
	strbuf_printf(out, "%.3f\n", created_s);
}

void metrics_end(struct strbuf *out, enum metrics_format format)
{
	if (format == METRICS_OPENMETRICS)
		strbuf_puts(out, "# EOF\n");
}
