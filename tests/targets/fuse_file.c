/*
 * A FUSE file system with one file, `code`, and a server that can stop answering.
 *
 *   fuse_file DIR FILE PROGRAM [ARGUMENT…]
 *
 * In a mount namespace of its own, DIR/code has the bytes of FILE, and PROGRAM is run with it. SIGUSR1 to the server, which is its
 * child: from then on it answers nothing, SIGUSR2: all again. It needs no library: the kernel's protocol, linux/fuse.h.
 */
#include "target.h"

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { ROOT = FUSE_ROOT_ID, CODE = 2 };

static char *file;
static size_t file_bytes;
static volatile sig_atomic_t silent;

static void on_signal(int number)
{
	silent = number == SIGUSR1;
}

static void reply(int fd, uint64_t unique, int error, const void *bytes, size_t len)
{
	static char out[sizeof(struct fuse_out_header) + (1 << 20)];
	struct fuse_out_header h = { (uint32_t)(sizeof(h) + len), error, unique };
	ssize_t n;

	memcpy(out, &h, sizeof(h));
	if (len)
		memcpy(out + sizeof(h), bytes, len);
	n = write(fd, out, h.len); /* one that was given up is not found */
	(void)n;
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.size = node == CODE ? file_bytes : 0,
		.blocks = 8,
		.mode = node == CODE ? S_IFREG | 0755 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void look_up(int fd, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out e = { .nodeid = CODE, .attr = attr_of(CODE) };

	if (in->nodeid != ROOT || strcmp(name, "code") != 0)
		reply(fd, in->unique, -ENOENT, NULL, 0);
	else
		reply(fd, in->unique, 0, &e, sizeof(e));
}

static void read_file(int fd, const struct fuse_in_header *in, const struct fuse_read_in *r)
{
	size_t len = r->offset < file_bytes ? file_bytes - r->offset : 0;

	reply(fd, in->unique, 0, file + (len ? r->offset : 0), len < r->size ? len : r->size);
}

static void answer(int fd, const struct fuse_in_header *in, const void *body)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = 31,
				      .max_write = 4096 };
	struct fuse_attr_out attr = { .attr = attr_of(in->nodeid) };
	struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };
	struct fuse_statfs_out fs = { .st = { .bsize = 4096, .namelen = 255 } };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(fd, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(fd, in, body);
		break;
	case FUSE_GETATTR:
		reply(fd, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(fd, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		read_file(fd, in, body);
		break;
	case FUSE_STATFS:
		reply(fd, in->unique, 0, &fs, sizeof(fs));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_ACCESS:
		reply(fd, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(fd, in->unique, -ENOSYS, NULL, 0);
	}
}

static __attribute__((noreturn)) void serve(int fd)
{
	static char buf[1 << 20] __attribute__((aligned(8)));
	struct sigaction sa = { .sa_handler = on_signal };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(struct fuse_in_header))
			_exit(0);
		if (!silent)
			answer(fd, (const void *)buf, buf + sizeof(struct fuse_in_header));
	}
}

static void load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	file_bytes = (size_t)st.st_size;
	file = mmap(NULL, file_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (file == MAP_FAILED)
		die(path);
	close(fd);
}

int main(int argc, char **argv)
{
	char options[128], *dir = argv[1];
	int fd;

	if (argc < 4)
		return 64;
	load(argv[2]);
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("/dev/fuse");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("unshare");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fd);
	if (mount("nothing", dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		die(dir);
	if (fork() == 0)
		serve(fd);
	close(fd);
	execv(argv[3], argv + 3);
	die(argv[3]);
}
