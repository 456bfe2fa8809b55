/*
 * What nobody holds: nodes that no root reaches. One to which no other such node points is a direct leak; what is reached
 * from it alone is an indirect one, which goes when the direct one is mended (LeakSanitizer's terms). Nodes that hold each other
 * in a ring, and that nobody else holds, are one direct leak: its node with the least number stands for it.
 */
#ifndef MEMSCOPE_HEAP_GRAPH_LEAKS_H
#define MEMSCOPE_HEAP_GRAPH_LEAKS_H

#include "heap/graph/graph.h"

enum graph_leak { GRAPH_HELD, GRAPH_LEAK_DIRECT, GRAPH_LEAK_INDIRECT };

/* For each node, of graph_reached()'s answer: an enum graph_leak in a byte. NULL: out of memory. The caller's. */
uint8_t *graph_leaks(const struct graph *g, const uint8_t *reached);

#endif
