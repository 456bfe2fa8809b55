"""How much stack the deepest chain of calls of each BPF program takes, from a linked object.

As the verifier counts it (kernel/bpf/verifier.c, check_max_stack_depth()): each function's stack in multiples of 32
bytes, 32 at least, summed over a chain of calls. Before 6.13 that is 512 bytes at most.
"""

import struct

LIMIT = 512
SYMTAB, RELA_TYPES = 2, (4, 9)  # SHT_SYMTAB; SHT_RELA, SHT_REL
FUNC, SECTION = 2, 3            # STT_FUNC, STT_SECTION
FP = 10
CALL, MOV, ADD_IMM, LOAD_IMM64 = 0x85, 0xbf, 0x07, 0x18


class Object:
    """Functions of an object: name → (stack, names of those it calls); and which of them are programs."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        shoff, = struct.unpack_from("<Q", self.data, 40)
        size, n, _ = struct.unpack_from("<HHH", self.data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * size) for i in range(n)]
        symtab = next(s for s in self.sections if s[1] == SYMTAB)
        strings = self.sections[symtab[6]][4]
        self.symbols = []
        for at in range(symtab[4], symtab[4] + symtab[5], 24):
            name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", self.data, at)
            end = self.data.index(b"\0", strings + name)
            self.symbols.append((self.data[strings + name:end].decode(), info & 15, section, value, length))
        self.calls_at = {}  # (section, offset) → symbol
        for s in self.sections:
            if s[1] in RELA_TYPES:
                step = s[9]
                for at in range(s[4], s[4] + s[5], step):
                    where, info = struct.unpack_from("<QQ", self.data, at)
                    self.calls_at[s[7], where] = self.symbols[info >> 32]
        self.begin = {(sec, at): name for name, kind, sec, at, _ in self.symbols if kind == FUNC}
        self.functions = {name: self._function(sec, at, length)
                          for name, kind, sec, at, length in self.symbols if kind == FUNC}
        text = {i for i, s in enumerate(self.sections) if self._section_name(s) == ".text"}
        self.programs = [name for name, kind, sec, _, _ in self.symbols if kind == FUNC and sec not in text]

    def _section_name(self, section):
        index, = struct.unpack_from("<H", self.data, 62)
        at = self.sections[index][4] + section[0]
        return self.data[at:self.data.index(b"\0", at)].decode()

    def _function(self, section, begin, length):
        stack, calls, copy, at = 0, set(), None, begin
        while at < begin + length:
            code, regs, off, imm = struct.unpack_from("<BBhi", self.data, self.sections[section][4] + at)
            dst, src, kind = regs & 15, regs >> 4, code & 7
            if (kind in (2, 3) and dst == FP) or (kind == 1 and src == FP):
                stack = max(stack, -off)
            if code == ADD_IMM and dst == copy:
                stack = max(stack, -imm)
            copy = dst if code == MOV and src == FP else None
            if code == CALL and src == 1:
                calls.add(self._callee(section, at, imm))
            at += 16 if code == LOAD_IMM64 else 8
        return stack, calls

    def _callee(self, section, at, imm):
        name, kind, sec, value, _ = self.calls_at.get((section, at), ("", SECTION, section, 0, 0))
        if kind == FUNC:
            return name
        base = 0 if (section, at) in self.calls_at else at
        return self.begin[sec, value + base + (imm + 1) * 8]

    def deepest(self, name):
        """(bytes, functions) of the deepest chain from `name` on."""
        stack, calls = self.functions[name]
        below = max((self.deepest(c) for c in calls), default=(0, ()))
        return -(-max(stack, 1) // 32) * 32 + below[0], (name,) + below[1]
