"""Operations that move elements: reshape, broadcast, permute, cat, extract, insert, select, iota, constants, pack and unpack."""

import itertools

from families.case import Case
from families.kernel import Kernel, count, tile
from oracle import values
from oracle.formats import F, INT, INTS, from_float, value_bits
from oracle.rng import Rng

TYPES = list(INT) + ["i4"] + list(F)
SOME = ("i1", "i8", "i64", "f16", "f32", "f8E4M3FN", "i4", "f4E2M1FN")


def data(t, n, name):
    """Distinct values as far as the type has them; NaNs among those of floats."""
    rng = Rng(f"{name} {t}")
    return [values.random_bits(t, rng) for _ in range(n)]


def index(shape, coordinate):
    i = 0
    for d, c in zip(shape, coordinate):
        i = i * d + c
    return i


def coordinates(shape):
    return itertools.product(*(range(d) for d in shape))


def dims(shape):
    return "x".join(map(str, shape)) or "scalar"


def move(op, name, t, source, target, text, pick, tier="standard"):
    """A case whose result element at a coordinate is the source element that pick(coordinate) names."""
    case = Case("shape", f"{name}.{t}", tier, [op], [t])
    k = Kernel(case)
    bits = data(t, count(source), name)
    x = k.input("a", t, bits, source)
    r = k.v(f"{op} {x}{text} : {tile(source, t)} -> {tile(target, t)}")
    k.output("o", r, t, target, [bits[index(source, pick(c))] for c in coordinates(target)])
    return k.finish()


def reshapes():
    # values of 4 bits are packed by bytes, so that they come in pairs
    for t in TYPES:
        for a, b in (
            ([2, 8], [16]),
            ([4, 4], [2, 2, 4]),
            ([1, 16], [16, 1]),
            ([8, 2, 1], [1, 4, 4]),
            ([2, 2, 2, 2], [2, 8]),
            ([16], [1, 1, 16, 1]),
        ):
            yield move(
                "reshape",
                f"reshape.{dims(a)}_to_{dims(b)}",
                t,
                a,
                b,
                "",
                lambda c, a=a, b=b: list(coordinates(a))[index(b, c)],
                "smoke" if t == "f32" and len(a) == 4 else "standard",
            )
    for t in ("i32", "f16"):
        yield move("reshape", "reshape.scalar_to_1x1", t, [], [1, 1], "", lambda c: ())
        yield move("reshape", "reshape.1_to_scalar", t, [1], [], "", lambda c: (0,))


def broadcasts():
    for t in TYPES:
        for a, b in (
            ([1, 8], [4, 8]),
            ([8, 1], [8, 4]),
            ([1, 2, 1], [4, 2, 8]),
            ([2, 4], [2, 4]),
            ([1, 1, 2, 1], [2, 2, 2, 2]),
        ):
            yield move(
                "broadcast",
                f"broadcast.{dims(a)}_to_{dims(b)}",
                t,
                a,
                b,
                "",
                lambda c, a=a: tuple(0 if d == 1 else x for d, x in zip(a, c)),
                "smoke" if t == "i8" and len(a) == 3 else "standard",
            )
    yield move("broadcast", "broadcast.1_to_1024", "i32", [1], [1024], "", lambda c: (0,))


def permutes():
    for rank, shape in ((2, [4, 8]), (3, [2, 4, 8]), (4, [2, 4, 1, 8])):
        for p in itertools.permutations(range(rank)):
            target = [shape[i] for i in p]
            for t in ("i32", "f16") if rank == 4 else SOME if rank == 3 else TYPES:

                def pick(c, p=p, rank=rank):
                    out = [0] * rank
                    for i, d in enumerate(p):
                        out[d] = c[i]
                    return tuple(out)

                yield move(
                    "permute",
                    "permute." + "".join(map(str, p)),
                    t,
                    shape,
                    target,
                    " [" + ", ".join(map(str, p)) + "]",
                    pick,
                    "smoke" if t == "f16" and p == (1, 2, 0) else "standard",
                )


def cats():
    for t in TYPES:
        for shape, dim in (([8], 0), ([4, 4], 0), ([4, 4], 1), ([2, 2, 4], 1), ([1, 2, 4], 0)):
            target = [d * 2 if i == dim else d for i, d in enumerate(shape)]
            case = Case(
                "shape",
                f"cat.{dims(shape)}.dim{dim}.{t}",
                "smoke" if t == "bf16" and dim == 1 and len(shape) == 2 else "standard",
                ["cat"],
                [t],
            )
            k = Kernel(case)
            both = [data(t, count(shape), f"cat {i}") for i in (0, 1)]
            x, y = (k.input(f"a{i}", t, bits, shape) for i, bits in enumerate(both))
            r = k.v(f"cat {x}, {y} dim = {dim} : {tile(shape, t)}, {tile(shape, t)} -> {tile(target, t)}")
            out = [
                both[c[dim] // shape[dim]][index(shape, [v % shape[dim] if i == dim else v for i, v in enumerate(c)])]
                for c in coordinates(target)
            ]
            k.output("o", r, t, target, out)
            yield k.finish()


def scalars(k, numbers):
    return [k.scalar(f"i{j}", "i32", n) for j, n in enumerate(numbers)]


def extracts():
    """Slice numbers, by constants and by arguments; every slice of some shapes."""
    for t in TYPES:
        for source, target in (([16], [4]), ([8, 8], [4, 2]), ([2, 4, 4], [2, 2, 4]), ([4, 4], [4, 4])):
            counts = [a // b for a, b in zip(source, target)]
            every = list(coordinates(counts))
            for slice_ in every if t in ("i32", "f16") else [every[-1]]:
                for constant in (False, True) if t == "i32" else (False,):
                    case = Case(
                        "shape",
                        f"extract.{dims(source)}_{dims(target)}.{''.join(map(str, slice_))}{'.constant' if constant else ''}.{t}",
                        "smoke" if t == "i32" and constant and slice_ == every[-1] and source == [8, 8] else "standard",
                        ["extract"],
                        [t],
                    )
                    k = Kernel(case)
                    bits = data(t, count(source), "extract")
                    x = k.input("a", t, bits, source)
                    at = [k.const("i32", s) for s in slice_] if constant else scalars(k, slice_)
                    r = k.v(f"extract {x}[{', '.join(at)}] : {tile(source, t)} -> {tile(target, t)}")
                    out = [
                        bits[index(source, [s * d + c for s, d, c in zip(slice_, target, co)])]
                        for co in coordinates(target)
                    ]
                    k.output("o", r, t, target, out)
                    yield k.finish()


def inserts():
    for t in TYPES:
        for small, large in (([4], [16]), ([4, 2], [8, 8]), ([2, 1, 4], [2, 4, 4]), ([4, 4], [4, 4])):
            counts = [b // a for a, b in zip(small, large)]
            every = list(coordinates(counts))
            for slice_ in every[:: max(1, len(every) // 4)] if t in ("i32", "f16") else [every[-1]]:
                case = Case(
                    "shape",
                    f"insert.{dims(small)}_{dims(large)}.{''.join(map(str, slice_))}.{t}",
                    "smoke" if t == "f16" and slice_ == every[0] and large == [8, 8] else "standard",
                    ["insert"],
                    [t],
                )
                k = Kernel(case)
                a, b = data(t, count(small), "insert a"), data(t, count(large), "insert b")
                x, y = k.input("a", t, a, small), k.input("b", t, b, large)
                r = k.v(f"insert {x}, {y}[{', '.join(scalars(k, slice_))}] : {tile(small, t)}, {tile(large, t)}")
                out = list(b)
                for co in coordinates(small):
                    out[index(large, [s * d + c for s, d, c in zip(slice_, small, co)])] = a[index(small, co)]
                k.output("o", r, t, large, out)
                k.output("same", y, t, large, b)  # the destination itself stays what it was
                yield k.finish()


def selects():
    for t in TYPES:
        if t == "f4E2M1FN":
            continue
        for shape in ([], [32], [4, 8], [2, 2, 2, 2]) if t != "i4" else ([32], [4, 8]):
            case = Case(
                "shape",
                f"select.{dims(shape)}.{t}",
                "smoke" if t == "f32" and shape == [32] else "standard",
                ["select"],
                [t],
            )
            k = Kernel(case)
            n = count(shape)
            cond, a, b = data("i1", n, f"cond {n}"), data(t, n, "select a"), data(t, n, "select b")
            c, x, y = k.input("c", "i1", cond, shape), k.input("a", t, a, shape), k.input("b", t, b, shape)
            r = k.v(f"select {c}, {x}, {y} : {tile(shape, 'i1')}, {tile(shape, t)}")
            k.output("o", r, t, shape, [p if q else s for q, p, s in zip(cond, a, b)])
            yield k.finish()


def iotas():
    for t in INT:
        for n in (1, 2, 16, 256, 1024, 65536):
            if n > 1 << INTS[t]:
                continue
            if n == 65536 and t not in ("i16", "i32"):
                continue
            case = Case("shape", f"iota.{n}.{t}", "smoke" if (t, n) == ("i8", 256) else "standard", ["iota"], [t])
            k = Kernel(case)
            r = k.v(f"iota : {tile([n], t)}")
            k.output("o", r, t, [n], list(range(n)))
            yield k.finish()


def literal(t, bits):
    """One element as a literal of the text form."""
    if t == "i1":
        return "true" if bits else "false"
    if t in INTS:
        return str(bits - (1 << INTS[t]) if bits >> (INTS[t] - 1) else bits)
    return hex(bits >> F[t].shift)


def nested(words, shape):
    if not shape:
        return words[0]
    step = len(words) // shape[0]
    return "[" + ", ".join(nested(words[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])) + "]"


def constants():
    """Literals: bit patterns, decimals that round, splats, nesting."""
    for t in TYPES:
        if t == "i4":
            continue
        for shape in ([16], [2, 8], [2, 2, 2, 2]):
            case = Case(
                "shape",
                f"constant.{dims(shape)}.{t}",
                "smoke" if t == "f64" and len(shape) == 2 else "standard",
                ["constant"],
                [t],
            )
            k = Kernel(case)
            bits = values.fill(values.edges(t), count(shape), lambda t=t: data(t, 1, "constant")[0])
            r = k.v(f"constant <{t}: {nested([literal(t, b) for b in bits], shape)}> : {tile(shape, t)}")
            k.output("o", r, t, shape, bits)
            yield k.finish()
        case = Case("shape", f"constant.splat.{t}", "standard", ["constant"], [t])
        k = Kernel(case)
        bits = values.edges(t)[2 % len(values.edges(t))]
        r = k.v(f"constant <{t}: {literal(t, bits)}> : {tile([4, 4], t)}")
        k.output("o", r, t, [4, 4], [bits] * 16)
        yield k.finish()
    words = [
        "0.1",
        "-0.0",
        "1.5e-3",
        "2049.0",
        "3.0e38",
        "1.0e-40",
        "65520.0",
        "0.3333333333333333",
        "1.",
        "-7.25E+2",
        "1.00000011920928955078125",
        "123456789.0",
        "6.103515625e-05",
        "5.9604644775390625e-08",
        "16777217.0",
        "-2.5",
    ]
    for t in ("f16", "bf16", "f32", "f64", "tf32", "f8E4M3FN", "f8E5M2", "f4E2M1FN"):
        usable = [w for w in words if F[t].inf and not F[t].saturates or abs(float(w)) <= float(F[t].top)]
        usable = (usable * 16)[:16]
        case = Case("shape", f"constant.decimal.{t}", "smoke" if t == "f16" else "standard", ["constant"], [t])
        k = Kernel(case)
        r = k.v(f"constant <{t}: [{', '.join(usable)}]> : {tile([16], t)}")
        k.output("o", r, t, [16], [from_float(t, float(w)) for w in usable], rule="exact")
        yield k.finish()


def to_bytes(t, bits):
    """Memory order of pack: little-endian elements, small ones from the low bits up."""
    n = 32 if t == "tf32" else value_bits(t)
    total = 0
    for i, b in enumerate(bits):
        total |= b << (i * n)
    return list(total.to_bytes(len(bits) * n // 8, "little"))


def packs():
    for t in TYPES:
        n = 32 if t == "tf32" else value_bits(t)
        if n == 8:
            continue
        for size in (16, 64):
            bits = data(t, size, f"pack {size}")
            raw = to_bytes(t, bits)
            case = Case(
                "pack",
                f"pack.{size}.{t}",
                "smoke" if size == 16 and t in ("i1", "i4", "f16") else "standard",
                ["pack"],
                [t],
            )
            k = Kernel(case)
            x = k.input("a", t, bits, [size])
            r = k.v(f"pack {x} : {tile([size], t)} -> {tile([len(raw)], 'i8')}")
            k.output("o", r, "i8", [len(raw)], raw)
            yield k.finish()
            case = Case(
                "pack",
                f"unpack.{size}.{t}",
                "smoke" if size == 16 and t in ("i1", "i4", "f16") else "standard",
                ["unpack"],
                [t],
            )
            k = Kernel(case)
            x = k.input("a", "i8", raw, [len(raw)])
            r = k.v(f"unpack {x} : {tile([len(raw)], 'i8')} -> {tile([size], t)}")
            k.output("o", r, t, [size], bits)
            yield k.finish()
        for other in TYPES:
            m = 32 if other == "tf32" else value_bits(other)
            if m == 8 or other == t or m < n:
                continue
            size = max(8 // n, 1) * 32 if n >= 8 else 256
            if size * n % m or t == "tf32" or other == "tf32":
                continue
            bits = data(t, size, "repack")
            raw = to_bytes(t, bits)
            whole = int.from_bytes(bytes(raw), "little")
            out = [whole >> (i * m) & ((1 << m) - 1) for i in range(size * n // m)]
            case = Case("pack", f"repack.{t}.{other}", "standard", ["pack", "unpack"], [t, other])
            k = Kernel(case)
            x = k.input("a", t, bits, [size])
            x = k.v(f"pack {x} : {tile([size], t)} -> {tile([len(raw)], 'i8')}")
            r = k.v(f"unpack {x} : {tile([len(raw)], 'i8')} -> {tile([len(out)], other)}")
            k.output("o", r, other, [len(out)], out)
            yield k.finish()


def shape():
    for part in (reshapes, broadcasts, permutes, cats, extracts, inserts, selects, iotas, constants):
        yield from part()


FAMILIES = {"shape": shape, "pack": packs}
