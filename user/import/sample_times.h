/*
 * When the samples of a run's profile came: SOURCE.times.csv.gz beside SOURCE.pb.gz, as render/formats/times.c writes it:
 *
 *   # 57 samples, in bins of 1 s
 *   sample,second,cpu/nanoseconds,samples/count
 *   0,0,120988734,12
 *   3,0,10101010,1
 *   0,1,80805808,8
 *
 * `sample` is a sample's place in the profile, from 0; `second` is where its bin begins, since the profile's begin. Rows are in the order of
 * time, and of a bin by sample. Values that are all 0 have no row. What a sample has in all rows is its value in the profile.
 */
#ifndef MEMSCOPE_IMPORT_SAMPLE_TIMES_H
#define MEMSCOPE_IMPORT_SAMPLE_TIMES_H

#include "base/bytes.h"
#include "base/err.h"
#include "model/profile.h"

/*
 * Gives `p` the times in `csv` (not gzipped); `name` is for sentences. -EBADMSG: it is no such table, or not of this
 * profile. `p` has none then.
 */
int sample_times_parse(struct profile *p, struct bytes csv, const char *name, struct err *e);

/*
 * The same from the file beside `path`, a profile's. -ENOENT with a sentence where there is none.
 */
int sample_times_read_beside(struct profile *p, const char *path, struct err *e);

#endif
