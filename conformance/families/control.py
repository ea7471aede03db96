"""Control flow: hand-written programs, and random nests of if, for and loop that are evaluated here as they are written."""

from families.case import Case
from families.kernel import Kernel
from oracle.formats import INTS, from_float, signed
from oracle.rng import Rng

M = 0xFFFFFFFF


class Program:
    """Writes random structured code over i32 scalars and runs it at the same time for given arguments.

    The code is built as a tree first: ("op", dest, op, a, b), ("if", dests, cond, then, ys, otherwise, zs), ("for", dests, iv, trips, args, inits, body, ys),
    ("loop", dests, args, inits, limit, body, ys, outs). A variable is a number."""

    def __init__(self, rng):
        self.rng, self.n = rng, 0

    def new(self):
        self.n += 1
        return self.n

    def block(self, visible, depth, size):
        code, visible = [], list(visible)
        for _ in range(size):
            kind = self.rng.below(10)
            if depth == 0 or kind < 5:
                d = self.new()
                code.append(
                    (
                        "op",
                        d,
                        self.rng.choice(("addi", "subi", "muli", "xori", "maxi", "mini")),
                        self.rng.choice(visible),
                        self.rng.choice(visible),
                    )
                )
                visible.append(d)
                continue
            count = self.rng.between(1, 3)
            dests = [self.new() for _ in range(count)]
            if kind < 7:
                p, q = self.rng.choice(visible), self.rng.choice(visible)
                test = self.rng.choice(("less_than", "equal", "greater_than_or_equal"))
                then, v1 = self.block(visible, depth - 1, self.rng.between(1, 3))
                other, v2 = self.block(visible, depth - 1, self.rng.between(0, 3))
                code.append(
                    (
                        "if",
                        dests,
                        (test, p, q),
                        then,
                        [self.rng.choice(v1) for _ in dests],
                        other,
                        [self.rng.choice(v2) for _ in dests],
                    )
                )
            elif kind < 9:
                iv, args = self.new(), [self.new() for _ in dests]
                inits = [self.rng.choice(visible) for _ in dests]
                lo, step = self.rng.between(-2, 2), self.rng.between(1, 3)
                hi = lo + self.rng.between(-1, 6)
                early = self.rng.bits(1)
                body, v = self.block(visible + [iv] + args, depth - 1, self.rng.between(1, 3))
                ys = [self.rng.choice(v[-4:]) for _ in dests]
                skip = (self.rng.choice(v), [self.rng.choice(v) for _ in dests]) if early else None
                code.append(("for", dests, iv, (lo, hi, step), args, inits, body, ys, skip))
            else:
                args = [self.new() for _ in dests]
                inits = [self.rng.choice(visible) for _ in dests]
                counter = self.new()
                body, v = self.block(visible + args + [counter], depth - 1, self.rng.between(1, 3))
                code.append(
                    (
                        "loop",
                        dests,
                        args,
                        inits,
                        (counter, self.rng.between(0, 4)),
                        body,
                        [self.rng.choice(v[-4:]) for _ in dests],
                        [self.rng.choice(v) for _ in dests],
                    )
                )
            visible += dests
        return code, visible

    # Writing
    def write(self, k, code, indent):
        p = "  " * indent
        for s in code:
            if s[0] == "op":
                _, d, op, a, b = s
                k.emit(f"{p}%x{d} = {op} %x{a}, %x{b}{' signed' if op in ('maxi', 'mini') else ''} : tile<i32>")
            elif s[0] == "if":
                _, dests, (test, a, b), then, ys, other, zs = s
                c = self.new()
                types = ", ".join(["tile<i32>"] * len(dests))
                k.emit(f"{p}%x{c} = cmpi {test} %x{a}, %x{b}, signed : tile<i32> -> tile<i1>")
                k.emit(f"{p}{names(dests)} = if %x{c} -> ({types}) {{")
                self.write(k, then, indent + 1)
                k.emit(f"{p}  yield {names(ys)} : {types}")
                k.emit(f"{p}}} else {{")
                self.write(k, other, indent + 1)
                k.emit(f"{p}  yield {names(zs)} : {types}")
                k.emit(f"{p}}}")
            elif s[0] == "for":
                _, dests, iv, (lo, hi, step), args, inits, body, ys, skip = s
                c = [self.new() for _ in range(3)]
                for name, v in zip(c, (lo, hi, step)):
                    k.emit(f"{p}%x{name} = constant <i32: {v}> : tile<i32>")
                types = ", ".join(["tile<i32>"] * len(dests))
                k.emit(
                    f"{p}{names(dests)} = for %x{iv} in (%x{c[0]} to %x{c[1]}, step %x{c[2]}) : tile<i32> iter_values({pairs(args, inits)}) -> ({types}) {{"
                )
                self.write(k, body, indent + 1)
                if skip:
                    t, z = self.new(), self.new()
                    k.emit(f"{p}  %x{z} = constant <i32: 0> : tile<i32>")
                    k.emit(f"{p}  %x{t} = cmpi less_than %x{skip[0]}, %x{z}, signed : tile<i32> -> tile<i1>")
                    k.emit(f"{p}  if %x{t} {{")
                    k.emit(f"{p}    continue {names(skip[1])} : {types}")
                    k.emit(f"{p}  }}")
                k.emit(f"{p}  continue {names(ys)} : {types}")
                k.emit(f"{p}}}")
            else:
                _, dests, args, inits, (counter, limit), body, ys, outs = s
                z, one, t, lim, after = (self.new() for _ in range(5))
                types = ", ".join(["tile<i32>"] * len(dests))
                k.emit(f"{p}%x{z} = constant <i32: 0> : tile<i32>")
                k.emit(
                    f"{p}{names(dests)} = loop iter_values({pairs(args + [counter], inits + [z])}) : {types}, tile<i32> -> {types} {{"
                )
                self.write(k, body, indent + 1)
                k.emit(f"{p}  %x{lim} = constant <i32: {limit}> : tile<i32>")
                k.emit(f"{p}  %x{t} = cmpi greater_than_or_equal %x{counter}, %x{lim}, signed : tile<i32> -> tile<i1>")
                k.emit(f"{p}  if %x{t} {{")
                k.emit(f"{p}    break {names(outs)} : {types}")
                k.emit(f"{p}  }}")
                k.emit(f"{p}  %x{one} = constant <i32: 1> : tile<i32>")
                k.emit(f"{p}  %x{after} = addi %x{counter}, %x{one} : tile<i32>")
                k.emit(f"{p}  continue {names(ys + [after])} : {types}, tile<i32>")
                k.emit(f"{p}}}")

    # Running
    def run(self, code, env):
        for s in code:
            if s[0] == "op":
                _, d, op, a, b = s
                a, b = env[a], env[b]
                x, y = signed(a, 32), signed(b, 32)
                env[d] = {
                    "addi": a + b,
                    "subi": a - b,
                    "muli": a * b,
                    "xori": a ^ b,
                    "maxi": max(x, y),
                    "mini": min(x, y),
                }[op] & M
            elif s[0] == "if":
                _, dests, (test, a, b), then, ys, other, zs = s
                x, y = signed(env[a], 32), signed(env[b], 32)
                yes = {"less_than": x < y, "equal": x == y, "greater_than_or_equal": x >= y}[test]
                inner = dict(env)
                self.run(then if yes else other, inner)
                out = [inner[v] for v in (ys if yes else zs)]
                env.update(zip(dests, out))
            elif s[0] == "for":
                _, dests, iv, (lo, hi, step), args, inits, body, ys, skip = s
                state = [env[i] for i in inits]
                for i in range(lo, hi, step):
                    inner = {**env, iv: i & M, **dict(zip(args, state))}
                    self.run(body, inner)
                    state = [inner[v] for v in (skip[1] if skip and signed(inner[skip[0]], 32) < 0 else ys)]
                env.update(zip(dests, state))
            else:
                _, dests, args, inits, (counter, limit), body, ys, outs = s
                state, i = [env[v] for v in inits], 0
                while True:
                    inner = {**env, counter: i, **dict(zip(args, state))}
                    self.run(body, inner)
                    if i >= limit:
                        break
                    state, i = [inner[v] for v in ys], i + 1
                env.update(zip(dests, [inner[v] for v in outs]))


def names(vs):
    return ", ".join(f"%x{v}" for v in vs)


def pairs(args, inits):
    return ", ".join(f"%x{a} = %x{i}" for a, i in zip(args, inits))


def random_programs():
    for number in range(160):
        rng = Rng(f"program {number}")
        p = Program(rng)
        blocks = 4
        inputs = [p.new() for _ in range(3)]
        code, visible = p.block(inputs, 1 + number % 3, 4 + number % 5)
        outs = visible[-4:]
        case = Case(
            "control",
            f"random.{number:03}",
            "smoke" if number in (3, 43, 103) else "standard",
            ["if", "for", "loop"],
            ["i32"],
        )
        case.grid = [blocks, 1, 1]
        k = Kernel(case)
        args = [rng.between(-20, 20) & M for _ in range(2)]
        for v, bits in zip(inputs, args):
            k.scalar(f"x{v}", "i32", bits)
        k.emit(f"%x{inputs[2]}, %by, %bz = get_tile_block_id : tile<i32>")
        p.write(k, code, 0)
        results = []
        for b in range(blocks):
            env = dict(zip(inputs, args + [b]))
            p.run(code, env)
            results.append([env[v] for v in outs])
        for j, v in enumerate(outs):
            k.output(f"o{j}", f"%x{v}", "i32", [], [r[j] for r in results], f"%x{inputs[2]}")
        yield k.finish()


def text_case(
    name, text, inputs, outputs, grid=(1, 1, 1), tier="standard", ops=(), types=("i32",), entry="k", scalars=()
):
    """A kernel given as text; parameters are the inputs, the outputs, then scalars: (type, bits)."""
    case = Case("control", name, tier, ops, types)
    case.grid, case.entry = list(grid), entry
    for t, bits in inputs:
        case.input(t, bits)
    for t, bits in outputs:
        b = case.output(t, len(bits), [0] * len(bits))
        case.results(b, t, bits)
    for t, bits in scalars:
        case.scalar(t, bits)
    case.kernel = text.encode()
    return case


def header(params, body, grid=True):
    lines = ["cuda_tile.module @m {", f"  entry @k({params}) {{"]
    if grid:
        lines.append("    %b, %by, %bz = get_tile_block_id : tile<i32>")
    return "\n".join(lines + ["    " + line for line in body.strip("\n").split("\n")] + ["    return", "  }", "}", ""])


def spread(pointer, names, i, t, n=8):
    """Lines that make n neighbouring addresses of a pointer; the names of the three values, and of the iota."""
    one, many, places = names
    return f"""{one} = reshape {pointer} : tile<ptr<{t}>> -> tile<1xptr<{t}>>
{many} = broadcast {one} : tile<1xptr<{t}>> -> tile<{n}xptr<{t}>>
{places} = offset {many}, {i} : tile<{n}xptr<{t}>>, tile<{n}xi32> -> tile<{n}xptr<{t}>>"""


def loops():
    """for: trip counts, steps, signs, induction types."""
    for t in ("i8", "i16", "i32", "i64"):
        n = INTS[t]
        rows = [
            (0, 5, 1),
            (0, 0, 1),
            (3, 3, 1),
            (5, 2, 1),
            (-3, 4, 2),
            (0, 7, 3),
            (0, 6, 3),
            (-5, -1, 1),
            (1, 2, 100),
            (10, 100, 7),
        ]
        for unsigned in (False, True):
            for lo, hi, step in rows + [(-1, 3, 1) if unsigned else (-128, -120, 3), (-10, -1, 4)]:
                mask = (1 << n) - 1
                start, end = (lo & mask, hi & mask) if unsigned else (lo, hi)
                trips, total, i = 0, 0, start
                while i < end and trips < 400:
                    total, trips, i = (total * 3 + i) & mask, trips + 1, i + step
                if trips >= 400 or i > (mask if unsigned else mask >> 1):
                    continue
                word = "unsigned " if unsigned else ""
                text = header(
                    f"%o: tile<ptr<{t}>>, %p: tile<ptr<{t}>>, %lo: tile<{t}>, %hi: tile<{t}>, %st: tile<{t}>",
                    f"""
%zero = constant <{t}: 0> : tile<{t}>
%one = constant <{t}: 1> : tile<{t}>
%three = constant <{t}: 3> : tile<{t}>
%s, %n = for {word}%i in (%lo to %hi, step %st) : tile<{t}> iter_values(%a = %zero, %c = %zero) -> (tile<{t}>, tile<{t}>) {{
  %m = muli %a, %three : tile<{t}>
  %x = addi %m, %i : tile<{t}>
  %d = addi %c, %one : tile<{t}>
  continue %x, %d : tile<{t}>, tile<{t}>
}}
%t1 = store_ptr_tko weak %o, %s : tile<ptr<{t}>>, tile<{t}> -> token
%t2 = store_ptr_tko weak %p, %n : tile<ptr<{t}>>, tile<{t}> -> token""",
                    False,
                )
                name = f"for.{'unsigned' if unsigned else 'signed'}.{lo}_to_{hi}_by_{step}.{t}".replace("-", "m")
                yield text_case(
                    name,
                    text,
                    [],
                    [(t, [total]), (t, [trips & mask])],
                    tier="smoke" if t == "i8" and lo == -3 else "standard",
                    ops=["for"],
                    types=[t],
                    scalars=[(t, v & mask) for v in (lo, hi, step)],
                )


def programs():
    yield text_case(
        "return_in_if",
        header(
            "%o: tile<ptr<i32>>",
            """
%two = constant <i32: 2> : tile<i32>
%r = remi %b, %two unsigned : tile<i32>
%one = constant <i32: 1> : tile<i32>
%odd = cmpi equal %r, %one, unsigned : tile<i32> -> tile<i1>
if %odd {
  %five = constant <i32: 5> : tile<i32>
  %big = cmpi greater_than %b, %five, unsigned : tile<i32> -> tile<i1>
  if %big {
    return
  }
}
%q = offset %o, %b : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
%t = store_ptr_tko weak %q, %b : tile<ptr<i32>>, tile<i32> -> token""",
        ),
        [],
        [("i32", [b if not (b % 2 and b > 5) else 0 for b in range(16)])],
        (16, 1, 1),
        "smoke",
        ["return", "if"],
    )
    yield text_case(
        "return_first",
        header(
            "%o: tile<ptr<i32>>, %c: tile<i1>",
            """
if %c {
  return
} else {
}
%k = constant <i32: 3> : tile<i32>
%t = store_ptr_tko weak %o, %k : tile<ptr<i32>>, tile<i32> -> token""",
            False,
        ),
        [],
        [("i32", [0])],
        ops=["return"],
        scalars=[("i1", 1)],
    )
    for n in (1, 2, 6, 27, 97):
        x, steps = n, 0
        while x != 1:
            x, steps = (3 * x + 1 if x & 1 else x // 2), steps + 1
        yield text_case(
            f"collatz.{n}",
            header(
                "%o: tile<ptr<i32>>, %n: tile<i32>",
                """
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%three = constant <i32: 3> : tile<i32>
%steps = loop iter_values(%x = %n, %s = %zero) : tile<i32>, tile<i32> -> tile<i32> {
  %done = cmpi equal %x, %one, signed : tile<i32> -> tile<i1>
  if %done {
    break %s : tile<i32>
  }
  %s1 = addi %s, %one : tile<i32>
  %low = andi %x, %one : tile<i32>
  %odd = cmpi equal %low, %one, signed : tile<i32> -> tile<i1>
  if %odd {
    %t = muli %x, %three : tile<i32>
    %u = addi %t, %one : tile<i32>
    continue %u, %s1 : tile<i32>, tile<i32>
  }
  %h = shri %x, %one unsigned : tile<i32>
  continue %h, %s1 : tile<i32>, tile<i32>
}
%t = store_ptr_tko weak %o, %steps : tile<ptr<i32>>, tile<i32> -> token""",
                False,
            ),
            [],
            [("i32", [steps])],
            tier="smoke" if n == 27 else "standard",
            ops=["loop", "break", "continue"],
            scalars=[("i32", n)],
        )
    # loop: results of other types than its values; a value from outside of it in the break
    yield text_case(
        "loop_result_types",
        header(
            "%o: tile<ptr<i64>>, %p: tile<ptr<i32>>, %n: tile<i32>",
            """
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%w, %same = loop iter_values(%i = %zero) : tile<i32> -> tile<i64>, tile<i32> {
  %e = exti %i signed : tile<i32> -> tile<i64>
  %done = cmpi greater_than_or_equal %i, %n, signed : tile<i32> -> tile<i1>
  if %done {
    %sq = muli %e, %e : tile<i64>
    break %sq, %n : tile<i64>, tile<i32>
  }
  %j = addi %i, %one : tile<i32>
  continue %j : tile<i32>
}
%t1 = store_ptr_tko weak %o, %w : tile<ptr<i64>>, tile<i64> -> token
%t2 = store_ptr_tko weak %p, %same : tile<ptr<i32>>, tile<i32> -> token""",
            False,
        ),
        [],
        [("i64", [49]), ("i32", [7])],
        ops=["loop"],
        types=["i64", "i32"],
        scalars=[("i32", 7)],
    )
    # nested for: an inner loop with no trips, a continue that gives an outer value
    yield text_case(
        "nested_for",
        header(
            "%o: tile<ptr<i32>>",
            """
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%four = constant <i32: 4> : tile<i32>
%s = for %i in (%zero to %four, step %one) : tile<i32> iter_values(%a = %zero) -> (tile<i32>) {
  %in = for %j in (%zero to %i, step %one) : tile<i32> iter_values(%c = %a) -> (tile<i32>) {
    %e = cmpi equal %j, %one, signed : tile<i32> -> tile<i1>
    if %e {
      continue %a : tile<i32>
    }
    %d = addi %c, %j : tile<i32>
    %f = addi %d, %one : tile<i32>
    continue %f : tile<i32>
  }
  %g = addi %in, %i : tile<i32>
  continue %g : tile<i32>
}
%t = store_ptr_tko weak %o, %s : tile<ptr<i32>>, tile<i32> -> token""",
            False,
        ),
        [],
        [("i32", [_nested_for()])],
        tier="smoke",
        ops=["for", "continue"],
    )
    # every operand is used again after the operation that might have overwritten it
    yield text_case(
        "fan_out",
        header(
            "%a: tile<ptr<i32>>, %o: tile<ptr<i32>>",
            f"""
%i = iota : tile<8xi32>
{spread('%a', ('%p1', '%p8', '%ps'), '%i', 'i32')}
%x, %t = load_ptr_tko weak %ps : tile<8xptr<i32>> -> tile<8xi32>, token
%y = addi %x, %x : tile<8xi32>
%z = muli %x, %y : tile<8xi32>
%u = subi %z, %x : tile<8xi32>
%v = xori %u, %y : tile<8xi32>
%w = addi %v, %x : tile<8xi32>
%w2 = addi %w, %z : tile<8xi32>
{spread('%o', ('%q1', '%q8', '%qs'), '%i', 'i32')}
%t2 = store_ptr_tko weak %qs, %w2 : tile<8xptr<i32>>, tile<8xi32> -> token""",
            False,
        ),
        [("i32", list(range(1, 9)))],
        [("i32", [(((x * 2 * x - x) ^ (2 * x)) + x + 2 * x * x) & M for x in range(1, 9)])],
        ops=["addi"],
    )
    yield text_case(
        "if_without_else",
        header(
            "%o: tile<ptr<i32>>",
            """
%three = constant <i32: 3> : tile<i32>
%c = cmpi less_than %b, %three, unsigned : tile<i32> -> tile<i1>
if %c {
  %q = offset %o, %b : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %t = store_ptr_tko weak %q, %three : tile<ptr<i32>>, tile<i32> -> token
}""",
        ),
        [],
        [("i32", [3, 3, 3, 0, 0])],
        (5, 1, 1),
        ops=["if"],
    )
    # tiles, not scalars, through if, for and loop
    yield text_case(
        "carried_tiles",
        header(
            "%o: tile<ptr<f32>>, %n: tile<i32>",
            """
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%f0 = constant <f32: 0.0> : tile<4x2xf32>
%f1 = constant <f32: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tile<4x2xf32>
%s, %k = for %i in (%zero to %n, step %one) : tile<i32> iter_values(%a = %f0, %c = %f1) -> (tile<4x2xf32>, tile<4x2xf32>) {
  %x = addf %a, %c : tile<4x2xf32>
  continue %c, %x : tile<4x2xf32>, tile<4x2xf32>
}
%i8 = iota : tile<8xi32>
"""
            + spread("%o", ("%q1", "%q8", "%qs"), "%i8", "f32")
            + """
%r = reshape %k : tile<4x2xf32> -> tile<8xf32>
%t = store_ptr_tko weak %qs, %r : tile<8xptr<f32>>, tile<8xf32> -> token""",
            False,
        ),
        [],
        [("f32", [_f32(55.0 * v) for v in range(1, 9)])],
        tier="smoke",
        ops=["for"],
        types=["f32"],
        scalars=[("i32", 9)],
    )
    # separately rounded product and sum: a * b + c must not be fused where the product is stored too
    yield text_case(
        "no_fusion_across_use",
        header(
            "%a: tile<ptr<f32>>, %o: tile<ptr<f32>>, %p: tile<ptr<f32>>",
            """
%x, %t = load_ptr_tko weak %a : tile<ptr<f32>> -> tile<f32>, token
%m = mulf %x, %x : tile<f32>
%t1 = store_ptr_tko weak %o, %m : tile<ptr<f32>>, tile<f32> -> token
%n = negf %m : tile<f32>
%d = fma %x, %x, %n : tile<f32>
%t2 = store_ptr_tko weak %p, %d : tile<ptr<f32>>, tile<f32> -> token""",
            False,
        ),
        [("f32", [0x3F800001])],
        [("f32", [0x3F800002]), ("f32", [0x28800000])],
        tier="smoke",
        ops=["mulf", "fma"],
        types=["f32"],
    )


def _nested_for():
    s = 0
    for i in range(4):
        c = s
        for j in range(i):
            c = s if j == 1 else c + j + 1
        s = c + i
    return s


def _f32(x):
    return from_float("f32", x)


def control():
    yield from loops()
    yield from programs()
    yield from random_programs()


FAMILIES = {"control": control}
