/*
 * What a store answers, whoever it is: a verdict, with a text that fits in its room, and how many profiles it left out only where it took
 * the others. First byte: protocol; then status:2; the next byte has the length of the content type.
 */
#include "run/push/protocol.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_answer a = { .status = 200 };
	struct bytes in = bytes_of(data, size), type;
	uint64_t rejected = UINT64_MAX;
	uint8_t first = 0, len = 0;
	char why[96], *text, *body;
	enum push_verdict verdict;
	uint16_t status = 0;

	bytes_u8(&in, &first);
	bytes_u16(&in, &status);
	bytes_u8(&in, &len);
	bytes_take(&in, len < in.len ? len : in.len, &type);
	a.status = status % 1000;
	a.too_long = first & 2;
	text = strndup((const char *)type.data, type.len);
	a.type = text;
	body = malloc(in.len + 1); /* with a 0 behind it, as it comes */
	memcpy(body, in.data, in.len);
	body[in.len] = '\0';
	a.body = bytes_of(body, in.len);
	memset(why, 'x', sizeof(why));
	verdict = push_protocols[first & 1].verdict(&a, &rejected, why, sizeof(why));
	if (verdict > PUSH_REFUSED || strnlen(why, sizeof(why)) == sizeof(why) ||
	    (verdict != PUSH_TAKEN && rejected) || (verdict != PUSH_TAKEN && !*why) ||
	    (verdict == PUSH_TAKEN && (a.status < 200 || a.status > 299)))
		abort();
	free(body);
	free(text);
	return 0;
}
