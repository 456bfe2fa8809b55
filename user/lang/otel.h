/*
 * What a program publishes for profilers, as OpenTelemetry has specified it:
 *
 *   process context    OTEP 4719 (opentelemetry-specification, oteps/profiles/4719-process-ctx.md), header version 2
 *   thread context     OTEP 4947 (oteps/profiles/4947-thread-ctx.md), otel_thread_ctx_v1; both as of 2026-09
 *
 * A process has a mapping named OTEL_CTX, which begins with a header; the payload is protobuf: a Resource, or, as the readers of
 * opentelemetry-ebpf-profiler have it, a ProcessContext, which is a Resource (1) and more attributes (2).
 *
 *   header:  "OTEL_CTX" version:4 payload_size:4 published_ns:8 payload_address:8
 *
 * published_ns is 0 while it is changed, and another one afterwards. Two attributes are for threads:
 *
 *   threadlocal.schema_version      "tlsdesc_v1_dev" or "tls_v1"; "go_pprof_labels_v1": Go's labels are meant
 *   threadlocal.attribute_key_map   names of attributes, by number; it only grows
 *
 * A thread's word otel_thread_ctx_v1 (elf/elf_tls.h) is 0, or the address of a record:
 *
 *   trace:16 span:8 valid:1 flags:1 size:2 { key:1 length:1 text:length } … of `size` bytes
 *
 * All of it belongs to the process, which may be hostile. What is here is pure: bytes in, checked records out.
 */
#ifndef MEMSCOPE_LANG_OTEL_H
#define MEMSCOPE_LANG_OTEL_H

#include "lang/lang.h"

enum {
	OTEL_KEYS_MAX = 256,
	OTEL_KEY_BYTES = 64,           /* longer names are cut */
	OTEL_PAYLOAD_MAX = 64 << 10,
	OTEL_RECORD_HEAD = 28,
	OTEL_LABELS_MAX = 16,          /* of a record: trace, span and attributes */
	OTEL_TEXT_BYTES = 256,
};

enum otel_schema {
	OTEL_SCHEMA_NONE,    /* it says nothing of threads (yet)           */
	OTEL_SCHEMA_TLS,
	OTEL_SCHEMA_OTHER,   /* labels are elsewhere, or of a later version */
};

struct otel_process {
	uint64_t published_ns;
	enum otel_schema schema;
	char schema_name[OTEL_KEY_BYTES];
	uint32_t n_keys;
	char keys[OTEL_KEYS_MAX][OTEL_KEY_BYTES];
};

/* Is it the name of such a mapping, as /proc/PID/maps has it? */
bool otel_is_context(const char *path);

/*
 * Reads the context at `at`, unless it is still that of `published_ns` (0: in any case): -EALREADY. -EAGAIN: it is being changed;
 * -ENOENT: it is none; -EOPNOTSUPP: of another version; -EBADMSG: what it says is no context; -ENOMEM.
 */
int otel_process_read(const struct lang_memory *mem, uint64_t at, uint64_t published_ns,
		      struct otel_process *ret_process);
/* The same of its payload. */
int otel_payload_decode(const uint8_t *bytes, size_t len, struct otel_process *ret_process);

struct otel_label {
	uint16_t key;                /* OTEL_TRACE, OTEL_SPAN, or the number of an attribute */
	char text[OTEL_TEXT_BYTES];  /* trace and span in hex */
};
enum { OTEL_TRACE = OTEL_KEYS_MAX, OTEL_SPAN };

struct otel_record {
	uint32_t n;
	struct otel_label labels[OTEL_LABELS_MAX];
	bool more;                   /* it has more attributes, or is not whole */
	uint16_t key_most;           /* the highest number of an attribute     */
};

/* `len` bytes of a record; of an attribute that it has more than once, the last. -EBADMSG: it is too short for one. */
int otel_record_decode(const uint8_t *bytes, size_t len, struct otel_record *ret_record);

#endif
