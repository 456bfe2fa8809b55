/*
 * A number of this host's own, by which hosts that are started together do what they do every so often apart from each other.
 */
#ifndef MEMSCOPE_BASE_HOST_SHARE_H
#define MEMSCOPE_BASE_HOST_SHARE_H

/*
 * In [0, 1): the same until the next boot, for all processes and containers of the host; of many hosts evenly spread. It is made of
 * the kernel's boot id and the host's name: an image may bring the same /etc/machine-id everywhere, a restored snapshot the same boot id.
 */
double host_share(void);
/* … of what a host is known by. */
double host_share_of(const char *words);

#endif
