/*
 * Samples of a growing profile that are put together, so that one that grows for days stays small: what it has in all, and what it
 * gained since any checkpoint, stays as it was.
 */
#ifndef MEMSCOPE_MODEL_PROFILE_FOLD_H
#define MEMSCOPE_MODEL_PROFILE_FOLD_H

#include "model/profile.h"

/*
 * Is the sample to be put where *stack and *labels say? They are its own when it is called, and other samples may be put there, too;
 * one that is there already is part of it. False: it stays.
 */
typedef bool (*profile_fold_fn)(void *ctx, uint32_t sample, stack_id *stack, labels_id *labels);

/*
 * Asks for each sample that gained nothing since any of the profile's checkpoints, so that what it gains since one is the same with
 * and without. Those that stay keep their order, but may have other numbers: nobody may hold numbers across it but the
 * profile's checkpoints, which follow. 0, and how many samples fewer there are; -EBUSY: it has times (model/sample_times.h), which
 * are by sample; -ENOMEM. All is as it was then.
 */
int profile_fold(struct profile *p, profile_fold_fn fn, void *ctx, uint32_t *ret_fewer);

#endif
