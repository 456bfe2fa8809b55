#ifndef MEMSCOPE_RUN_OUTPUT_OWN_NAMES_H
#define MEMSCOPE_RUN_OUTPUT_OWN_NAMES_H

struct run;

/* Names the places in memscope's own BPF programs; symbolize() does the rest. */
void own_names(struct run *r);

#endif
