"""An independent reader of pprof: the wire format of protocol buffers and the messages of
profile.proto, from the specification alone (github.com/google/pprof/blob/main/proto/profile.proto),
sharing no code with the writer it checks.

read(path) gives a Profile. Anything that is not a well-formed profile is a ValueError: every index
must resolve, every sample must have one value per type, ids must be unique and not 0.
"""

import gzip
import struct
from collections import namedtuple

Frame = namedtuple("Frame", "name module file line address")
Sample = namedtuple("Sample", "frames labels values")  # frames: leaf first, inlined callees first
Mapping = namedtuple("Mapping", "start limit offset path build_id")


def varint(b, i):
    value = shift = 0
    while True:
        if i >= len(b) or shift > 63:
            raise ValueError("truncated or oversized varint")
        value |= (b[i] & 0x7F) << shift
        i += 1
        if not b[i - 1] & 0x80:
            return value & (2**64 - 1), i
        shift += 7


def fields(b):
    """(field number, value) pairs of one message; value is an int, or bytes for type 2."""
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        wire = key & 7
        if wire == 0:
            value, i = varint(b, i)
        elif wire == 2:
            n, i = varint(b, i)
            value, i = b[i:i + n], i + n
        elif wire in (1, 5):
            n = 8 if wire == 1 else 4
            value, i = struct.unpack_from("<Q" if n == 8 else "<I", b, i)[0], i + n
        else:
            raise ValueError(f"wire type {wire}")
        if i > len(b):
            raise ValueError("field runs past its message")
        yield key >> 3, value


def signed(v):
    return v - 2**64 if v >= 2**63 else v


def message(b):
    """Field number → list of values."""
    out = {}
    for number, value in fields(b):
        out.setdefault(number, []).append(value)
    return out


def one(m, number, default=0):
    return m.get(number, [default])[-1]


def numbers(m, number):
    """A repeated integer field, packed or not."""
    out = []
    for v in m.get(number, []):
        if isinstance(v, int):
            out.append(v)
            continue
        i = 0
        while i < len(v):
            n, i = varint(v, i)
            out.append(n)
    return out


class Profile:
    """types: ["samples/count", …]; samples: [Sample]; mappings: {id: Mapping}; and what pprof
    keeps beside them (time_ns, duration_ns, period_type, period, default_type, comments)."""

    def __init__(self, raw):
        top = message(raw)
        self.strings = [s.decode("utf-8") for s in top.get(6, [])]
        if not self.strings or self.strings[0] != "":
            raise ValueError("the first string must be the empty one")
        self.types = [self._type(b) for b in top.get(1, [])]
        self.mappings = self._table(top.get(3, []), self._mapping, "mapping")
        self.functions = self._table(top.get(5, []), self._function, "function")
        self.locations = self._table(top.get(4, []), self._location, "location")
        self.samples = [self._sample(b) for b in top.get(2, [])]
        self.time_ns = signed(one(top, 9))
        self.duration_ns = signed(one(top, 10))
        self.period_type = self._type(one(top, 11)) if 11 in top else None
        self.period = signed(one(top, 12))
        self.comments = [self._string(i) for i in numbers(top, 13)]
        self.default_type = self._string(one(top, 14))

    def _string(self, i):
        if i >= len(self.strings):
            raise ValueError(f"string {i} of {len(self.strings)}")
        return self.strings[i]

    def _type(self, b):
        m = message(b)
        return f"{self._string(one(m, 1))}/{self._string(one(m, 2))}"

    def _table(self, rows, parse, what):
        out = {}
        for b in rows:
            m = message(b)
            ident = one(m, 1)
            if ident == 0 or ident in out:
                raise ValueError(f"{what} id {ident} is 0 or used twice")
            out[ident] = parse(m)
        return out

    def _mapping(self, m):
        return Mapping(one(m, 2), one(m, 3), one(m, 4), self._string(one(m, 5)),
                       self._string(one(m, 6)))

    def _function(self, m):
        return self._string(one(m, 2)), self._string(one(m, 4))

    def _location(self, m):
        mapping = one(m, 2)
        if mapping and mapping not in self.mappings:
            raise ValueError(f"mapping {mapping} does not exist")
        module = self.mappings[mapping].path if mapping else ""
        address, frames = one(m, 3), []
        for b in m.get(4, []):
            line = message(b)
            function = one(line, 1)
            if function not in self.functions:
                raise ValueError(f"function {function} does not exist")
            name, file = self.functions[function]
            frames.append(Frame(name, module, file, signed(one(line, 2)), address))
        return frames or [Frame("", module, "", 0, address)]

    def _sample(self, b):
        m = message(b)
        frames = []
        for ident in numbers(m, 1):
            if ident not in self.locations:
                raise ValueError(f"location {ident} does not exist")
            frames += self.locations[ident]
        values = [signed(v) for v in numbers(m, 2)]
        if len(values) != len(self.types):
            raise ValueError(f"{len(values)} values for {len(self.types)} types")
        labels = {}
        for lb in m.get(3, []):
            label = message(lb)
            text = self._string(one(label, 2))
            labels[self._string(one(label, 1))] = text if text else signed(one(label, 3))
        return Sample(frames, labels, values)

    def select(self, function=None, **labels):
        """The samples with `function` anywhere on their stack, and with these labels."""
        for s in self.samples:
            if function is not None and all(f.name != function for f in s.frames):
                continue
            if all(s.labels.get(k) == v for k, v in labels.items()):
                yield s

    def sum(self, value_type, function=None, **labels):
        """Total of one value type ("blocked/nanoseconds") over select()."""
        i = self.types.index(value_type)
        return sum(s.values[i] for s in self.select(function, **labels))


def read(path):
    with gzip.open(path, "rb") as f:
        return Profile(f.read())
