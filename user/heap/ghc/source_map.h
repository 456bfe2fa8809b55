/*
 * Where in the sources of a GHC program its code comes from: what -finfo-table-map (9.2 and later) has put into the program, from the
 * list that its run-time system keeps of it (rts/IPE.c, rts/include/rts/IPE.h), whose head is the variable ipeBufferList:
 *
 *   9.2         {126 × list:8  count:1  next:8}, each list {entry:8 … 0}, an entry {info:8  table name, closure type, type, label, module,
 *               file:span: 8 each, texts}
 *   later       {next:8  texts:8  count:8}, then entries {info:8  numbers of the same texts: 4 each}; the position as one text, or as
 *               two (file, span) with 4 bytes to fill up
 *   still later {next:8  compressed:8  count:8  infos:8  entries:8  their bytes:8  texts:8  their bytes:8}, entries without `info`, with the
 *               module among their texts and 4 bytes to fill up
 *   newest      … {unit:4  module:4} behind that, for all entries, which have neither; before entries and texts there may be a word
 *               0x4950450049504500
 *
 * A number is where in the texts it begins. `compressed`: entries and texts are frames of zstd. Which form it is shows in whether it holds
 * together: infos are code, texts printable. A program that has looked into the map itself (GHC.Stack.CCS.whereFrom) has moved it
 * to a hash table: it has no list then.
 */
#ifndef MEMSCOPE_HEAP_GHC_SOURCE_MAP_H
#define MEMSCOPE_HEAP_GHC_SOURCE_MAP_H

#include "heap/ghc/ghc.h"

enum { GHC_SOURCE_MAX = 256 };

struct ghc_source {
	char label[GHC_SOURCE_MAX];    /* "load"; ""                 */
	char module[GHC_SOURCE_MAX];   /* "Main"; ""                 */
	char position[GHC_SOURCE_MAX]; /* "app/Main.hs:12:5-30"; ""  */
};

/*
 * Calls fn() for each info pointer of the map that wanted() is true of. `head`: the address of ipeBufferList. How many entries the map has; 0:
 * none, or of no form that is known.
 */
uint64_t ghc_source_map_read(struct ghc *g, uint64_t head, bool (*wanted)(void *ctx, uint64_t info),
			     void (*fn)(void *ctx, uint64_t info, const struct ghc_source *source), void *ctx);

#endif
