/* In a child process of a run. */
#ifndef MEMSCOPE_RUN_LET_GO_H
#define MEMSCOPE_RUN_LET_GO_H

/*
 * Closes what the kernel gave us descriptors of (programs, maps, probes): it would live as long as the child, should we be
 * killed, and a probe that the parent takes away would stay as long. And sockets, whose other ends would wait for the child; but
 * not what stands for the standard streams, nor the maker of cells'. And lays down the rights for the kernel's programs (base/rights.h).
 */
void let_go_of_the_kernel(void);

#endif
