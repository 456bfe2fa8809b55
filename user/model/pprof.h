/*
 * pprof (profile.proto): the profile on disk; memscope has no private format.
 *
 * Written through protobuf-c. Mapping 1 is the main binary (`main_module`, else the image that has
 * the name of most samples' process, else the one most samples' roots belong to), build IDs as
 * pprof expects them (hex), default_sample_type set, labels as in profile.h, and with them the errors of
 * values that are estimates, as in value_error.h. Names are cleaned on
 * the way out: protobuf text must be UTF-8, and viewers print it to terminals. Read back: anyone's
 * pprof, gzipped or not; bounded (no allocation larger than the input justifies), every index
 * checked, -EBADMSG with a sentence for what is not a profile.
 */
#ifndef MEMSCOPE_MODEL_PPROF_H
#define MEMSCOPE_MODEL_PPROF_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/sink.h"
#include "model/profile.h"

/* Uncompressed bytes into `out` (the caller asks the sink for gzip). */
int pprof_write(const struct profile *p, module_id main_module, struct sink *out, struct err *e);

/*
 * `data` may be gzipped. Interns into `d`; `name` is for error sentences.
 *
 * Addresses stay as the file has them: those of the ELF file where memscope wrote it, those of
 * the process where others did. A location with lines comes back as dict_location_lines(), one
 * without as dict_location(). Where no default type is set, it is the last, as other viewers do.
 * -EFBIG: more than a thousand million bytes, or blown up by compression beyond reason.
 */
int pprof_read(struct dict *d, const void *data, size_t len, const char *name,
	       struct profile **ret_profile, struct err *e);

/* When it began, in ns since the Epoch, and how long it lasted: nothing else is read. -EBADMSG with a sentence; so is one
 * that does not say when it began. */
int pprof_read_times(const void *data, size_t len, const char *name, int64_t *ret_begin_ns, int64_t *ret_ns,
		     struct err *e);

/* True when uncompressed bytes have the outer form of a profile throughout. */
bool pprof_recognise(struct bytes data);

#endif
