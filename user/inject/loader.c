#include "inject/loader.h"

#include "preload/agent.h"

#if defined(__x86_64__)

#include <stddef.h>
#include <sys/syscall.h>

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)

extern const uint8_t loader_begin[], loader_create[], loader_thread[], loader_end[];

/* The offsets of struct agent_block, which an assembler does not know. */
#define BLOCK_DLOPEN   0
#define BLOCK_DLSYM    8
#define BLOCK_DLERROR  16
#define BLOCK_DETACH   24
#define BLOCK_CREATED  32
#define BLOCK_THREAD   40
#define BLOCK_STATE    64
#define BLOCK_TID      68
#define BLOCK_FUNCTION 80
#define BLOCK_PATH     112
#define BLOCK_BYTES    48
#define BLOCK_AGENT    3960
#define BLOCK_MUNMAP   3968
#define BLOCK_MEMFD    3976
#define BLOCK_LIBRARY  3980
#define BLOCK_FILLED   3984
#define BLOCK_NAME     3988
#define IS_AT(member, offset)                                                                      \
	_Static_assert(offsetof(struct agent_block, member) == (offset), #member)
IS_AT(dlopen, BLOCK_DLOPEN);
IS_AT(dlsym, BLOCK_DLSYM);
IS_AT(dlerror, BLOCK_DLERROR);
IS_AT(detach, BLOCK_DETACH);
IS_AT(created, BLOCK_CREATED);
IS_AT(thread, BLOCK_THREAD);
IS_AT(state, BLOCK_STATE);
IS_AT(tid, BLOCK_TID);
IS_AT(function, BLOCK_FUNCTION);
IS_AT(path, BLOCK_PATH);
IS_AT(bytes, BLOCK_BYTES);
IS_AT(agent, BLOCK_AGENT);
IS_AT(munmap, BLOCK_MUNMAP);
IS_AT(memfd, BLOCK_MEMFD);
IS_AT(library_fd, BLOCK_LIBRARY);
IS_AT(filled, BLOCK_FILLED);
IS_AT(memfd_name, BLOCK_NAME);
_Static_assert(SYS_gettid == 186, "number below");
_Static_assert(SYS_ppoll == 271, "number below");
_Static_assert(SYS_close_range == 436, "number below");
_Static_assert(SYS_memfd_create == 319, "number below");
_Static_assert(SYS_close == 3, "number below");
_Static_assert(AGENT_NOT_LOADED == 2, "number below");
_Static_assert(AGENT_FAILED == 5, "number below");
_Static_assert(AGENT_EMPTY == 6, "number below");

/* clang-format off */
asm(
    ".pushsection .rodata.loader, \"a\", @progbits\n"
    "loader_begin:\n"
    /* In the thread that was asked: pthread_create(&block->thread, NULL, function, block). */
    "loader_create:\n"
    "	mov	%rdi, %rbx\n"
    "	mov	%rsi, %rax\n"
    "	mov	%rdi, %rcx\n"
    "	lea	" VALUE(BLOCK_THREAD) "(%rdi), %rdi\n"
    "	xor	%esi, %esi\n"
    "	sub	$8, %rsp\n"
    "	call	*%rax\n"
    "	add	$8, %rsp\n"
    "	inc	%eax\n"
    "	mov	%rax, " VALUE(BLOCK_CREATED) "(%rbx)\n"
    /* memscope takes it from here; if there is none, it comes back by itself. ppoll: it
     * leaves nothing in the kernel that would be taken for the wait that was interrupted. */
    "	mov	$271, %eax\n"
    "	xor	%edi, %edi\n"
    "	xor	%esi, %esi\n"
    "	lea	loader_while(%rip), %rdx\n"
    "	xor	%r10d, %r10d\n"
    "	syscall\n"
    "	ret\n"
    "	.balign 8\n"
    "loader_while: .quad 0, 100000000\n"
    /* In the thread of ours. close_range(0, ~0, CLOSE_RANGE_UNSHARE): an empty table. */
    "loader_thread:\n"
    "	push	%rbx\n"
    "	mov	%rdi, %rbx\n"
    "	mov	$436, %eax\n"
    "	xor	%edi, %edi\n"
    "	mov	$-1, %esi\n"
    "	mov	$2, %edx\n"
    "	syscall\n"
    "	mov	" VALUE(BLOCK_AGENT) "(%rbx), %rax\n"
    "	test	%rax, %rax\n"
    "	jnz	9f\n"
    "	cmpl	$0, " VALUE(BLOCK_MEMFD) "(%rbx)\n"
    "	je	7f\n"
    /* MFD_CLOEXEC | MFD_ALLOW_SEALING; where that is refused (vm.memfd_noexec=2), with MFD_NOEXEC_SEAL,
     * which does not keep it from being mapped as code. */
    "	mov	$319, %eax\n"
    "	lea	" VALUE(BLOCK_NAME) "(%rbx), %rdi\n"
    "	mov	$3, %esi\n"
    "	syscall\n"
    "	test	%eax, %eax\n"
    "	jns	4f\n"
    "	mov	$319, %eax\n"
    "	lea	" VALUE(BLOCK_NAME) "(%rbx), %rdi\n"
    "	mov	$9, %esi\n"
    "	syscall\n"
    "4:	mov	%eax, " VALUE(BLOCK_LIBRARY) "(%rbx)\n"
    "	mov	$186, %eax\n"
    "	syscall\n"
    "	mov	%eax, " VALUE(BLOCK_TID) "(%rbx)\n"
    "	cmpl	$0, " VALUE(BLOCK_LIBRARY) "(%rbx)\n"
    "	jl	8f\n"
    "	movl	$6, " VALUE(BLOCK_STATE) "(%rbx)\n"
    /* memscope writes it. If there is none, this memory goes, and the thread with it. */
    "	push	%r12\n"
    "	mov	$2000, %r12d\n"
    "5:	cmpl	$0, " VALUE(BLOCK_FILLED) "(%rbx)\n"
    "	jne	6f\n"
    "	mov	$271, %eax\n"
    "	xor	%edi, %edi\n"
    "	xor	%esi, %esi\n"
    "	lea	loader_moment(%rip), %rdx\n"
    "	xor	%r10d, %r10d\n"
    "	syscall\n"
    "	dec	%r12d\n"
    "	jnz	5b\n"
    "	pop	%r12\n"
    "	mov	" VALUE(BLOCK_THREAD) "(%rbx), %rdi\n"
    "	call	*" VALUE(BLOCK_DETACH) "(%rbx)\n"
    "	mov	%rbx, %rdi\n"
    "	mov	" VALUE(BLOCK_BYTES) "(%rbx), %rsi\n"
    "	mov	" VALUE(BLOCK_MUNMAP) "(%rbx), %rax\n"
    "	pop	%rbx\n"
    "	jmp	*%rax\n"
    "6:	pop	%r12\n"
    "7:	lea	" VALUE(BLOCK_PATH) "(%rbx), %rdi\n"
    "	mov	$0x1002, %esi\n" /* RTLD_NOW | RTLD_NODELETE */
    "	call	*" VALUE(BLOCK_DLOPEN) "(%rbx)\n"
    "	test	%rax, %rax\n"
    "	jz	1f\n"
    "	cmpl	$0, " VALUE(BLOCK_MEMFD) "(%rbx)\n"
    "	je	0f\n"
    "	push	%rax\n"
    "	mov	" VALUE(BLOCK_LIBRARY) "(%rbx), %edi\n"
    "	mov	$3, %eax\n"
    "	syscall\n"
    "	pop	%rax\n"
    "0:\n"
    "	mov	%rax, %rdi\n"
    "	lea	" VALUE(BLOCK_FUNCTION) "(%rbx), %rsi\n"
    "	call	*" VALUE(BLOCK_DLSYM) "(%rbx)\n"
    "	test	%rax, %rax\n"
    "	jz	1f\n"
    "9:	mov	%rbx, %rdi\n"
    "	pop	%rbx\n"
    "	jmp	*%rax\n"
    "8:	movl	$5, " VALUE(BLOCK_STATE) "(%rbx)\n"
    "	mov	" VALUE(BLOCK_THREAD) "(%rbx), %rdi\n"
    "	call	*" VALUE(BLOCK_DETACH) "(%rbx)\n"
    "	xor	%eax, %eax\n"
    "	pop	%rbx\n"
    "	ret\n"
    "	.balign 8\n"
    "loader_moment: .quad 0, 5000000\n"
    /* The sentence takes the place of the path: it is the thread's, and goes with it. */
    "1:	call	*" VALUE(BLOCK_DLERROR) "(%rbx)\n"
    "	test	%rax, %rax\n"
    "	jz	3f\n"
    "	mov	%rax, %rsi\n"
    "	lea	" VALUE(BLOCK_PATH) "(%rbx), %rdi\n"
    "	mov	$1000, %ecx\n"
    "2:	lodsb\n"
    "	stosb\n"
    "	test	%al, %al\n"
    "	jz	3f\n"
    "	dec	%ecx\n"
    "	jnz	2b\n"
    "3:	mov	" VALUE(BLOCK_THREAD) "(%rbx), %rdi\n"
    "	call	*" VALUE(BLOCK_DETACH) "(%rbx)\n"
    "	mov	$186, %eax\n"
    "	syscall\n"
    "	mov	%eax, " VALUE(BLOCK_TID) "(%rbx)\n"
    "	movl	$2, " VALUE(BLOCK_STATE) "(%rbx)\n"
    "	xor	%eax, %eax\n"
    "	pop	%rbx\n"
    "	ret\n"
    "loader_end:\n"
    ".popsection\n");
/* clang-format on */

void loader_get(struct loader *ret)
{
	ret->code = loader_begin;
	ret->bytes = (size_t)(loader_end - loader_begin);
	ret->create = (size_t)(loader_create - loader_begin);
	ret->thread = (size_t)(loader_thread - loader_begin);
}

#else

void loader_get(struct loader *ret)
{
	*ret = (struct loader){ 0 };
}

#endif
