"""Writes kernels in text form, and with them the parameters and buffers of a case."""

from oracle.formats import F


def tile(shape, t):
    return "tile<" + "".join(f"{d}x" for d in shape) + t + ">"


def count(shape):
    n = 1
    for d in shape:
        n *= d
    return n


class Kernel:
    """One entry. Values are strings like "%v3"."""

    def __init__(self, case, name="k"):
        self.case, self.name = case, name
        self.params, self.lines, self.globals, self.n, self.indent = [], [], [], 0, 2
        self._block = None
        case.entry = name

    # Text
    def fresh(self):
        self.n += 1
        return f"%v{self.n}"

    def emit(self, line):
        self.lines.append("  " * self.indent + line)

    def v(self, text):
        """One operation with one result."""
        r = self.fresh()
        self.emit(f"{r} = {text}")
        return r

    def text(self):
        args = ", ".join(f"{n}: {t}" for n, t in self.params)
        head = [f"  {g}" for g in self.globals]
        return "\n".join(
            ["cuda_tile.module @m {"]
            + head
            + [f"  entry @{self.name}({args}) {{"]
            + self.lines
            + ["    return", "  }", "}", ""]
        )

    def finish(self):
        self.case.kernel = self.text().encode()
        return self.case

    # Parameters
    def ptr_param(self, name, t):
        self.params.append(("%" + name, f"tile<ptr<{t}>>"))
        return "%" + name

    def scalar(self, name, t, bits):
        self.case.scalar(t, bits)
        self.params.append(("%" + name, f"tile<{t}>"))
        return "%" + name

    def block(self):
        """Number of the tile block along x."""
        if self._block is None:
            self.emit("%bx, %by, %bz = get_tile_block_id : tile<i32>")
            self._block = "%bx"
        return self._block

    def const(self, t, value, shape=()):
        return self.v(f"constant <{t}: {value}> : {tile(shape, t)}")

    def splat(self, value, t, shape):
        """A scalar value repeated."""
        if not shape:
            return value
        one = self.v(f"reshape {value} : tile<{t}> -> {tile([1] * len(shape), t)}")
        return self.v(f"broadcast {one} : {tile([1] * len(shape), t)} -> {tile(shape, t)}")

    # Memory by pointers: element i of the tile at element base + i, base = block * count where the grid is larger than one
    def addresses(self, p, t, n, base=None):
        pt = f"ptr<{t}>"
        if n == 1 and base is None:
            return p, ()
        if n == 1:
            return self.v(f"offset {p}, {base} : tile<{pt}>, tile<i32> -> tile<{pt}>"), ()
        i = self.v(f"iota : tile<{n}xi32>")
        if base is not None:
            i = self.v(f"addi {i}, {self.splat(base, 'i32', [n])} : tile<{n}xi32>")
        ps = self.splat(p, pt, [n])
        return self.v(f"offset {ps}, {i} : {tile([n], pt)}, tile<{n}xi32> -> {tile([n], pt)}"), (n,)

    def base(self, n):
        """First element of this block, where the grid has several."""
        if self.case.grid == [1, 1, 1]:
            return None
        return self.v(f"muli {self.block()}, {self.const('i32', n)} : tile<i32>")

    def _half(self, base):
        return base and self.v(f"shri {base}, {self.const('i32', 1)} unsigned : tile<i32>")

    def load(self, p, t, shape, base=None):
        """A tile of the given shape from consecutive memory. 4-bit types are read as bytes and unpacked."""
        n = count(shape)
        if t in ("i4", "f4E2M1FN"):
            base = self._half(base)
            a, s = self.addresses(p, "i8", n // 2, base)
            x = self.fresh()
            self.emit(f"{x}, {self.fresh()} = load_ptr_tko weak {a} : {tile(s, 'ptr<i8>')} -> {tile(s, 'i8')}, token")
            if not s:
                x = self.v(f"reshape {x} : tile<i8> -> tile<1xi8>")
            x = self.v(f"unpack {x} : {tile([n // 2], 'i8')} -> {tile([n], t)}")
            return self.reshaped(x, t, [n], shape)
        a, s = self.addresses(p, t, n, base)
        x = self.fresh()
        self.emit(f"{x}, {self.fresh()} = load_ptr_tko weak {a} : {tile(s, f'ptr<{t}>')} -> {tile(s, t)}, token")
        return self.reshaped(x, t, s, shape)

    def reshaped(self, x, t, old, new):
        if list(old) == list(new):
            return x
        return self.v(f"reshape {x} : {tile(old, t)} -> {tile(new, t)}")

    def store(self, p, x, t, shape, base=None):
        n = count(shape)
        if t in ("i4", "f4E2M1FN"):
            base = self._half(base)
            x = self.reshaped(x, t, shape, [n])
            x = self.v(f"pack {x} : {tile([n], t)} -> {tile([n // 2], 'i8')}")
            t, shape, n = "i8", [n // 2], n // 2
        a, s = self.addresses(p, t, n, base)
        x = self.reshaped(x, t, shape, s)
        self.emit(f"{self.fresh()} = store_ptr_tko weak {a}, {x} : {tile(s, f'ptr<{t}>')}, {tile(s, t)} -> token")

    # Whole arrays
    def input(self, name, t, bits, shape=None, base=None):
        """A parameter, its buffer, and the loaded tile (of the whole array, or of this block's part of the given shape)."""
        mem = "i8" if t in ("i4", "f4E2M1FN") else t
        if t in ("i4", "f4E2M1FN"):
            self.case.input("i8", [bits[i] | bits[i + 1] << 4 for i in range(0, len(bits), 2)])
        else:
            self.case.input(t, bits)
        return self.load(self.ptr_param(name, mem), t, [len(bits)] if shape is None else shape, base)

    def output(self, name, x, t, shape, bits, base=None, **expect):
        """A parameter, its buffer between guards, the store, and what must be there."""
        nibbles = t in ("i4", "f4E2M1FN")
        mem = "i8" if nibbles else t
        if nibbles:
            bits = [bits[i] | bits[i + 1] << 4 for i in range(0, len(bits), 2)]
            if expect.get("free"):
                expect["free"] = [a | b for a, b in zip(expect["free"][0::2], expect["free"][1::2])]
        b = self.case.output(mem, len(bits))
        self.store(self.ptr_param(name, mem), x, t, shape, base)
        return self.case.results(b, mem, bits, **expect)


def is_float(t):
    return t in F


def paired(t, pairs):
    """The two inputs of an operation over pairs of elements."""
    return [(t, [a for a, _ in pairs]), (t, [b for _, b in pairs])]


def operation(case, text, inputs, t, out, shape=None, **expect):
    """One operation over whole arrays. inputs: (type, bits); text names the operands {0}, {1} ..., and the types of the tiles {S} (of the first
    operand) and {D} (of the result, whose elements t and out are). Without a shape all elements are one row, at most 1024 to a block.
    """
    source, n = inputs[0][0], len(inputs[0][1])
    shape = [min(n, 1024)] if shape is None else shape
    return elementwise(
        case,
        shape,
        inputs,
        [(t, out, expect)],
        lambda k, v, s: k.v(text.format(*v, S=tile(s, source), D=tile(s, t))),
        n // count(shape),
    )


def elementwise(case, shape, inputs, outputs, body, blocks=1):
    """Loads each (type, bits) of inputs, computes body(kernel, values, shape) -> one value for each (type, bits, expectation) of outputs."""
    k = Kernel(case)
    case.grid = [blocks, 1, 1]
    n = count(shape)
    base = k.base(n)
    values = [k.input(f"a{i}", t, bits, shape, base) for i, (t, bits) in enumerate(inputs)]
    results = body(k, values, shape)
    if isinstance(results, str):
        results = [results]
    for i, (r, (t, bits, how)) in enumerate(zip(results, outputs)):
        k.output(f"o{i}", r, t, shape, bits, base, **how)
    return k.finish()
