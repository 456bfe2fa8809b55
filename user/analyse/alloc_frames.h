/*
 * Heap dumps show where inside the allocator each sample was taken. That is left off, as jeprof and
 * pprof leave it off, so that what is allocated is the self value of the function that asked: of the
 * innermost frames of a stack, up to the outermost one that is an allocator's (its library, malloc,
 * operator new and their kin). A stack of nothing else stays.
 */
#ifndef MEMSCOPE_ANALYSE_ALLOC_FRAMES_H
#define MEMSCOPE_ANALYSE_ALLOC_FRAMES_H

#include "model/profile.h"

/* `*ret_asked`: the same profile without those frames, of the same dict. The places of `p` have names. 0 or -ENOMEM. */
int alloc_frames_left_off(const struct profile *p, struct profile **ret_asked);
/* Replaces `*p` by that. */
int alloc_frames_trim(struct profile **p);

#endif
