/*
 * Debug info of a hostile file, read as memscope reads it: in a child, which may die but neither
 * hang nor write nonsense. With MEMSCOPE_FUZZ_INSIDE set it is read in this process, to see what
 * libdw itself makes of it: in ten minutes (four million inputs) elfutils 0.188 of Debian 12 read
 * past the end of a buffer in dwarf_getsrclines() (corpus/dwarf/overread), although the fuzzer has
 * no coverage of the packaged library to follow. That is what the child is for.
 */
#include "elf/dwarf.h"
#include "elf/dwarf_makes.h"
#include "elf/dwarf_members.h"
#include "elf/dwarf_read.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t asked[] = { 0x2c0,  0x2c8,  0x2d4,    0x300,    0x306,
				  0x1230, 0x1240, 0x2012c0, 0x201300, UINT64_MAX };
enum { N = sizeof(asked) / sizeof(asked[0]) };

/* As calls whose result is moved to rbx, and then stored. */
static const struct result_moves *calls_of_asked(void)
{
	static struct result_moves calls[N];

	for (int i = 0; i < N; i++)
		calls[i] = (struct result_moves){
			.vaddr = asked[i],
			.n = 2,
			.move = { { MOVE_REGISTER, 3, 0, 0, asked[i], asked[i] + 3 },
				  { MOVE_SLOT, 6, -24, 0, asked[i] + 3, asked[i] + 7 } },
		};
	return calls;
}

static void inside(struct elf_file *elf)
{
	int out = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dwarf_read(elf, NULL, asked, N, 0, -1, -1, out);
	dwarf_makes_read(elf, NULL, calls_of_asked(), N, -1, out);
	dwarf_members_write(elf, NULL, -1, out);
	close(out);
}

static void in_a_child(struct elf_file *elf)
{
	_cleanup_(dwarf_lines_freep) struct dwarf_lines *lines = NULL;
	const struct dwarf_frame *frames;

	if (dwarf_lines_read(elf, NULL, asked, N, 10000, &lines, NULL) < 0)
		return;
	for (int i = 0; i < N; i++)
		if (dwarf_lines_find(lines, asked[i], &frames) > DWARF_FRAMES_MAX)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
	    elf_file_open_debug(fd, "input", &elf, NULL) < 0 || !dwarf_present(elf))
		return 0;
	if (getenv("MEMSCOPE_FUZZ_INSIDE"))
		inside(elf);
	else
		in_a_child(elf);
	return 0;
}
