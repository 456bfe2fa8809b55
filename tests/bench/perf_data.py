"""A perf.data with one sample for each place of some files: so that perf names exactly what others do.

Piped form (tools/perf/Documentation/perf.data-file-format.txt): an attribute event, then the records as
the kernel writes them (perf_event_open(2)). Each file is mapped where none else is; a sample has its
address and a call chain of that one address, for perf shows inlined calls in chains only.
"""

import struct

ATTR, SAMPLE, COMM, MMAP2 = 64, 9, 3, 10
USER = 2                      # PERF_RECORD_MISC_USER
IP, TID, TIME, CALLCHAIN = 1, 2, 4, 32
CONTEXT_USER = 2 ** 64 - 512
PID = 77
FLAGS = 1 << 8 | 1 << 9 | 1 << 18 | 1 << 23  # mmap, comm, sample_id_all, mmap2
PAGE = 4096


def record(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def padded(text):
    raw = text.encode("utf-8", "surrogateescape") + b"\0"
    return raw + b"\0" * (-len(raw) % 8)


def write(path, modules):
    """modules: (file, [(vaddr, offset, size) of its executable segments], [vaddr of each place])"""
    when = struct.pack("<IIQ", PID, PID, 1)
    with open(path, "wb") as f:
        attr = struct.pack("<IIQQQQQ", 1, 112, 0, 1, IP | TID | TIME | CALLCHAIN, 0, FLAGS)
        f.write(b"PERFILE2" + struct.pack("<Q", 16))
        f.write(record(ATTR, attr + b"\0" * (112 - len(attr)) + struct.pack("<Q", 1)))
        f.write(record(COMM, struct.pack("<II", PID, PID) + padded("places") + when))
        base, chosen = 0x10000000000, []
        for file, segments, places in modules:
            end = 0
            for vaddr, off, size in segments:
                first = vaddr & -PAGE
                length = (vaddr - first + size + PAGE - 1) & -PAGE
                body = struct.pack("<IIQQQIIQQII", PID, PID, base + first, length, off & -PAGE,
                                   0, 0, 0, 0, 5, 2)
                f.write(record(MMAP2, body + padded(file) + when, USER))
                end = max(end, first + length)
            chosen += [base + a for a in places]
            base = (base + end + (1 << 30)) & -(1 << 30)
        for addr in chosen:
            f.write(record(SAMPLE, struct.pack("<QIIQQQQ", addr, PID, PID, 2, 2, CONTEXT_USER, addr),
                           USER))
