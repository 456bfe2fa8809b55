#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void assert_hash(const void *data, size_t len, const char *hex)
{
	uint8_t hash[SHA256_BYTES];
	char got[2 * SHA256_BYTES + 1];

	sha256(data, len, hash);
	for (int i = 0; i < SHA256_BYTES; i++)
		sprintf(got + 2 * i, "%02x", hash[i]);
	assert_string_equal(got, hex);
}

/* NIST, "Examples with Intermediate Values", SHA256. */
static void published_examples_have_their_hashes(void **state)
{
	(void)state;
	assert_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
		    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_bytes_have_theirs(void **state)
{
	char *a = malloc(1000000);

	(void)state;
	assert_non_null(a);
	memset(a, 'a', 1000000);
	assert_hash(a, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(a);
}

/* 55 bytes still leave room for the length in the last block, 56 do not. As `sha256sum` has them. */
static void lengths_around_a_block_are_padded_right(void **state)
{
	char a[128];

	(void)state;
	memset(a, 'a', sizeof(a));
	assert_hash(a, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
	assert_hash(a, 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
	assert_hash(a, 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
	assert_hash(a, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
	assert_hash(a, 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_examples_have_their_hashes),
		cmocka_unit_test(a_million_bytes_have_theirs),
		cmocka_unit_test(lengths_around_a_block_are_padded_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
