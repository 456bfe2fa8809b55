/*
 * A JSON document, member by member (cJSON).
 *
 * cJSON_Add… return NULL when memory runs out and take NULL, so one missing value is noticed by
 * `oom` and nothing else: look once, at the end.
 */
#ifndef MEMSCOPE_RENDER_JSON_DOC_H
#define MEMSCOPE_RENDER_JSON_DOC_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct json_doc {
	bool oom;
};

cJSON *json_object(struct json_doc *d, cJSON *in, const char *key);
cJSON *json_array(struct json_doc *d, cJSON *in, const char *key);
/* An object, behind the others of an array. */
cJSON *json_element(struct json_doc *d, cJSON *array);

/* Any bytes, made clean UTF-8; NULL is null. */
void json_text(struct json_doc *d, cJSON *in, const char *key, const char *s);
void json_number(struct json_doc *d, cJSON *in, const char *key, int64_t n);
void json_count(struct json_doc *d, cJSON *in, const char *key, uint64_t n);
/* To six digits; what is not finite is null. */
void json_real(struct json_doc *d, cJSON *in, const char *key, double x);
void json_truth(struct json_doc *d, cJSON *in, const char *key, bool b);
void json_null(struct json_doc *d, cJSON *in, const char *key);
void json_strings(struct json_doc *d, cJSON *in, const char *key, const char *const *strings,
		  uint32_t n);

#endif
