/*
 * Typed ids of the interned nouns. Index 0 of each kind is the empty one: the empty string, no
 * module, no location, the empty stack, no labels. Ids are valid for the life of the dict that gave
 * them, and mean nothing in another.
 */
#ifndef MEMSCOPE_MODEL_IDS_H
#define MEMSCOPE_MODEL_IDS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct { uint32_t ix; } string_id;
typedef struct { uint32_t ix; } module_id;
typedef struct { uint32_t ix; } location_id;
typedef struct { uint32_t ix; } stack_id;
typedef struct { uint32_t ix; } labels_id;

#endif
