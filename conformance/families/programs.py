"""Whole algorithms, as a frontend would write them: matrix products over ragged sizes, softmax, layer norm, attention, histogram, sorting and more."""

from fractions import Fraction

import mpmath

from families.case import Case
from families.kernel import Kernel, tile
from families.mma import limit_of, small_ints
from families.reduce_scan import identity_text, single, written
from families.views import Array, View
from oracle import values
from oracle.formats import F, INTS, from_fraction, to_fraction
from oracle.rng import Rng


def real(t, x):
    """mpf or Fraction to bits."""
    if isinstance(x, Fraction):
        return from_fraction(t, x, sign=0)
    s, m, e, _ = x._mpf_
    return F[t].round(s, int(m), e) if m else 0


def numbers(t, bits):
    return (
        [to_fraction(t, b) for b in bits] if t in F else [b - (1 << INTS[t]) if b >> (INTS[t] - 1) else b for b in bits]
    )


def view(k, p, array, shape, pad=None, name="n", **how):
    v = View(array, shape, pad=pad, **how)
    tv = array.emit(k, p, names=name)
    return v, v.emit(k, tv)


def load(k, v, name, at):
    x = k.fresh()
    types = "tile<i32>"
    k.emit(
        f"{x}, {k.fresh()} = load_view_tko weak {name}[{', '.join(at)}] : {v.type_text()}, {types} -> {tile(v.tile, v.array.t)}, token"
    )
    return x


def store(k, v, name, x, at):
    k.emit(
        f"{k.fresh()} = store_view_tko weak {x}, {name}[{', '.join(at)}] : {tile(v.tile, v.array.t)}, {v.type_text()}, tile<i32> -> token"
    )


def matmul(t, acc_t, m, n, k_size, tm, tn, tk, dynamic, tier="standard"):
    """C = A B with a loop over k; overhanging tiles are zero-padded."""
    case = Case(
        "programs",
        f"matmul.{m}x{n}x{k_size}.tile_{tm}x{tn}x{tk}.{'dynamic' if dynamic else 'static'}.{t}.{acc_t}",
        tier,
        ["mmai" if t == "i8" else "mmaf", "load_view_tko", "for"],
        [t],
    )
    rng = Rng(f"matmul {t} {m} {n} {k_size}")
    limit = 11 if t == "i8" else limit_of(t, acc_t, k_size)
    if t == "i8":
        a, b = [rng.bits(8) for _ in range(m * k_size)], [rng.bits(8) for _ in range(k_size * n)]
    else:
        a, b = small_ints(t, rng, m * k_size, limit), small_ints(t, rng, k_size * n, limit)
    ia, ib = [int(x) for x in numbers(t, a)], [int(x) for x in numbers(t, b)]
    columns = [ib[j::n] for j in range(n)]
    out = [sum(x * y for x, y in zip(ia[i * k_size : (i + 1) * k_size], c)) for i in range(m) for c in columns]
    out = [v & 0xFFFFFFFF for v in out] if t == "i8" else [from_fraction(acc_t, Fraction(v), sign=0) for v in out]
    case.grid = [-(-m // tm), -(-n // tn), 1]
    k = Kernel(case)
    d = (0, 1) if dynamic else ()
    case.input(t, a)
    pa = k.ptr_param("a", t)
    case.input(t, b)
    pb = k.ptr_param("b", t)
    c = case.output(acc_t, m * n)
    pc = k.ptr_param("c", acc_t)
    va, na = view(k, pa, Array(t, (m, k_size), None, 0, d, d[:1]), (tm, tk), "zero", "a")
    vb, nb = view(k, pb, Array(t, (k_size, n), None, 0, d, d[:1]), (tk, tn), "zero", "b")
    vc, nc = view(k, pc, Array(acc_t, (m, n), None, 0, d, d[:1]), (tm, tn), None, "c")
    k.block()
    k.emit(f"%m, %steps = get_index_space_shape {na} : {va.type_text()} -> tile<i32>")
    zero, one = k.const("i32", 0), k.const("i32", 1)
    acc = k.v(f"constant <{acc_t}: {'0' if acc_t == 'i32' else '0.0'}> : {tile([tm, tn], acc_t)}")
    T = tile([tm, tn], acc_t)
    k.emit(f"%sum = for %q in ({zero} to %steps, step {one}) : tile<i32> iter_values(%acc = {acc}) -> ({T}) {{")
    k.indent += 1
    x, y = load(k, va, na, ["%bx", "%q"]), load(k, vb, nb, ["%q", "%by"])
    op = "mmai" if t == "i8" else "mmaf"
    r = k.v(
        f"{op} {x}, {y}, %acc{' signed signed' if t == 'i8' else ''} : {tile([tm, tk], t)}, {tile([tk, tn], t)}, {T}"
    )
    k.emit(f"continue {r} : {T}")
    k.indent -= 1
    k.emit("}")
    store(k, vc, nc, "%sum", ["%bx", "%by"])
    case.results(c, acc_t, out, rule="exact" if acc_t in F else "bits")
    return k.finish()


def softmax(rows, columns, width, tier="standard"):
    """A row a block: maximum, exponentials, sum, division; columns beyond the array are padded with -inf."""
    t = "f32"
    rng = Rng(f"softmax {rows} {columns}")
    x = [from_fraction(t, Fraction(rng.uniform(-6, 6))) for _ in range(rows * columns)]
    out, bound = [], []
    with mpmath.workprec(120):
        for r in range(rows):
            row = [mpmath.mpf(q.numerator) / q.denominator for q in numbers(t, x[r * columns : (r + 1) * columns])]
            top = max(row)
            e = [mpmath.exp(v - top) for v in row]
            s = mpmath.fsum(e)
            for v, w in zip(row, e):
                out.append(real(t, w / s))
                # subtraction, exp (2 ulp), sum of `width` numbers with the like errors, division: relative errors add
                bound.append(float(w / s * (2 * (6 + abs(v - top)) + 12 + width) * mpmath.mpf(2) ** -23))
    case = Case("programs", f"softmax.{rows}x{columns}", tier, ["exp", "reduce", "divf", "load_view_tko"], [t])
    case.grid = [rows, 1, 1]
    k = Kernel(case)
    case.input(t, x)
    p = k.ptr_param("x", t)
    b = case.output(t, rows * columns)
    q = k.ptr_param("y", t)
    va, na = view(k, p, Array(t, (rows, columns)), (1, width), "neg_inf")
    vo, no = view(k, q, Array(t, (rows, columns)), (1, width))
    k.block()
    zero = k.const("i32", 0)
    v = load(k, va, na, ["%bx", zero])
    shape = [1, width]
    top = single(k, "reduce", v, t, shape, 1, identity_text(t, 0xFF800000), "maxf {a}, {b} : {T}")

    def wide(value):
        value = k.v(f"reshape {value} : tile<1xf32> -> tile<1x1xf32>")
        return k.v(f"broadcast {value} : tile<1x1xf32> -> {tile(shape, t)}")

    d = k.v(f"subf {v}, {wide(top)} : {tile(shape, t)}")
    e = k.v(f"exp {d} : {tile(shape, t)}")
    s = single(k, "reduce", e, t, shape, 1, "0.0 : f32", "addf {a}, {b} : {T}")
    r = k.v(f"divf {e}, {wide(s)} : {tile(shape, t)}")
    store(k, vo, no, r, ["%bx", zero])
    case.results(b, t, out, rule="bound", strict="bound", bound=bound)
    return k.finish()


def layer_norm(rows, columns, tier="standard"):
    """(x - mean) / sqrt(variance + eps) * w + b in f32 over f16 data; the width is a power of two."""
    t = "f16"
    rng = Rng(f"norm {rows} {columns}")
    x, w, c = ([values.moderate(t, rng, 1) for _ in range(n)] for n in (rows * columns, columns, columns))
    out, bound = [], []
    nw, nc = numbers(t, w), numbers(t, c)
    eps = to_fraction("f32", 0x3727C5AC)
    with mpmath.workprec(120):
        for r in range(rows):
            row = numbers(t, x[r * columns : (r + 1) * columns])
            mean = sum(row) / columns
            var = sum((v - mean) ** 2 for v in row) / columns + eps
            scale = 1 / mpmath.sqrt(mpmath.mpf(var.numerator) / var.denominator)
            big = max(abs(v - mean) for v in row)
            for v, g, h in zip(row, nw, nc):
                y = (
                    mpmath.mpf((v - mean).numerator)
                    / (v - mean).denominator
                    * scale
                    * mpmath.mpf(g.numerator)
                    / g.denominator
                    + mpmath.mpf(h.numerator) / h.denominator
                )
                out.append(real(t, y))
                bound.append(
                    float(
                        (abs(y) + 1) * mpmath.mpf(2) ** -10
                        + float(big * abs(g)) * scale * (columns + 16) * mpmath.mpf(2) ** -22
                    )
                )
    case = Case("programs", f"layer_norm.{rows}x{columns}", tier, ["rsqrt", "reduce", "ftof"], [t])
    case.grid = [rows, 1, 1]
    k = Kernel(case)
    shape = [columns]
    base = k.base(columns)
    xs = k.input("x", t, x, shape, base)
    ws, cs = k.input("w", t, w, shape), k.input("c", t, c, shape)
    T = tile(shape, "f32")
    xs, ws, cs = (k.v(f"ftof {v} : {tile(shape, t)} -> {T}") for v in (xs, ws, cs))
    n = k.v(f"constant <f32: {float(columns)}> : tile<f32>")
    total = lambda x: single(k, "reduce", x, "f32", shape, 0, "0.0 : f32", "addf {a}, {b} : {T}")
    mean = k.v(f"divf {total(xs)}, {n} : tile<f32>")
    d = k.v(f"subf {xs}, {k.splat(mean, 'f32', shape)} : {T}")
    sq = k.v(f"mulf {d}, {d} : {T}")
    var = k.v(f"divf {total(sq)}, {n} : tile<f32>")
    var = k.v(f"addf {var}, {k.v('constant <f32: 0x3727C5AC> : tile<f32>')} : tile<f32>")
    s = k.v(f"rsqrt {var} : tile<f32>")
    y = k.v(f"mulf {d}, {k.splat(s, 'f32', shape)} : {T}")
    y = k.v(f"fma {y}, {ws}, {cs} : {T}")
    y = k.v(f"ftof {y} : {T} -> {tile(shape, t)}")
    k.output("o", y, t, shape, out, base, rule="bound", strict="bound", bound=bound)
    return k.finish()


def attention(n, d, tier="standard"):
    """softmax(q k^T) v for one block of queries, in f32."""
    t = "f32"
    rng = Rng(f"attention {n} {d}")
    q, ks, v = ([from_fraction(t, Fraction(rng.between(-8, 8), 8), sign=0) for _ in range(n * d)] for _ in range(3))
    nq, nk, nv = (numbers(t, z) for z in (q, ks, v))
    out, bound = [], []
    with mpmath.workprec(120):
        for i in range(n):
            s = [sum(nq[i * d + c] * nk[j * d + c] for c in range(d)) for j in range(n)]
            top = max(s)
            e = [mpmath.exp(mpmath.mpf((x - top).numerator) / (x - top).denominator) for x in s]
            total = mpmath.fsum(e)
            span = float(max(s) - min(s))
            for c in range(d):
                terms = [
                    w / total * mpmath.mpf(nv[j * d + c].numerator) / nv[j * d + c].denominator for j, w in enumerate(e)
                ]
                out.append(real(t, mpmath.fsum(terms)))
                bound.append(
                    float(mpmath.fsum(abs(x) for x in terms) * (2 * span + 3 * n + d + 24) * mpmath.mpf(2) ** -22)
                )
    case = Case("programs", f"attention.{n}x{d}", tier, ["mmaf", "permute", "exp", "reduce"], [t])
    k = Kernel(case)
    x, y, z = k.input("q", t, q, [n, d]), k.input("k", t, ks, [n, d]), k.input("v", t, v, [n, d])
    yt = k.v(f"permute {y} [1, 0] : {tile([n, d], t)} -> {tile([d, n], t)}")
    zero = k.v(f"constant <f32: 0.0> : {tile([n, n], t)}")
    s = k.v(f"mmaf {x}, {yt}, {zero} : {tile([n, d], t)}, {tile([d, n], t)}, {tile([n, n], t)}")
    top = single(k, "reduce", s, t, [n, n], 1, identity_text(t, 0xFF800000), "maxf {a}, {b} : {T}")

    def wide(value, columns):
        value = k.v(f"reshape {value} : {tile([n], t)} -> {tile([n, 1], t)}")
        return k.v(f"broadcast {value} : {tile([n, 1], t)} -> {tile([n, columns], t)}")

    e = k.v(f"subf {s}, {wide(top, n)} : {tile([n, n], t)}")
    e = k.v(f"exp {e} : {tile([n, n], t)}")
    total = single(k, "reduce", e, t, [n, n], 1, "0.0 : f32", "addf {a}, {b} : {T}")
    o = k.v(f"constant <f32: 0.0> : {tile([n, d], t)}")
    o = k.v(f"mmaf {e}, {z}, {o} : {tile([n, n], t)}, {tile([n, d], t)}, {tile([n, d], t)}")
    o = k.v(f"divf {o}, {wide(total, d)} : {tile([n, d], t)}")
    k.output("o", o, t, [n, d], out, rule="bound", strict="bound", bound=bound)
    return k.finish()


def histogram(n, bins, blocks, skew, tier="standard"):
    rng = Rng(f"histogram {n} {bins} {skew}")
    x = [7 % bins if skew == "equal" else rng.below(bins) for _ in range(n * blocks)]
    case = Case("programs", f"histogram.{blocks}x{n}.{bins}.{skew}", tier, ["atomic_rmw_tko"], ["i32"])
    case.grid = [blocks, 1, 1]
    k = Kernel(case)
    v = k.input("x", "i32", x, [n], k.base(n))
    b = case.output("i32", bins, [0] * bins)
    p = k.splat(k.ptr_param("h", "i32"), "ptr<i32>", [n])
    p = k.v(f"offset {p}, {v} : {tile([n], 'ptr<i32>')}, {tile([n], 'i32')} -> {tile([n], 'ptr<i32>')}")
    one = k.v(f"constant <i32: 1> : {tile([n], 'i32')}")
    k.emit(
        f"%r, %t = atomic_rmw_tko relaxed device {p}, add, {one} : {tile([n], 'ptr<i32>')}, {tile([n], 'i32')} -> {tile([n], 'i32')}, token"
    )
    case.results(b, "i32", [x.count(i) for i in range(bins)])
    return k.finish()


def philox(rounds=10, tier="smoke"):
    """Philox 4x32: mulhii and muli of 32 bits, constants as published."""
    n = 64
    M, W = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
    case = Case("programs", f"philox.{rounds}", tier, ["mulhii", "muli", "xori"], ["i32"])
    k = Kernel(case)
    T = tile([n], "i32")
    rng = Rng("philox")
    counter = [[i for i in range(n)], [rng.bits(32) for _ in range(n)], [rng.bits(32) for _ in range(n)], [0] * n]
    key = [0x12345678, 0x9ABCDEF0]
    c = [k.input(f"c{i}", "i32", counter[i], [n]) for i in range(4)]
    keys = [k.splat(k.scalar(f"k{i}", "i32", key[i]), "i32", [n]) for i in range(2)]
    m = [k.v(f"constant <i32: {hex(v)}> : {T}") for v in M]
    w = [k.v(f"constant <i32: {hex(v)}> : {T}") for v in W]
    for r in range(rounds):
        hi = [k.v(f"mulhii {c[2 * i]}, {m[i]} : {T}") for i in range(2)]
        lo = [k.v(f"muli {c[2 * i]}, {m[i]} : {T}") for i in range(2)]
        x = k.v(f"xori {k.v(f'xori {hi[1]}, {c[1]} : {T}')}, {keys[0]} : {T}")
        y = k.v(f"xori {k.v(f'xori {hi[0]}, {c[3]} : {T}')}, {keys[1]} : {T}")
        c = [x, lo[1], y, lo[0]]
        keys = [k.v(f"addi {keys[i]}, {w[i]} : {T}") for i in range(2)]
    out = [[], [], [], []]
    for j in range(n):
        s, kk = [counter[i][j] for i in range(4)], list(key)
        for r in range(rounds):
            p, q = s[0] * M[0], s[2] * M[1]
            s = [q >> 32 ^ s[1] ^ kk[0], q & 0xFFFFFFFF, p >> 32 ^ s[3] ^ kk[1], p & 0xFFFFFFFF]
            kk = [kk[i] + W[i] & 0xFFFFFFFF for i in range(2)]
        for i in range(4):
            out[i].append(s[i])
    for i in range(4):
        k.output(f"o{i}", c[i], "i32", [n], out[i])
    return k.finish()


def top_k(n, count, tier="standard"):
    """The largest `count` of n numbers by repeated arg-reductions."""
    rng = Rng(f"topk {n}")
    x = [rng.between(-1000, 1000) & 0xFFFFFFFF for _ in range(n)]
    case = Case("programs", f"top_k.{count}_of_{n}", tier, ["reduce", "select", "for"], ["i32"])
    k = Kernel(case)
    v = k.input("x", "i32", x, [n])
    i = k.v(f"iota : {tile([n], 'i32')}")
    b, c = case.output("i32", count), case.output("i32", count)
    k.ptr_param("o", "i32")
    k.ptr_param("w", "i32")
    low = k.v(f"constant <i32: -2147483648> : {tile([n], 'i32')}")
    zero, one, end = k.const("i32", 0), k.const("i32", 1), k.const("i32", count)
    T = tile([n], "i32")
    k.emit(f"%rest = for %q in ({zero} to {end}, step {one}) : tile<i32> iter_values(%left = {v}) -> ({T}) {{")
    k.indent += 1

    def body(k, a, b):
        more = k.v(f"cmpi greater_than {a[0]}, {b[0]}, signed : tile<i32> -> tile<i1>")
        same = k.v(f"cmpi equal {a[0]}, {b[0]}, signed : tile<i32> -> tile<i1>")
        first = k.v(f"cmpi less_than {a[1]}, {b[1]}, signed : tile<i32> -> tile<i1>")
        tie = k.v(f"andi {same}, {first} : tile<i1>")
        take = k.v(f"ori {more}, {tie} : tile<i1>")
        return [k.v(f"select {take}, {a[j]}, {b[j]} : tile<i1>, tile<i32>") for j in range(2)]

    best, where = written(
        k, "reduce", [("%left", "i32"), (i, "i32")], [n], 0, ["-2147483648 : i32", "2147483647 : i32"], body
    )
    for p, value in (("%o", best), ("%w", where)):
        q = k.v(f"offset {p}, %q : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
        k.emit(f"{k.fresh()} = store_ptr_tko weak {q}, {value} : tile<ptr<i32>>, tile<i32> -> token")
    hit = k.v(f"cmpi equal {i}, {k.splat(where, 'i32', [n])}, signed : {T} -> {tile([n], 'i1')}")
    y = k.v(f"select {hit}, {low}, %left : {tile([n], 'i1')}, {T}")
    k.emit(f"continue {y} : {T}")
    k.indent -= 1
    k.emit("}")
    order = sorted(range(n), key=lambda j: (-(x[j] - (1 << 32) if x[j] >> 31 else x[j]), j))[:count]
    case.results(b, "i32", [x[j] for j in order])
    case.results(c, "i32", order)
    return k.finish()


def convolution(length, taps, tier="standard"):
    """One-dimensional convolution by a strided view of step 1 and a product with the taps."""
    rng = Rng(f"conv {length} {taps}")
    x, w = [rng.between(-9, 9) for _ in range(length)], [rng.between(-9, 9) for _ in range(taps)]
    case = Case(
        "programs", f"convolution.{length}.{taps}", tier, ["load_view_tko", "make_strided_view", "reduce"], ["i32"]
    )
    out_length = length - taps + 1
    case.grid = [out_length, 1, 1]
    k = Kernel(case)
    bits = lambda v: [a & 0xFFFFFFFF for a in v]
    case.input("i32", bits(x))
    p = k.ptr_param("x", "i32")
    wv = k.input("w", "i32", bits(w), [taps])
    v, name = view(k, p, Array("i32", (length,)), (taps,), None, kind="strided", traversal=(1,))
    b = k.block()
    t = load(k, v, name, [b])
    m = k.v(f"muli {t}, {wv} : {tile([taps], 'i32')}")
    s = single(k, "reduce", m, "i32", [taps], 0, "0 : i32", "addi {a}, {b} : {T}")
    k.output("o", s, "i32", [], bits([sum(x[i + j] * w[j] for j in range(taps)) for i in range(out_length)]), b)
    return k.finish()


def gather_product(t, rows, d, picks, n, tier="standard"):
    """Rows chosen by an index tile times a matrix: what a mixture of experts does."""
    rng = Rng(f"moe {t}")
    limit = limit_of(t, "f32", d)
    a, b = small_ints(t, rng, rows * d, limit), small_ints(t, rng, d * n, limit)
    chosen = [rng.below(rows) for _ in range(picks)]
    ia, ib = [int(v) for v in numbers(t, a)], [int(v) for v in numbers(t, b)]
    out = [
        from_fraction("f32", Fraction(sum(ia[r * d + c] * ib[c * n + j] for c in range(d))), sign=0)
        for r in chosen
        for j in range(n)
    ]
    case = Case("programs", f"gather_product.{t}", tier, ["make_gather_scatter_view", "mmaf"], [t])
    k = Kernel(case)
    ix = k.input("i", "i32", chosen, [picks])
    case.input(t, a)
    p = k.ptr_param("a", t)
    y = k.input("b", t, b, [d, n])
    v = View(Array(t, (rows, d)), (picks, d), "gather_scatter", "zero", sparse=0)
    g = v.emit(k, v.array.emit(k, p))
    zero = k.const("i32", 0)
    k.emit(
        f"%x, %t = load_view_tko weak {g}[{ix}, {zero}] : {v.type_text()}, {tile([picks], 'i32')}, tile<i32> -> {tile([picks, d], t)}, token"
    )
    c = k.v(f"constant <f32: 0.0> : {tile([picks, n], 'f32')}")
    r = k.v(f"mmaf %x, {y}, {c} : {tile([picks, d], t)}, {tile([d, n], t)}, {tile([picks, n], 'f32')}")
    k.output("o", r, "f32", [picks, n], out, rule="exact")
    return k.finish()


def persistent(work, blocks, tier="standard"):
    """Each block takes every blocks-th piece, in swizzled order; a counter shows that each ran once."""
    case = Case("programs", f"persistent.{work}_by_{blocks}", tier, ["for", "remi", "atomic_rmw_tko"], ["i32"])
    case.grid = [blocks, 1, 1]
    k = Kernel(case)
    b = case.output("i32", work, [0] * work)
    k.ptr_param("o", "i32")
    k.block()
    n, step, one = k.scalar("n", "i32", work), k.scalar("s", "i32", blocks), k.const("i32", 1)
    k.emit(f"for %i in (%bx to {n}, step {step}) : tile<i32> {{")
    k.indent += 1
    half = k.v(f"divi {n}, {k.const('i32', 2)} unsigned : tile<i32>")
    j = k.v(f"addi %i, {half} : tile<i32>")
    j = k.v(f"remi {j}, {n} unsigned : tile<i32>")
    q = k.v(f"offset %o, {j} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>")
    k.emit(
        f"{k.fresh()}, {k.fresh()} = atomic_rmw_tko relaxed device {q}, add, {one} : tile<ptr<i32>>, tile<i32> -> tile<i32>, token"
    )
    k.indent -= 1
    k.emit("}")
    case.results(b, "i32", [1] * work)
    return k.finish()


def prefix_sum(n, tier="standard"):
    """Scan by rows of 16 and by their totals: two levels, exact."""
    rng = Rng(f"prefix {n}")
    x = [rng.bits(32) for _ in range(n)]
    case = Case("programs", f"prefix_sum.{n}", tier, ["scan", "reduce"], ["i32"])
    k = Kernel(case)
    rows, columns = n // 16, 16
    v = k.input("x", "i32", x, [rows, columns])
    add = ("0 : i32", "addi {a}, {b} : {T}")
    inner = single(k, "scan", v, "i32", [rows, columns], 1, *add, False)
    total = single(k, "reduce", v, "i32", [rows, columns], 1, *add)
    before = single(k, "scan", total, "i32", [rows], 0, *add, False)
    before = k.v(f"subi {before}, {total} : {tile([rows], 'i32')}")
    before = k.v(f"reshape {before} : {tile([rows], 'i32')} -> {tile([rows, 1], 'i32')}")
    before = k.v(f"broadcast {before} : {tile([rows, 1], 'i32')} -> {tile([rows, columns], 'i32')}")
    r = k.v(f"addi {inner}, {before} : {tile([rows, columns], 'i32')}")
    out, s = [], 0
    for a in x:
        s = s + a & 0xFFFFFFFF
        out.append(s)
    k.output("o", r, "i32", [rows, columns], out)
    return k.finish()


def programs():
    for t, acc_t in (
        ("f32", "f32"),
        ("f16", "f32"),
        ("bf16", "f32"),
        ("tf32", "f32"),
        ("f64", "f64"),
        ("i8", "i32"),
        ("f8E4M3FN", "f32"),
        ("f8E5M2", "f32"),
        ("f16", "f16"),
    ):
        for (m, n, k), (tm, tn, tk) in (
            ((16, 16, 16), (8, 8, 8)),
            ((13, 17, 23), (8, 8, 4)),
            ((7, 31, 5), (16, 16, 16)),
            ((33, 9, 40), (16, 4, 16)),
            ((1, 19, 64), (1, 8, 32)),
        ):
            for dynamic in (False, True):
                yield (
                    matmul(
                        t,
                        acc_t,
                        m,
                        n,
                        k,
                        tm,
                        tn,
                        tk,
                        dynamic,
                        "smoke" if t == "f16" and m == 13 and dynamic and acc_t == "f32" else "standard",
                    )
                    if acc_t != "f16" or not dynamic
                    else None
                )
    for rows, columns, width in ((4, 16, 16), (3, 13, 16), (5, 100, 128), (2, 1, 4), (1, 257, 512)):
        yield softmax(rows, columns, width, "smoke" if columns == 13 else "standard")
    for rows, columns in ((4, 16), (3, 64), (1, 256)):
        yield layer_norm(rows, columns, "smoke" if columns == 16 else "standard")
    for n, d in ((8, 4), (16, 16), (32, 8)):
        yield attention(n, d, "smoke" if n == 8 else "standard")
    for skew in ("random", "equal"):
        for n, bins, blocks in ((32, 16, 4), (64, 100, 16), (1, 4, 61)):
            yield histogram(n, bins, blocks, skew, "smoke" if n == 32 and skew == "equal" else "standard")
    yield philox()
    yield philox(7, "standard")
    for n, count in ((16, 4), (64, 10), (256, 3)):
        yield top_k(n, count, "smoke" if n == 16 else "standard")
    for length, taps in ((20, 4), (37, 8), (100, 2)):
        yield convolution(length, taps)
    for t in ("f32", "f16", "bf16"):
        yield gather_product(t, 23, 16, 8, 8, "smoke" if t == "bf16" else "standard")
    for work, blocks in ((7, 3), (131, 8), (221, 13), (5, 16), (64, 64)):
        yield persistent(work, blocks, "smoke" if work == 131 else "standard")
    for n in (64, 256, 1024):
        yield prefix_sum(n)


FAMILIES = {"programs": lambda: (c for c in programs() if c is not None)}
