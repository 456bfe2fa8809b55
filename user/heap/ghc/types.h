/* What objects of GHC are called: constructors by their description, code by its symbols or the program's map of positions. */
#ifndef MEMSCOPE_HEAP_GHC_TYPES_H
#define MEMSCOPE_HEAP_GHC_TYPES_H

#include "heap/ghc/images.h"
#include "heap/ghc/walk.h"
#include "heap/snapshot/types.h"

/* Each info table that has objects gets its type in `use`. -ENOMEM. */
int ghc_types_name(const struct ghc_walk *walk, const struct ghc_images *images, struct types *types);

#endif
