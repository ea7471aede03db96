"""Whole algorithms, second part: the Fourier transform, and the steps of a tutorial: vector addition, transposition, batched and banded products."""

from fractions import Fraction

import mpmath

from families.case import Case
from families.kernel import Kernel, count, tile
from families.mma import limit_of, small_ints
from families.programs import load, numbers, real, store, view
from families.views import Array
from oracle import values
from oracle.formats import from_fraction
from oracle.rng import Rng


def fft(n1, n2, batch, tier="standard"):
    """n1 * n2 points as two products with small Fourier matrices, and a twiddle factor between them.

    Bound of a component: every coefficient is at most 1 and off by half an ulp, the two chains have 2 n1 and 2 n2 terms, the twiddle three
    roundings; real and imaginary parts mix twice, which is the factor 4. All relative to the sum of all magnitudes."""
    t, n = "f32", n1 * n2
    rng = Rng(f"fft {n1} {n2}")
    x = [[values.moderate(t, rng, 1) for _ in range(n * batch)] for _ in range(2)]
    parts = [numbers(t, p) for p in x]
    case = Case("algorithms", f"fft.{batch}x{n1}x{n2}", tier, ["mmaf", "permute", "negf"], [t])
    case.grid = [batch, 1, 1]
    out, bound = [[], []], []
    with mpmath.workprec(120):
        roots = [mpmath.expjpi(mpmath.mpf(-2 * j) / n) for j in range(n)]
        matrix = lambda rows, columns, power: [roots[power(r, c) % n] for r in range(rows) for c in range(columns)]
        f1, f2 = matrix(n1, n1, lambda r, c: r * c * n2), matrix(n2, n2, lambda r, c: r * c * n1)
        twiddle = matrix(n1, n2, lambda r, c: r * c)
        for b in range(batch):
            row = range(b * n, b * n + n)
            to_mpf = lambda q: mpmath.mpf(q.numerator) / q.denominator
            z = [mpmath.mpc(to_mpf(parts[0][i]), to_mpf(parts[1][i])) for i in row]
            allowed = float(sum(abs(p[i]) for p in parts for i in row)) * 4 * (2 * n1 + 2 * n2 + 12) * 2.0**-24
            for k in range(n):
                s = mpmath.fsum(z[j] * roots[j * k % n] for j in range(n))
                out[0].append(real(t, s.real))
                out[1].append(real(t, s.imag))
                bound.append(allowed)
    k = Kernel(case)
    base = k.base(n)

    def complex_input(name, z, shape):
        return [k.input(f"{name}{c}", t, [real(t, p(v)) for v in z], shape) for c, p in enumerate((mpmath.re, mpmath.im))]

    a = [k.input(f"x{c}", t, x[c], [n1, n2], base) for c in range(2)]
    f1, f2 = complex_input("f", f1, [n1, n1]), complex_input("g", f2, [n2, n2])
    w = complex_input("w", twiddle, [n1, n2])
    T = tile([n1, n2], t)
    zero = k.v(f"constant <f32: 0.0> : {T}")

    def product(p, q, ps, qs):
        mm = lambda l, r, acc: k.v(f"mmaf {l}, {r}, {acc} : {tile(ps, t)}, {tile(qs, t)}, {T}")
        minus = k.v(f"negf {p[1]} : {tile(ps, t)}")
        return [mm(minus, q[1], mm(p[0], q[0], zero)), mm(p[1], q[0], mm(p[0], q[1], zero))]

    y = product(f1, a, [n1, n1], [n1, n2])
    mul = lambda p, q: k.v(f"mulf {p}, {q} : {T}")
    z = [
        k.v(f"subf {mul(y[0], w[0])}, {mul(y[1], w[1])} : {T}"),
        k.v(f"addf {mul(y[0], w[1])}, {mul(y[1], w[0])} : {T}"),
    ]
    o = product(z, f2, [n1, n2], [n2, n2])
    for c in range(2):
        r = k.v(f"permute {o[c]} [1, 0] : {T} -> {tile([n2, n1], t)}")
        k.output(f"o{c}", r, t, [n2, n1], out[c], base, rule="bound", strict="bound", bound=bound)
    return k.finish()


def vector_add(t, n, width, how, tier="standard"):
    """c = a + b over n elements, by masked pointers or by padded views."""
    rng = Rng(f"vector_add {t} {n}")
    case = Case("algorithms", f"vector_add.{how}.{n}.{t}", tier, ["addi" if t[0] == "i" else "addf"], [t])
    case.grid = [-(-n // width), 1, 1]
    if t[0] == "i":
        a, b = ([rng.bits(int(t[1:])) for _ in range(n)] for _ in range(2))
        out = [(p + q) & (1 << int(t[1:])) - 1 for p, q in zip(a, b)]
    else:
        a, b = ([values.moderate(t, rng, 3) for _ in range(n)] for _ in range(2))
        # A sum of 0 is +0 to nearest; none of -0 and -0 is among them.
        out = [from_fraction(t, p + q, sign=0) for p, q in zip(numbers(t, a), numbers(t, b))]
    k = Kernel(case)
    add = "addi" if t[0] == "i" else "addf"
    T, P, S = tile([width], t), tile([width], f"ptr<{t}>"), [width]
    case.input(t, a)
    pa = k.ptr_param("a", t)
    case.input(t, b)
    pb = k.ptr_param("b", t)
    c = case.output(t, n)
    pc = k.ptr_param("c", t)
    if how == "views":
        ns = [view(k, p, Array(t, (n,), None, 0, (0,)), (width,), pad, name) for p, pad, name in ((pa, "zero", "a"), (pb, "zero", "b"), (pc, None, "c"))]
        at = [k.block()]
        (va, na), (vb, nb), (vc, nc) = ns
        store(k, vc, nc, k.v(f"{add} {load(k, va, na, at)}, {load(k, vb, nb, at)} : {T}"), at)
    else:
        i = k.v(f"iota : {tile(S, 'i32')}")
        i = k.v(f"addi {i}, {k.splat(k.base(width) or k.const('i32', 0), 'i32', S)} : {tile(S, 'i32')}")
        size = k.splat(k.scalar("n", "i32", n), "i32", S)
        inside = k.v(f"cmpi less_than {i}, {size}, signed : {tile(S, 'i32')} -> {tile(S, 'i1')}")
        zero = k.v(f"constant <{t}: {'0' if t[0] == 'i' else '0.0'}> : {T}")
        place = lambda p: k.v(f"offset {k.splat(p, f'ptr<{t}>', S)}, {i} : {P}, {tile(S, 'i32')} -> {P}")

        def read(p):
            x = k.fresh()
            k.emit(f"{x}, {k.fresh()} = load_ptr_tko weak {place(p)}, {inside}, {zero} : {P}, {tile(S, 'i1')}, {T} -> {T}, token")
            return x

        s = k.v(f"{add} {read(pa)}, {read(pb)} : {T}")
        k.emit(f"{k.fresh()} = store_ptr_tko weak {place(pc)}, {s}, {inside} : {P}, {T}, {tile(S, 'i1')} -> token")
    case.results(c, t, out, rule="exact" if t[0] != "i" else "bits")
    return k.finish()


def transpose(t, rows, columns, tm, tn, tier="standard"):
    rng = Rng(f"transpose {t} {rows} {columns}")
    x = [values.random_bits(t, rng) for _ in range(rows * columns)]
    case = Case("algorithms", f"transpose.{rows}x{columns}.{t}", tier, ["permute", "load_view_tko", "store_view_tko"], [t])
    case.grid = [-(-rows // tm), -(-columns // tn), 1]
    k = Kernel(case)
    case.input(t, x)
    pa = k.ptr_param("a", t)
    c = case.output(t, rows * columns)
    pc = k.ptr_param("c", t)
    va, na = view(k, pa, Array(t, (rows, columns), None, 0, (0, 1), (0,)), (tm, tn), "zero", "a")
    vc, nc = view(k, pc, Array(t, (columns, rows), None, 0, (0, 1), (0,)), (tn, tm), None, "c")
    k.block()
    y = k.v(f"permute {load(k, va, na, ['%bx', '%by'])} [1, 0] : {tile([tm, tn], t)} -> {tile([tn, tm], t)}")
    store(k, vc, nc, y, ["%by", "%bx"])
    case.results(c, t, [x[r * columns + q] for q in range(columns) for r in range(rows)])
    return k.finish()


def product_of(t, a, b, m, n, inner):
    ia, ib = [int(v) for v in numbers(t, a)], [int(v) for v in numbers(t, b)]
    sums = (sum(ia[i * inner + q] * ib[q * n + j] for q in range(inner)) for i in range(m) for j in range(n))
    return [from_fraction("f32", Fraction(s), sign=0) for s in sums]


def batched(t, batch, m, n, inner, tm, tn, tk, tier="standard"):
    """A product for each block of the third grid axis, with tiles of three dimensions."""
    rng = Rng(f"batched {t} {m}")
    limit = limit_of(t, "f32", inner)
    a, b = small_ints(t, rng, batch * m * inner, limit), small_ints(t, rng, batch * inner * n, limit)
    out = []
    for i in range(batch):
        out += product_of(t, a[i * m * inner : (i + 1) * m * inner], b[i * inner * n : (i + 1) * inner * n], m, n, inner)
    case = Case("algorithms", f"batched_matmul.{batch}x{m}x{n}x{inner}.{t}", tier, ["mmaf", "load_view_tko", "for"], [t])
    case.grid = [-(-m // tm), -(-n // tn), batch]
    k = Kernel(case)
    views = []
    for name, bits, shape, ts, pad in (("a", a, (batch, m, inner), (1, tm, tk), "zero"), ("b", b, (batch, inner, n), (1, tk, tn), "zero"), ("c", None, (batch, m, n), (1, tm, tn), None)):
        u = t if bits else "f32"
        c = case.input(u, bits) if bits else case.output(u, count(shape))
        views.append(view(k, k.ptr_param(name, u), Array(u, shape, None, 0, (0, 1, 2), (0, 1)), ts, pad, name))
    (va, na), (vb, nb), (vc, nc) = views
    k.block()
    T = tile([1, tm, tn], "f32")
    k.emit(f"%q0, %q1, %steps = get_index_space_shape {na} : {va.type_text()} -> tile<i32>")
    zero, one = k.const("i32", 0), k.const("i32", 1)
    acc = k.v(f"constant <f32: 0.0> : {T}")
    k.emit(f"%sum = for %q in ({zero} to %steps, step {one}) : tile<i32> iter_values(%acc = {acc}) -> ({T}) {{")
    k.indent += 1
    x, y = load(k, va, na, ["%bz", "%bx", "%q"]), load(k, vb, nb, ["%bz", "%q", "%by"])
    k.emit(f"continue {k.v(f'mmaf {x}, {y}, %acc : {tile([1, tm, tk], t)}, {tile([1, tk, tn], t)}, {T}')} : {T}")
    k.indent -= 1
    k.emit("}")
    store(k, vc, nc, "%sum", ["%bz", "%bx", "%by"])
    case.results(c, "f32", out, rule="exact")
    return k.finish()


def banded(t, m, n, inner, side, band, tier="standard"):
    """A product whose blocks have one number, walked in bands of `band` rows of tiles; the last band may be lower."""
    rng = Rng(f"banded {t} {m}")
    limit = limit_of(t, "f32", inner)
    a, b = small_ints(t, rng, m * inner, limit), small_ints(t, rng, inner * n, limit)
    case = Case("algorithms", f"banded_matmul.{m}x{n}x{inner}.by_{band}.{t}", tier, ["mmaf", "divi", "remi", "mini", "for"], [t])
    rows, columns = -(-m // side), -(-n // side)
    case.grid = [rows * columns, 1, 1]
    k = Kernel(case)
    case.input(t, a)
    pa = k.ptr_param("a", t)
    case.input(t, b)
    pb = k.ptr_param("b", t)
    c = case.output("f32", m * n)
    pc = k.ptr_param("c", "f32")
    s = (side, side)
    va, na = view(k, pa, Array(t, (m, inner), None, 0, (0, 1), (0,)), s, "zero", "a")
    vb, nb = view(k, pb, Array(t, (inner, n), None, 0, (0, 1), (0,)), s, "zero", "b")
    vc, nc = view(k, pc, Array("f32", (m, n), None, 0, (0, 1), (0,)), s, None, "c")
    k.block()
    k.emit(f"%g0, %steps = get_index_space_shape {na} : {va.type_text()} -> tile<i32>")
    k.emit(f"%rows, %columns = get_index_space_shape {nc} : {vc.type_text()} -> tile<i32>")
    i = lambda op, p, q, tail="": k.v(f"{op} {p}, {q}{tail} : tile<i32>")
    most, zero, one = k.const("i32", band), k.const("i32", 0), k.const("i32", 1)
    per_band = i("muli", most, "%columns")
    number, within = i("divi", "%bx", per_band, " signed"), i("remi", "%bx", per_band, " signed")
    first = i("muli", number, most)
    height = i("mini", i("subi", "%rows", first), most, " signed")
    row, column = i("addi", first, i("remi", within, height, " signed")), i("divi", within, height, " signed")
    T = tile(s, "f32")
    acc = k.v(f"constant <f32: 0.0> : {T}")
    k.emit(f"%sum = for %q in ({zero} to %steps, step {one}) : tile<i32> iter_values(%acc = {acc}) -> ({T}) {{")
    k.indent += 1
    x, y = load(k, va, na, [row, "%q"]), load(k, vb, nb, ["%q", column])
    k.emit(f"continue {k.v(f'mmaf {x}, {y}, %acc : {tile(s, t)}, {tile(s, t)}, {T}')} : {T}")
    k.indent -= 1
    k.emit("}")
    store(k, vc, nc, "%sum", [row, column])
    case.results(c, "f32", product_of(t, a, b, m, n, inner), rule="exact")
    return k.finish()


def algorithms():
    for n1, n2, batch in ((4, 4, 2), (8, 8, 3), (8, 16, 1), (16, 4, 2), (16, 16, 2)):
        yield fft(n1, n2, batch, "smoke" if n1 == 4 else "standard")
    for t in ("f32", "f16", "bf16", "f64", "i32"):
        for how in ("pointers", "views"):
            for n, width in ((1000, 256), (64, 64), (3, 8)):
                yield vector_add(t, n, width, how, "smoke" if t == "f32" and n == 3 else "standard")
    for t in ("f32", "f16", "i8", "f64"):
        for rows, columns, tm, tn in ((32, 16, 8, 16), (33, 17, 16, 8), (5, 70, 4, 32)):
            yield transpose(t, rows, columns, tm, tn)
    for t in ("f32", "f16", "bf16", "f8E4M3FN"):
        yield batched(t, 3, 16, 16, 16, 8, 8, 8)
        yield batched(t, 2, 13, 9, 21, 8, 16, 4)
        yield banded(t, 70, 23, 19, 8, 4)
        yield banded(t, 33, 40, 16, 16, 2)


FAMILIES = {"algorithms": algorithms}
