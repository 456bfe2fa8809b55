#include "render/json_doc.h"

#include "base/strbuf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void check(struct json_doc *d, const void *item)
{
	if (!item)
		d->oom = true;
}

cJSON *json_object(struct json_doc *d, cJSON *in, const char *key)
{
	cJSON *o = cJSON_AddObjectToObject(in, key);

	check(d, o);
	return o;
}

cJSON *json_array(struct json_doc *d, cJSON *in, const char *key)
{
	cJSON *a = cJSON_AddArrayToObject(in, key);

	check(d, a);
	return a;
}

cJSON *json_element(struct json_doc *d, cJSON *array_item)
{
	cJSON *o = cJSON_CreateObject();

	check(d, o);
	if (o && !cJSON_AddItemToArray(array_item, o)) {
		cJSON_Delete(o);
		d->oom = true;
		return NULL;
	}
	return o;
}

static cJSON *clean_string(struct json_doc *d, const char *s)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	cJSON *item;

	strbuf_add_clean(&b, s, strlen(s));
	item = cJSON_CreateString(b.s ? b.s : "");
	check(d, item);
	if (strbuf_oom(&b))
		d->oom = true;
	return item;
}

void json_text(struct json_doc *d, cJSON *in, const char *key, const char *s)
{
	cJSON *item = s ? clean_string(d, s) : cJSON_CreateNull();

	check(d, item);
	if (item && !cJSON_AddItemToObject(in, key, item)) {
		cJSON_Delete(item);
		d->oom = true;
	}
}

/* As it is: a double would round it beyond 2^53. */
void json_number(struct json_doc *d, cJSON *in, const char *key, int64_t n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%lld", (long long)n);
	check(d, cJSON_AddRawToObject(in, key, digits));
}

void json_count(struct json_doc *d, cJSON *in, const char *key, uint64_t n)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	check(d, cJSON_AddRawToObject(in, key, digits));
}

void json_real(struct json_doc *d, cJSON *in, const char *key, double x)
{
	char digits[40];

	if (!isfinite(x)) {
		check(d, cJSON_AddNullToObject(in, key));
		return;
	}
	snprintf(digits, sizeof(digits), "%.6g", x);
	check(d, cJSON_AddRawToObject(in, key, digits));
}

void json_truth(struct json_doc *d, cJSON *in, const char *key, bool b)
{
	check(d, cJSON_AddBoolToObject(in, key, b));
}

void json_null(struct json_doc *d, cJSON *in, const char *key)
{
	check(d, cJSON_AddNullToObject(in, key));
}

void json_strings(struct json_doc *d, cJSON *in, const char *key, const char *const *strings,
		  uint32_t n)
{
	cJSON *list = json_array(d, in, key);

	for (uint32_t i = 0; i < n; i++) {
		cJSON *item = clean_string(d, strings[i]);

		if (item && !cJSON_AddItemToArray(list, item)) {
			cJSON_Delete(item);
			d->oom = true;
		}
	}
}
