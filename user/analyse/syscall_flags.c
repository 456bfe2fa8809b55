#include "analyse/syscall_flags.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N(name)                                                                                    \
	{                                                                                          \
#name, (uint32_t)(name)                                                            \
	}
#define END                                                                                        \
	{                                                                                          \
		NULL, 0                                                                            \
	}

/* clang-format off */
static const struct flag_name open_names[] = {
	N(O_RDONLY), N(O_WRONLY), N(O_RDWR), N(O_CREAT), N(O_EXCL), N(O_NOCTTY), N(O_TRUNC), N(O_APPEND), N(O_NONBLOCK),
	N(O_SYNC), N(O_DSYNC), N(O_ASYNC), N(O_DIRECT), { "O_LARGEFILE", 0100000 }, N(O_NOFOLLOW), N(O_NOATIME),
	N(O_CLOEXEC), N(O_PATH), N(O_TMPFILE), N(O_DIRECTORY), END };
static const struct flag_name prot_names[] = { N(PROT_NONE), N(PROT_READ), N(PROT_WRITE), N(PROT_EXEC), N(PROT_GROWSDOWN), N(PROT_GROWSUP), END };
static const struct flag_name map_names[] = {
	{ "MAP_FILE", 0 }, N(MAP_SHARED), N(MAP_PRIVATE), N(MAP_SHARED_VALIDATE), N(MAP_FIXED), N(MAP_ANONYMOUS), N(MAP_GROWSDOWN),
	N(MAP_DENYWRITE), N(MAP_EXECUTABLE), N(MAP_LOCKED), N(MAP_NORESERVE), N(MAP_POPULATE), N(MAP_NONBLOCK), N(MAP_STACK),
	N(MAP_HUGETLB), N(MAP_SYNC), N(MAP_FIXED_NOREPLACE), END };
static const struct flag_name mremap_names[] = { N(MREMAP_MAYMOVE), N(MREMAP_FIXED), END };
static const struct flag_name msync_names[] = { N(MS_ASYNC), N(MS_INVALIDATE), N(MS_SYNC), END };
static const struct flag_name madvise_names[] = {
	N(MADV_NORMAL), N(MADV_RANDOM), N(MADV_SEQUENTIAL), N(MADV_WILLNEED), N(MADV_DONTNEED), N(MADV_FREE), N(MADV_REMOVE),
	N(MADV_DONTFORK), N(MADV_DOFORK), N(MADV_MERGEABLE), N(MADV_UNMERGEABLE), N(MADV_HUGEPAGE), N(MADV_NOHUGEPAGE),
	N(MADV_DONTDUMP), N(MADV_DODUMP), N(MADV_WIPEONFORK), N(MADV_KEEPONFORK), N(MADV_COLD), N(MADV_PAGEOUT), END };
static const struct flag_name at_names[] = {
	N(AT_SYMLINK_NOFOLLOW), N(AT_REMOVEDIR), N(AT_SYMLINK_FOLLOW), N(AT_NO_AUTOMOUNT), N(AT_EMPTY_PATH), END };
static const struct flag_name access_names[] = { N(F_OK), N(R_OK), N(W_OK), N(X_OK), END };
static const struct flag_name faccess_names[] = { N(AT_EACCESS), N(AT_SYMLINK_NOFOLLOW), N(AT_EMPTY_PATH), END };
static const struct flag_name statx_names[] = {
	{ "AT_STATX_SYNC_AS_STAT", 0 }, N(AT_SYMLINK_NOFOLLOW), N(AT_NO_AUTOMOUNT), N(AT_EMPTY_PATH), N(AT_STATX_FORCE_SYNC), N(AT_STATX_DONT_SYNC), END };
static const struct flag_name statx_mask_names[] = { N(STATX_ALL), N(STATX_BASIC_STATS), N(STATX_TYPE), N(STATX_MODE), N(STATX_NLINK), N(STATX_UID), N(STATX_GID), N(STATX_ATIME), N(STATX_MTIME), N(STATX_CTIME), N(STATX_INO), N(STATX_SIZE), N(STATX_BLOCKS), N(STATX_BTIME), { "STATX_MNT_ID", 0x1000 }, END };
static const struct flag_name seek_names[] = { N(SEEK_SET), N(SEEK_CUR), N(SEEK_END), N(SEEK_DATA), N(SEEK_HOLE), END };
static const struct flag_name family_names[] = {
	N(AF_UNSPEC), N(AF_UNIX), N(AF_INET), N(AF_INET6), N(AF_NETLINK), N(AF_PACKET), N(AF_BLUETOOTH), N(AF_ALG), N(AF_VSOCK), { "AF_XDP", 44 }, END };
static const struct flag_name socket_names[] = {
	N(SOCK_STREAM), N(SOCK_DGRAM), N(SOCK_RAW), N(SOCK_RDM), N(SOCK_SEQPACKET), N(SOCK_DCCP), N(SOCK_PACKET), N(SOCK_CLOEXEC), N(SOCK_NONBLOCK), END };
static const struct flag_name protocol_names[] = { { "IPPROTO_IP", 0 }, { "IPPROTO_ICMP", 1 }, { "IPPROTO_TCP", 6 }, { "IPPROTO_UDP", 17 }, { "IPPROTO_ICMPV6", 58 }, { "IPPROTO_RAW", 255 }, END };
static const struct flag_name accept_names[] = { N(SOCK_CLOEXEC), N(SOCK_NONBLOCK), END };
static const struct flag_name msg_names[] = {
	N(MSG_OOB), N(MSG_PEEK), N(MSG_DONTROUTE), N(MSG_CTRUNC), N(MSG_TRUNC), N(MSG_DONTWAIT), N(MSG_EOR), N(MSG_WAITALL),
	N(MSG_CONFIRM), N(MSG_ERRQUEUE), N(MSG_NOSIGNAL), N(MSG_MORE), N(MSG_WAITFORONE), N(MSG_FASTOPEN), N(MSG_CMSG_CLOEXEC), END };
static const struct flag_name shut_names[] = { N(SHUT_RD), N(SHUT_WR), N(SHUT_RDWR), END };
static const struct flag_name level_names[] = { N(SOL_SOCKET), { "SOL_IP", 0 }, { "SOL_TCP", 6 }, { "SOL_UDP", 17 }, { "SOL_IPV6", 41 }, { "SOL_NETLINK", 270 }, END };
static const struct flag_name fcntl_names[] = {
	N(F_DUPFD), N(F_GETFD), N(F_SETFD), N(F_GETFL), N(F_SETFL), N(F_GETLK), N(F_SETLK), N(F_SETLKW), N(F_SETOWN), N(F_GETOWN),
	N(F_DUPFD_CLOEXEC), N(F_SETPIPE_SZ), N(F_GETPIPE_SZ), { "F_ADD_SEALS", 1033 }, { "F_GET_SEALS", 1034 }, { "F_OFD_GETLK", 36 }, { "F_OFD_SETLK", 37 }, { "F_OFD_SETLKW", 38 }, END };
static const struct flag_name fd_names[] = { N(FD_CLOEXEC), END };
static const struct flag_name flock_names[] = { N(LOCK_SH), N(LOCK_EX), N(LOCK_UN), N(LOCK_NB), END };
static const struct flag_name ioctl_names[] = {
	/* terminals */
	N(TCGETS), N(TCSETS), N(TCSETSW), N(TCSETSF), N(TCGETA), N(TCSETA), N(TCSETAW), N(TCSETAF), N(TCSBRK), N(TCXONC), N(TCFLSH), N(TCSBRKP),
	N(TCGETX), N(TCSETX), N(TIOCEXCL), N(TIOCNXCL), N(TIOCSCTTY), N(TIOCGPGRP), N(TIOCSPGRP), N(TIOCOUTQ), N(TIOCSTI), N(TIOCGWINSZ), N(TIOCSWINSZ),
	N(TIOCMGET), N(TIOCMBIS), N(TIOCMBIC), N(TIOCMSET), N(TIOCGSOFTCAR), N(TIOCSSOFTCAR), N(TIOCLINUX), N(TIOCCONS), N(TIOCGSERIAL), N(TIOCSSERIAL),
	N(TIOCPKT), N(TIOCNOTTY), N(TIOCSETD), N(TIOCGETD), N(TIOCSBRK), N(TIOCCBRK), N(TIOCGSID), N(TIOCGRS485), N(TIOCSRS485), N(TIOCGPTN), N(TIOCSPTLCK),
	N(TIOCGDEV), N(TIOCSIG), N(TIOCVHANGUP), N(TIOCGPKT), N(TIOCGPTLCK), N(TIOCGEXCL), N(TIOCGPTPEER), N(TIOCMIWAIT), N(TIOCGICOUNT),
	{ "TCGETS2", 0x802c542a }, { "TCSETS2", 0x402c542b }, { "TCSETSW2", 0x402c542c }, { "TCSETSF2", 0x402c542d },
	/* any descriptor */
	N(FIONREAD), N(FIONBIO), N(FIONCLEX), N(FIOCLEX), N(FIOASYNC), N(FIOQSIZE),
	/* files, disks */
	N(FIBMAP), N(FIGETBSZ), N(FIFREEZE), N(FITHAW), N(FITRIM), N(FICLONE), N(FICLONERANGE), N(FIDEDUPERANGE), N(FS_IOC_GETFLAGS), N(FS_IOC_SETFLAGS),
	N(FS_IOC_GETVERSION), N(FS_IOC_FIEMAP), N(FS_IOC_FSGETXATTR), N(FS_IOC_FSSETXATTR), N(BLKROSET), N(BLKROGET), N(BLKRRPART), N(BLKGETSIZE), N(BLKFLSBUF),
	N(BLKRASET), N(BLKRAGET), N(BLKSSZGET), N(BLKBSZGET), N(BLKBSZSET), N(BLKGETSIZE64), N(BLKDISCARD), N(BLKPBSZGET), N(BLKDISCARDZEROES), N(BLKZEROOUT),
	{ "LOOP_SET_FD", 0x4c00 }, { "LOOP_CLR_FD", 0x4c01 }, { "LOOP_GET_STATUS64", 0x4c05 }, { "LOOP_CTL_GET_FREE", 0x4c82 },
	/* sockets, network devices */
	N(SIOCATMARK), N(FIOSETOWN), N(SIOCSPGRP), N(FIOGETOWN), N(SIOCGPGRP), { "SIOCGSTAMP_OLD", 0x8906 }, { "SIOCGSTAMPNS_OLD", 0x8907 },
	N(SIOCADDRT), N(SIOCDELRT), N(SIOCGIFNAME), N(SIOCSIFLINK), N(SIOCGIFCONF), N(SIOCGIFFLAGS), N(SIOCSIFFLAGS), N(SIOCGIFADDR), N(SIOCSIFADDR), N(SIOCGIFDSTADDR),
	N(SIOCSIFDSTADDR), N(SIOCGIFBRDADDR), N(SIOCSIFBRDADDR), N(SIOCGIFNETMASK), N(SIOCSIFNETMASK), N(SIOCGIFMETRIC), N(SIOCSIFMETRIC), N(SIOCGIFMTU),
	N(SIOCSIFMTU), N(SIOCSIFNAME), N(SIOCSIFHWADDR), N(SIOCGIFHWADDR), N(SIOCGIFINDEX), N(SIOCGIFTXQLEN), N(SIOCSIFTXQLEN), N(SIOCDARP), N(SIOCGARP),
	N(SIOCSARP), N(SIOCGIFMAP), N(SIOCSIFMAP), N(SIOCBONDENSLAVE), N(SIOCBRADDBR), N(SIOCBRDELBR), N(SIOCBRADDIF), N(SIOCBRDELIF), N(SIOCSHWTSTAMP), N(SIOCGHWTSTAMP),
	N(SIOCETHTOOL), N(SIOCGMIIPHY), N(SIOCGMIIREG), N(SIOCINQ), { "TUNSETIFF", 0x400454ca }, { "TUNSETPERSIST", 0x400454cb }, { "TUNGETIFF", 0x800454d2 },
	/* perf events, random numbers, namespaces */
	N(PERF_EVENT_IOC_ENABLE), N(PERF_EVENT_IOC_DISABLE), N(PERF_EVENT_IOC_REFRESH), N(PERF_EVENT_IOC_RESET), N(PERF_EVENT_IOC_PERIOD), N(PERF_EVENT_IOC_SET_OUTPUT),
	N(PERF_EVENT_IOC_SET_FILTER), N(PERF_EVENT_IOC_ID), N(PERF_EVENT_IOC_SET_BPF), N(PERF_EVENT_IOC_PAUSE_OUTPUT), N(RNDGETENTCNT), N(RNDADDTOENTCNT), N(RNDADDENTROPY), N(NS_GET_USERNS), N(NS_GET_PARENT), N(NS_GET_NSTYPE), END };
static const struct flag_name pipe_names[] = { N(O_NONBLOCK), N(O_DIRECT), N(O_CLOEXEC), END };
static const struct flag_name signalfd_names[] = { { "SFD_CLOEXEC", O_CLOEXEC }, { "SFD_NONBLOCK", O_NONBLOCK }, END };
static const struct flag_name timerfd_names[] = { { "TFD_CLOEXEC", O_CLOEXEC }, { "TFD_NONBLOCK", O_NONBLOCK }, END };
static const struct flag_name inotify_names[] = { { "IN_CLOEXEC", O_CLOEXEC }, { "IN_NONBLOCK", O_NONBLOCK }, END };
static const struct flag_name so_names[] = {
	N(SO_DEBUG), N(SO_REUSEADDR), N(SO_TYPE), N(SO_ERROR), N(SO_DONTROUTE), N(SO_BROADCAST), N(SO_SNDBUF), N(SO_RCVBUF), N(SO_KEEPALIVE), N(SO_OOBINLINE),
	N(SO_PRIORITY), N(SO_LINGER), N(SO_REUSEPORT), N(SO_PASSCRED), N(SO_PEERCRED), N(SO_RCVLOWAT), N(SO_SNDLOWAT), { "SO_RCVTIMEO_OLD", 20 }, { "SO_SNDTIMEO_OLD", 21 },
	N(SO_BINDTODEVICE), N(SO_ATTACH_FILTER), N(SO_DETACH_FILTER), { "SO_TIMESTAMP_OLD", 29 }, N(SO_ACCEPTCONN), N(SO_PEERSEC), N(SO_SNDBUFFORCE), N(SO_RCVBUFFORCE), N(SO_PASSSEC),
	N(SO_MARK), N(SO_PROTOCOL), N(SO_DOMAIN), N(SO_INCOMING_CPU), N(SO_ZEROCOPY), N(SO_COOKIE), N(SO_PEERGROUPS), END };
static const struct flag_name tcpopt_names[] = {
	N(TCP_NODELAY), N(TCP_MAXSEG), N(TCP_CORK), N(TCP_KEEPIDLE), N(TCP_KEEPINTVL), N(TCP_KEEPCNT), N(TCP_SYNCNT), N(TCP_LINGER2), N(TCP_DEFER_ACCEPT),
	N(TCP_WINDOW_CLAMP), N(TCP_INFO), N(TCP_QUICKACK), N(TCP_CONGESTION), N(TCP_USER_TIMEOUT), N(TCP_FASTOPEN), END };
static const struct flag_name ipopt_names[] = { N(IP_TOS), N(IP_TTL), N(IP_HDRINCL), N(IP_OPTIONS), N(IP_RECVERR), N(IP_PKTINFO), N(IP_MTU_DISCOVER), N(IP_MTU), N(IP_FREEBIND), N(IP_TRANSPARENT),
	N(IP_MULTICAST_IF), N(IP_MULTICAST_TTL), N(IP_MULTICAST_LOOP), N(IP_ADD_MEMBERSHIP), N(IP_DROP_MEMBERSHIP), N(IP_BIND_ADDRESS_NO_PORT), END };
static const struct flag_name ipv6opt_names[] = { N(IPV6_V6ONLY), N(IPV6_UNICAST_HOPS), N(IPV6_MULTICAST_IF), N(IPV6_MULTICAST_HOPS), N(IPV6_MULTICAST_LOOP), N(IPV6_RECVERR), N(IPV6_RECVPKTINFO), N(IPV6_TCLASS), END };
static const struct flag_name scm_names[] = { { "SCM_RIGHTS", 1 }, { "SCM_CREDENTIALS", 2 }, { "SO_TIMESTAMP_OLD", 29 }, { "SO_TIMESTAMPNS_OLD", 35 }, { "SO_TIMESTAMPING_OLD", 37 }, END };
/* As asm/signal.h has them, in the order of strace. */
static const struct flag_name sigaction_names[] = {
	{ "SA_RESTORER", 0x04000000 }, { "SA_ONSTACK", 0x08000000 }, { "SA_RESTART", 0x10000000 }, { "SA_NODEFER", 0x40000000 }, { "SA_RESETHAND", 0x80000000 },
	{ "SA_SIGINFO", 4 }, { "SA_NOCLDSTOP", 1 }, { "SA_NOCLDWAIT", 2 }, { "SA_EXPOSE_TAGBITS", 0x800 }, END };
static const struct flag_name clone_names[] = {
	N(CLONE_VM), N(CLONE_FS), N(CLONE_FILES), N(CLONE_SIGHAND), N(CLONE_PIDFD), N(CLONE_PTRACE), N(CLONE_VFORK), N(CLONE_PARENT),
	N(CLONE_THREAD), N(CLONE_NEWNS), N(CLONE_SYSVSEM), N(CLONE_SETTLS), N(CLONE_PARENT_SETTID), N(CLONE_CHILD_CLEARTID),
	N(CLONE_DETACHED), N(CLONE_UNTRACED), N(CLONE_CHILD_SETTID), N(CLONE_NEWCGROUP), N(CLONE_NEWUTS), N(CLONE_NEWIPC),
	N(CLONE_NEWUSER), N(CLONE_NEWPID), N(CLONE_NEWNET), N(CLONE_IO), { "SIGCHLD", 17 }, END };
static const struct flag_name wait_names[] = { N(WNOHANG), N(WUNTRACED), N(WCONTINUED), N(WNOWAIT), { "__WCLONE", 0x80000000 }, { "__WALL", 0x40000000 }, END };
static const struct flag_name waitid_names[] = { N(WNOHANG), N(WSTOPPED), N(WEXITED), N(WCONTINUED), N(WNOWAIT), END };
static const struct flag_name idtype_names[] = { { "P_ALL", 0 }, { "P_PID", 1 }, { "P_PGID", 2 }, { "P_PIDFD", 3 }, END };
static const struct flag_name futex_names[] = {
	N(FUTEX_WAIT), N(FUTEX_WAKE), N(FUTEX_FD), N(FUTEX_REQUEUE), N(FUTEX_CMP_REQUEUE), N(FUTEX_WAKE_OP), N(FUTEX_LOCK_PI), N(FUTEX_UNLOCK_PI),
	N(FUTEX_TRYLOCK_PI), N(FUTEX_WAIT_BITSET), N(FUTEX_WAKE_BITSET), N(FUTEX_WAIT_REQUEUE_PI), N(FUTEX_CMP_REQUEUE_PI),
	N(FUTEX_WAIT_PRIVATE), N(FUTEX_WAKE_PRIVATE), N(FUTEX_REQUEUE_PRIVATE), N(FUTEX_CMP_REQUEUE_PRIVATE), N(FUTEX_WAKE_OP_PRIVATE), N(FUTEX_LOCK_PI_PRIVATE), N(FUTEX_UNLOCK_PI_PRIVATE),
	{ "FUTEX_WAIT_BITSET_PRIVATE", FUTEX_WAIT_BITSET_PRIVATE }, { "FUTEX_WAKE_BITSET_PRIVATE", FUTEX_WAKE_BITSET_PRIVATE },
	{ "FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME", FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME },
	{ "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME", FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME }, END };
static const struct flag_name epoll_names[] = { N(EPOLL_CTL_ADD), N(EPOLL_CTL_DEL), N(EPOLL_CTL_MOD), END };
static const struct flag_name epoll_create_names[] = { N(EPOLL_CLOEXEC), END };
static const struct flag_name epoll_event_names[] = {
	{ "EPOLLIN", 1 }, { "EPOLLPRI", 2 }, { "EPOLLOUT", 4 }, { "EPOLLRDNORM", 0x40 }, { "EPOLLRDBAND", 0x80 }, { "EPOLLWRNORM", 0x100 }, { "EPOLLWRBAND", 0x200 },
	{ "EPOLLMSG", 0x400 }, { "EPOLLERR", 8 }, { "EPOLLHUP", 0x10 }, { "EPOLLRDHUP", 0x2000 }, { "EPOLLEXCLUSIVE", 1u << 28 },
	{ "EPOLLWAKEUP", 1u << 29 }, { "EPOLLONESHOT", 1u << 30 }, { "EPOLLET", 1u << 31 }, END };
static const struct flag_name poll_names[] = {
	N(POLLIN), N(POLLPRI), N(POLLOUT), N(POLLRDNORM), N(POLLWRNORM), N(POLLRDBAND), N(POLLWRBAND), N(POLLERR), N(POLLHUP), N(POLLNVAL), N(POLLMSG), N(POLLRDHUP), END };
static const struct flag_name eventfd_names[] = { { "EFD_SEMAPHORE", EFD_SEMAPHORE }, { "EFD_CLOEXEC", EFD_CLOEXEC }, { "EFD_NONBLOCK", EFD_NONBLOCK }, END };
static const struct flag_name clock_names[] = {
	N(CLOCK_REALTIME), N(CLOCK_MONOTONIC), N(CLOCK_PROCESS_CPUTIME_ID), N(CLOCK_THREAD_CPUTIME_ID), N(CLOCK_MONOTONIC_RAW),
	N(CLOCK_REALTIME_COARSE), N(CLOCK_MONOTONIC_COARSE), N(CLOCK_BOOTTIME), N(CLOCK_REALTIME_ALARM), N(CLOCK_BOOTTIME_ALARM), N(CLOCK_TAI), END };
static const struct flag_name timer_names[] = { { "TIMER_ABSTIME", 1 }, END };
static const struct flag_name rlimit_names[] = {
	{ "RLIMIT_CPU", 0 }, { "RLIMIT_FSIZE", 1 }, { "RLIMIT_DATA", 2 }, { "RLIMIT_STACK", 3 }, { "RLIMIT_CORE", 4 }, { "RLIMIT_RSS", 5 },
	{ "RLIMIT_NPROC", 6 }, { "RLIMIT_NOFILE", 7 }, { "RLIMIT_MEMLOCK", 8 }, { "RLIMIT_AS", 9 }, { "RLIMIT_LOCKS", 10 }, { "RLIMIT_SIGPENDING", 11 },
	{ "RLIMIT_MSGQUEUE", 12 }, { "RLIMIT_NICE", 13 }, { "RLIMIT_RTPRIO", 14 }, { "RLIMIT_RTTIME", 15 }, END };
static const struct flag_name random_names[] = { N(GRND_NONBLOCK), N(GRND_RANDOM), { "GRND_INSECURE", 4 }, END };
static const struct flag_name how_names[] = { { "SIG_BLOCK", 0 }, { "SIG_UNBLOCK", 1 }, { "SIG_SETMASK", 2 }, END };
static const struct flag_name rename_names[] = { { "RENAME_NOREPLACE", 1 }, { "RENAME_EXCHANGE", 2 }, { "RENAME_WHITEOUT", 4 }, END };
static const struct flag_name who_names[] = { { "RUSAGE_SELF", 0 }, { "RUSAGE_CHILDREN", 0xffffffff }, { "RUSAGE_THREAD", 1 }, END };
static const struct flag_name memfd_names[] = { N(MFD_CLOEXEC), N(MFD_ALLOW_SEALING), N(MFD_HUGETLB), END };
static const struct flag_name fadvise_names[] = { N(POSIX_FADV_NORMAL), N(POSIX_FADV_RANDOM), N(POSIX_FADV_SEQUENTIAL), N(POSIX_FADV_WILLNEED), N(POSIX_FADV_DONTNEED), N(POSIX_FADV_NOREUSE), END };
static const struct flag_name prctl_names[] = {
	N(PR_SET_PDEATHSIG), N(PR_GET_DUMPABLE), N(PR_SET_DUMPABLE), N(PR_SET_KEEPCAPS), N(PR_SET_NAME), N(PR_GET_NAME), N(PR_SET_SECCOMP), N(PR_CAPBSET_READ),
	N(PR_CAPBSET_DROP), N(PR_SET_NO_NEW_PRIVS), N(PR_SET_CHILD_SUBREAPER), N(PR_SET_VMA), N(PR_SET_MM), END };
static const struct flag_name splice_names[] = { { "SPLICE_F_MOVE", 1 }, { "SPLICE_F_NONBLOCK", 2 }, { "SPLICE_F_MORE", 4 }, { "SPLICE_F_GIFT", 8 }, END };
static const struct flag_name fallocate_names[] = { { "FALLOC_FL_KEEP_SIZE", 1 }, { "FALLOC_FL_PUNCH_HOLE", 2 }, { "FALLOC_FL_COLLAPSE_RANGE", 8 }, { "FALLOC_FL_ZERO_RANGE", 16 }, END };
static const struct flag_name arch_names[] = { { "ARCH_SET_GS", 0x1001 }, { "ARCH_SET_FS", 0x1002 }, { "ARCH_GET_FS", 0x1003 }, { "ARCH_GET_GS", 0x1004 }, END };

#define SET(n, mask, unknown) { #n, mask, unknown, n##_names }
static const struct flag_set sets[] = {
	SET(open, O_ACCMODE, "O_???"), SET(prot, 0, "PROT_???"), SET(map, 3, "MAP_???"), SET(mremap, 0, "MREMAP_???"), SET(msync, 0, "MS_???"),
	SET(madvise, 0, "MADV_???"), SET(at, 0, "AT_???"), SET(access, 0, "?_OK"), SET(faccess, 0, "AT_???"), SET(statx, 0, "AT_???"), SET(statx_mask, 0, "STATX_???"),
	SET(seek, 0, "SEEK_???"), SET(family, 0, "AF_???"), SET(socket, 0xf, "SOCK_???"), SET(accept, 0, "SOCK_???"), SET(protocol, 0, "IPPROTO_???"), SET(msg, 0, "MSG_???"),
	SET(shut, 0, "SHUT_???"), SET(level, 0, "SOL_???"), SET(fcntl, 0, "F_???"), SET(fd, 0, "FD_???"), SET(flock, 0, "LOCK_???"), SET(ioctl, 0, NULL), SET(pipe, 0, "O_???"), SET(signalfd, 0, "SFD_???"), SET(timerfd, 0, "TFD_???"), SET(inotify, 0, "IN_???"), SET(so, 0, "SO_???"), SET(tcpopt, 0, "TCP_???"), SET(ipopt, 0, "IP_???"), SET(ipv6opt, 0, "IPV6_???"), SET(scm, 0, "SCM_???"), SET(sigaction, 0, "SA_???"),
	SET(clone, 0xff, "CLONE_???"), SET(wait, 0, "W???"), SET(waitid, 0, "W???"), SET(idtype, 0, "P_???"), SET(futex, 0, "FUTEX_???"), SET(epoll, 0, "EPOLL_CTL_???"),
	SET(epoll_create, 0, "EPOLL_???"), SET(epoll_event, 0, "EPOLL???"), SET(poll, 0, "POLL???"), SET(eventfd, 0, "EFD_???"), SET(clock, 0, "CLOCK_???"), SET(timer, 0, "TIMER_???"),
	SET(rlimit, 0, "RLIMIT_???"), SET(random, 0, "GRND_???"), SET(how, 0, "SIG_???"), SET(rename, 0, "RENAME_???"), SET(who, 0, "RUSAGE_???"), SET(memfd, 0, "MFD_???"),
	SET(fadvise, 0, "POSIX_FADV_???"), SET(prctl, 0, "PR_???"), SET(splice, 0, "SPLICE_F_???"), SET(fallocate, 0, "FALLOC_FL_???"), SET(arch, 0, "ARCH_???"),
};
/* clang-format on */

const struct flag_set *flag_set_named(const char *name, uint32_t len)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strlen(sets[i].name) == len && !strncmp(sets[i].name, name, len))
			return &sets[i];
	return NULL;
}

/* The value among the flags, which comes first. */
static const char *value_name(const struct flag_set *set, uint64_t flags)
{
	for (const struct flag_name *n = set->names; n->name; n++)
		if (n->value == (flags & set->mask) && !(n->value & ~set->mask))
			return n->name;
	return NULL;
}

void flags_put(struct strbuf *b, const struct flag_set *set, uint64_t flags)
{
	const char *value = set->mask && (set->names->value == 0 || flags & set->mask)
				    ? value_name(set, flags)
				    : NULL;
	uint64_t left = value ? flags & ~set->mask : flags;
	bool none = true;

	if (!flags && set->names->value == 0) {
		strbuf_puts(b, set->names->name);
		return;
	}
	if (value && (flags & set->mask || !strcmp(set->name, "open"))) {
		strbuf_puts(b, value);
		none = false;
	}
	for (const struct flag_name *n = set->names; n->name; n++) {
		if (!n->value || (left & n->value) != n->value ||
		    (set->mask && !(n->value & ~set->mask) && value))
			continue;
		strbuf_puts(b, none ? "" : "|");
		strbuf_puts(b, n->name);
		left &= ~n->value;
		none = false;
	}
	if (left && none && set->unknown)
		strbuf_printf(b, "%#llx /* %s */", (unsigned long long)left, set->unknown);
	else if (left || none)
		strbuf_printf(b, left ? "%s%#llx" : "%s0", none ? "" : "|",
			      (unsigned long long)left);
}

const char *flag_value_name(const struct flag_set *set, uint64_t value)
{
	for (const struct flag_name *n = set->names; n->name; n++)
		if (n->value == value)
			return n->name;
	return NULL;
}

void flag_value_put(struct strbuf *b, const struct flag_set *set, uint64_t value)
{
	const char *name = flag_value_name(set, value);

	if (name) {
		strbuf_puts(b, name);
		return;
	}
	strbuf_hex(b, value);
	if (set->unknown)
		strbuf_printf(b, " /* %s */", set->unknown);
}
