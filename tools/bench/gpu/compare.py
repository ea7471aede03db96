#!/usr/bin/env python3
"""Times the kernels of peer_set.py, or of shape_set.py, on a GPU, beside another compiler's cubins of the same programs, and writes table and chart.

  python3 tools/bench/gpu/compare.py TILEVM --peers FOLDER --out FOLDER     # FOLDER/gpu-table.json, .md and .svg
  python3 tools/bench/gpu/compare.py TILEVM --make-peers FOLDER             # FOLDER/NAME.cubin by tileiras; takes no GPU
  python3 tools/bench/gpu/compare.py --from gpu-table.json --out FOLDER --readme README.md

TILEVM is the program; tileasm, which --make-peers takes, is looked for beside it. A peer's cubin has the name of the kernel, and its entry too
unless FOLDER/jobs.json, a list of {"name", "entry"}, says otherwise. Kernels without one get tilevm's columns alone. Each round of a row times
tilevm's launch and the peer's in turn, so a row's ratio is of one run; results of both are compared, and, unless --no-check, every kernel is first run on a
small case and compared with NumPy. Takes Python 3.9 and NumPy; with --torch also PyTorch, whose figures are of a run of their own.

Exit status 1: a kernel failed, or a result is wrong."""
import argparse
import datetime
import fnmatch
import html
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy as np

import peer_set
import shape_set

SETS = {"peers": peer_set, "shapes": shape_set}
BEGIN, END = "<!-- gpu-table:begin, by tools/bench/gpu/compare.py --readme -->", "<!-- gpu-table:end -->"


# ---- measuring


def grid_of(row, sms):
    return (min(row.grid[0], max(1, sms // row.ctas)), *row.grid[1:]) if row.persistent else row.grid


def words(args, shapes=None):
    out = []
    for i, (element, shape, generator, *gap) in enumerate(args):
        shape = shapes[i] if shapes else shape
        strides = f":strides({shape[1] + gap[0]},1)" if gap and gap[0] else ""
        out += ["--arg", f"array:{element}[{','.join(map(str, shape))}]{strides}={generator}"]
    return out


def command(options, *more):
    plan = [w for p in options.plan for w in ("--plan", p)]
    return [options.tilevm, *more, *plan]


def run_json(line, seconds):
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, f"took longer than {seconds} s"
    if done.returncode != 0:
        return None, (done.stderr.strip() or f"status {done.returncode}")[-600:]
    return json.loads(done.stdout), done.stderr.strip()


def timing(t):
    return {k: t[k] for k in ("median_s", "p10_s", "p90_s", "rounds")}


def measure(row, options, sms, entries):
    # Programs that loop over tiles take any grid: each compiler gets as many blocks as it can run at once. The peer gives a block of a
    # program that asks for several CTAs as many multiprocessors, tilevm one.
    grid = (min(row.grid[0], sms), *row.grid[1:]) if row.persistent else row.grid
    line = command(options, "bench", str(row.path())) + ["--grid", ",".join(map(str, grid)), *words(row.args), "--json", "--rounds", str(options.rounds)]
    line += ["--flops" if row.unit == "TFLOP/s" else "--bytes", repr(row.work)]
    peer = options.peers / f"{row.kernel}.cubin" if options.peers else None
    if peer and peer.exists():
        line += ["--peer-cubin", str(peer), "--peer-entry", entries.get(row.kernel, row.kernel), "--peer-grid", ",".join(map(str, grid_of(row, sms)))]
    j, said = run_json(line, options.limit)
    if j is None and "--peer-cubin" in line:  # the peer may be what failed: its cubin may be for another device
        without = line[:line.index("--peer-cubin")]
        j, again = run_json(without, options.limit)
        said = f"the peer: {said}" if j else again
    if j is None:
        return {"kernel": row.kernel, "workload": row.workload, "grid": grid, "failed": said}
    scale = 1e-12 if row.unit == "TFLOP/s" else 1e-9
    out = {"kernel": row.kernel, "workload": row.workload, "grid": grid, "unit": row.unit, "ours": timing(j["ours"]), "rate": row.work / j["ours"]["median_s"] * scale,
           "copy_gbs": j["copy_bytes"] / j["copy"]["median_s"] * 1e-9, "threads": j["threads"], "registers": j["registers"], "local_bytes": j["local_bytes"],
           "shared_bytes": j["shared_bytes"], "compile_s": None if j["cached"] else j["compile_s"], "linker": j["linker"]}
    if row.unit == "GB/s":
        out["of_copy"] = out["rate"] / out["copy_gbs"]
    if "mma" in j:
        out["mma_tflops"] = j["mma"]["tflops"]
        out["of_mma"] = out["rate"] / j["mma"]["tflops"]
    if "peer" in j:
        out |= {"peer": timing(j["peer"]), "peer_rate": row.work / j["peer"]["median_s"] * scale, "ratio": j["peer_over_ours"]}
        worst = max((r["largest_difference"] / r["largest_value"] for r in j["peer_results"] if not r["equal"] and r["largest_value"] > 0), default=0.0)
        unequal = [r for r in j["peer_results"] if not r["equal"]]
        exact = row.tolerance == 0
        out["differing"] = sum(r["different"] for r in unequal)
        out["worst"] = worst
        out["agrees"] = not unequal if exact else worst <= row.tolerance
    elif options.peers and said:
        out["peer_failed"] = said
    return out


# ---- right or wrong


def f8e4m3():
    """The values of f8E4M3FN, by their bits."""
    bits = np.arange(256)
    sign, exponent, mantissa = np.where(bits & 128, -1.0, 1.0), bits >> 3 & 15, bits & 7
    values = sign * np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))
    values[[127, 255]] = np.nan
    return values


def load(path, element):
    a = np.load(path)
    if element == "bf16":
        return (a.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if element == "f8E4M3FN":
        return f8e4m3()[a.view(np.uint8)]
    return a.astype(np.float64) if a.dtype.kind == "f" else a.astype(np.int64)


def tf32(x):
    """f32 values rounded to eleven bits of significand, ties to even."""
    b = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    b = (b + 0xFFF + (b >> 13 & 1)) & 0xFFFFE000
    return b.astype(np.uint32).view(np.float32).astype(np.float64)


def small_case(row):
    """Shapes of a small launch of the row's kernel, ragged where the kernel may be, its grid, and what it computes."""
    if row.small:
        return row.small()
    kind = row.kernel.split("_")[0]
    size = [int(x) for x in (re.search(r"\d+(x\d+)+", row.kernel) or ["0"])[0].split("x")]
    if kind in ("mm", "bmm"):
        m, n, k, batch = size[0] + 16, size[1] + 48, 2 * size[2] + 16, 3
        rounded = tf32 if "tf32" in row.kernel else lambda x: x
        tiles = [peer_set.up(m, size[0]), peer_set.up(n, size[1])]
        if kind == "mm":
            return [(m, k), (k, n), (m, n)], (tiles[0] * tiles[1] // (2 if row.persistent else 1),), lambda a, b, c: rounded(a) @ rounded(b)
        return [(batch, m, k), (batch, k, n), (batch, m, n)], (*tiles, batch), lambda a, b, c: rounded(a) @ rounded(b)
    if kind == "attention":
        d, length = row.args[0][1][3], 256

        def attend(q, k, v, o):
            s = q @ np.swapaxes(k, 2, 3) / np.sqrt(d)
            if "causal" in row.kernel:
                s = np.where(np.tril(np.ones((length, length), bool)), s, -np.inf)
            p = np.exp(s - s.max(axis=3, keepdims=True))
            return p @ v / p.sum(axis=3, keepdims=True)

        return [(1, 16, length, d)] * 4, (length // 128, 16), attend
    if kind == "vadd":
        n = int(row.kernel.split("_")[1])
        return [(3 * n + 16,)] * 3, (4,), lambda a, b, c: (a.astype(np.float32) + b.astype(np.float32)).astype(np.float64)
    if kind == "softmax":
        def soft(x, y):
            e = np.exp(x - x.max(axis=1, keepdims=True))
            return e / e.sum(axis=1, keepdims=True)

        return [(32, 4096 - 16)] * 2, (5,), soft
    if kind == "layernorm":
        def norm(x, w, b, y):
            mean = x.mean(axis=1, keepdims=True)
            return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + 1e-5) * w + b

        return [(16, 4096), (4096,), (4096,), (16, 4096)], (16,), norm
    m, n = size[0] * 2 + 16, size[1] + 16
    return [(m, n), (n, m)], (peer_set.up(m, size[0]), peer_set.up(n, size[1])), lambda x, y: x.T


def check(row, options, machine=("--gpu",)):
    """What is wrong with the kernel's result of its small case; empty if nothing is."""
    shapes, grid, function = small_case(row)
    with tempfile.TemporaryDirectory() as folder:
        outs = [f"{folder}/{i}.npy" for i in range(len(row.args))]
        line = command(options, str(row.path()), *machine, "--grid", ",".join(map(str, grid)), *words(row.args, shapes))
        for i, path in enumerate(outs):
            line += ["--out", f"{i}={path}"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=options.limit)
        if done.returncode != 0:
            return done.stderr.strip()[-600:] or f"status {done.returncode}"
        arrays = [load(path, a[0]) for path, a in zip(outs, row.args)]
    want = function(*arrays)
    largest, error = np.abs(want).max(), np.abs(arrays[-1] - want).max()
    # Half of the row's tolerance is the rounding of one result; the rest is the order of sums.
    if not error <= max(row.tolerance, 2**-20 if row.args[-1][0] == "f32" and row.tolerance else 0) * largest:
        return f"largest difference {error:.3g} from NumPy, largest value {largest:.3g}"
    return ""


def torch_times(rows, rounds):
    """Median seconds of PyTorch's own functions, one of each workload."""
    import torch
    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i8": torch.int8}
    torch.backends.cuda.matmul.allow_tf32 = True
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    out = {}
    for row in rows:
        kind = row.kernel.split("_")[0]
        if row.workload in out or row.args[0][0] not in types:
            continue
        make = lambda a: torch.randint(-3, 4, a[1], dtype=torch.int8, device="cuda") if a[0] == "i8" else torch.randn(a[1], device="cuda").mul_(0.5).to(types[a[0]])
        a = [make(x) for x in row.args[:-1]]
        f = {"mm": lambda: torch._int_mm(a[0], a[1]) if row.args[0][0] == "i8" else a[0] @ a[1], "bmm": lambda: a[0] @ a[1], "vadd": lambda: a[0] + a[1], "softmax": lambda: a[0].softmax(1),
             "attention": lambda: torch.nn.functional.scaled_dot_product_attention(*a, is_causal="causal" in row.kernel), "transpose": lambda: a[0].t().contiguous(),
             "layernorm": lambda: torch.nn.functional.layer_norm(a[0], (a[0].shape[1],), a[1], a[2], 1e-5)}[kind]
        times = []
        try:
            for i in range(10 + rounds):
                flush.fill_(i & 1)
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                f()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e-3)
        except RuntimeError as e:
            print(f"torch: {row.workload}: {str(e)[:200]}", file=sys.stderr)
            continue
        out[row.workload] = statistics.median(times[10:])
    return {"version": torch.__version__, "median_s": out}


def make_peers(options):
    """Compiles the kernels' own text with tileiras, which the pip package nvidia-cuda-tileiras has."""
    package = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
    tileiras, tileasm = package / "bin" / "tileiras", pathlib.Path(options.tilevm).with_name("tileasm")
    if not os.access(tileiras, os.X_OK):
        sys.exit(f"{tileiras} is not there: pip install nvidia-cuda-tileiras")
    # With CUDA_HOME or CUDA_PATH set, tileiras takes another libNVVM.
    environment = {k: v for k, v in os.environ.items() if k not in ("CUDA_HOME", "CUDA_PATH")} | {"PATH": f"{package / 'bin'}:/usr/bin:/bin", "LD_LIBRARY_PATH": str(package / "lib")}
    options.make_peers.mkdir(parents=True, exist_ok=True)
    for kernel in options.set.build()[0]:
        if fnmatch.fnmatch(kernel.name, options.only):
            binary = options.make_peers / f"{kernel.name}.tileirbc"
            subprocess.run([tileasm, "convert", options.set.KERNELS / f"{kernel.name}.tile", "--to", "tileirbc@13.3", "-o", binary], check=True)
            subprocess.run([tileiras, "--gpu-name", options.arch, binary, "-o", binary.with_suffix(".cubin")], env=environment, check=True)
    version = subprocess.run([tileiras, "--version"], env=environment, capture_output=True, text=True).stdout
    (options.make_peers / "version.txt").write_text(next((w for w in reversed(version.split()) if w[:1] in "Vv1" and "." in w), "tileiras") + "\n")


def measure_all(options):
    devices, said = run_json([options.tilevm, "devices", "--json"], 60)
    if not devices or not devices["devices"]:
        sys.exit(f"no GPU: {said}")
    device = next((d for d in devices["devices"] if str(d["ordinal"]) == os.environ.get("TILEVM_DEVICE", "0")), devices["devices"][0])
    version = subprocess.run([options.tilevm, "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    entries = {}
    peer_name = ""
    if options.peers:
        if (options.peers / "jobs.json").exists():
            entries = {j["name"]: j["entry"] for j in json.loads((options.peers / "jobs.json").read_text())}
        version_file = options.peers / "version.txt"
        peer_name = options.peer_name + (" " + version_file.read_text().strip() if version_file.exists() else "")
    table = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
             "machine": {"device": device["name"], "target": device["target"], "sms": device["sms"], "driver": devices["driver"]["version"], "cuda": devices["driver"]["cuda"], "host": platform.processor() or platform.machine()},
             "tilevm": version, "assembler": devices["assembler"].split(",")[0], "peer": peer_name, "plan": options.plan, "rounds": options.rounds, "rows": [], "wrong": {}}
    rows = [r for r in options.set.build()[1] if fnmatch.fnmatch(r.kernel, options.only) or fnmatch.fnmatch(r.workload, options.only)]
    checked = set()
    for row in rows:
        begin = time.monotonic()
        if options.check and row.kernel not in checked:
            checked.add(row.kernel)
            try:
                if wrong := check(row, options):
                    table["wrong"][row.kernel] = wrong
            except subprocess.TimeoutExpired:
                table["wrong"][row.kernel] = f"took longer than {options.limit} s"
        r = measure(row, options, device["sms"], entries)
        table["rows"].append(r)
        text = r["failed"] if "failed" in r else f"{r['rate']:.0f} {r['unit']}" + (f", peer {r['peer_rate']:.0f}, ratio {r['ratio']:.2f}, {'agrees' if r['agrees'] else 'DIFFERS'}" if "peer" in r else "")
        print(f"{row.kernel}, {row.workload}: {text}{'; WRONG: ' + table['wrong'][row.kernel] if row.kernel in table['wrong'] else ''} ({time.monotonic() - begin:.1f} s)", file=sys.stderr, flush=True)
        if options.out:
            write(table, options.out, json_only=True)  # what was measured stays if the rest is cut short
    table["checked"] = len(checked)
    if options.torch:
        try:
            table["torch"] = torch_times(rows, options.rounds)
        except ImportError:
            print("torch is not there; no figures of it", file=sys.stderr)
    return table


# ---- showing


def best_of(table):
    """For each workload: the best kernel of either compiler. Their rates are of rows that need not be of one kernel."""
    out = {}
    for r in table["rows"]:
        if "failed" in r:
            continue
        w = out.setdefault(r["workload"], {"unit": r["unit"], "ours": None, "peer": None, "torch": None, "of_copy": None})
        if w["ours"] is None or r["rate"] > w["ours"][0]:
            w["ours"], w["of_copy"] = (r["rate"], r["kernel"]), r.get("of_copy")
        if "peer_rate" in r and (w["peer"] is None or r["peer_rate"] > w["peer"][0]):
            w["peer"] = (r["peer_rate"], r["kernel"])
        seconds = table.get("torch", {}).get("median_s", {}).get(r["workload"])
        if seconds:
            w["torch"] = r["rate"] * r["ours"]["median_s"] / seconds
    return out


def number(x):
    return "" if x is None else f"{x:.0f}" if x >= 100 else f"{x:.1f}"


def setting(table):
    m = table["machine"]
    text = f"{table['date']}, {m['device']} ({m['target']}, {m['sms']} SMs), driver {m['driver']} (CUDA {m['cuda']}), {table['tilevm']}, {table['assembler']}"
    if table["peer"]:
        text += f"; peer: {table['peer']}"
    if table.get("torch"):
        text += f"; PyTorch {table['torch']['version']}"
    if table["plan"]:
        text += f"; --plan {' '.join(table['plan'])}"
    return text


def best_table(table):
    best = best_of(table)
    with_peer, with_torch = any(w["peer"] for w in best.values()), any(w["torch"] for w in best.values())
    head = ["workload", "tilevm"] + (["peer", "ratio"] if with_peer else []) + (["PyTorch"] if with_torch else []) + ["of a copy"]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for name, w in best.items():
        cells = [name, f"{number(w['ours'][0])} {w['unit']}"]
        if with_peer:
            cells += [number(w["peer"][0]), f"{w['ours'][0] / w['peer'][0]:.2f}"] if w["peer"] else ["", ""]
        if with_torch:
            cells.append(number(w["torch"]))
        cells.append(f"{100 * w['of_copy']:.0f} %" if w["of_copy"] else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def kernel_table(table):
    head = ["kernel", "workload", "grid", "median ms (p10, p90)", "rate", "of a copy", "of mma", "peer ms", "peer", "ratio", "differs from the peer", "threads", "regs", "local", "shared", "compile s"]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for r in table["rows"]:
        if "failed" in r:
            lines.append(f"| {r['kernel']} | {r['workload']} | {'x'.join(map(str, r['grid']))} | failed: {' '.join(r['failed'].replace('|', '/').split())[:160]} " + "| " * (len(head) - 4) + "|")
            continue
        o = r["ours"]
        cells = [r["kernel"], r["workload"], "x".join(map(str, r["grid"])), f"{o['median_s'] * 1e3:.4g} ({o['p10_s'] * 1e3:.4g}, {o['p90_s'] * 1e3:.4g})", f"{number(r['rate'])} {r['unit']}",
                 f"{100 * r['of_copy']:.0f} %" if "of_copy" in r else "", f"{100 * r['of_mma']:.0f} %" if "of_mma" in r else ""]
        if "peer" in r:
            differs = "none" if not r["differing"] else f"{r['differing']} by {r['worst']:.2g} of the largest" + ("" if r["agrees"] else " (too much)")
            cells += [f"{r['peer']['median_s'] * 1e3:.4g}", number(r["peer_rate"]), f"{r['ratio']:.2f}", differs]
        else:
            cells += ["failed" if "peer_failed" in r else "", "", "", ""]
        cells += [str(r["threads"]), str(r["registers"]), str(r["local_bytes"]), str(r["shared_bytes"]), "cached" if r["compile_s"] is None else f"{r['compile_s']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown(table):
    wrong = "".join(f"- {k}: {v}\n" for k, v in table["wrong"].items())
    checks = f"{table['checked']} kernels were compared with NumPy on small cases, {len(table['wrong'])} wrong.\n\n{wrong}" if table.get("checked") else "Results were not compared with NumPy in this run.\n"
    return f"""# tilevm on {table['machine']['device']}

{setting(table)}. Clocks warm, L2 overwritten before every launch, medians of {table['rounds']} rounds.

## Best of the kernels for each workload

`ratio`: tilevm's best rate by the peer's best; above 1 tilevm is faster.

{best_table(table)}

![chart](gpu-table.svg)

## Every kernel

`ratio`: peer's time by tilevm's for the same program, tile and grid, timed in turn. `differs`: elements whose bits differ after one launch from the same
inputs. `p0`: a block for each tile, `p1`: blocks that loop over tiles. `local`: bytes a thread has in local memory, spills among them.

{kernel_table(table)}

{checks}"""


COLORS = {"tilevm": "#2a7f62", "peer": "#8a8f98", "PyTorch": "#c9a227"}


def chart(table):
    """Bars for each workload, as long as the rate is against the best of that workload."""
    best = best_of(table)
    left, width, bar, gap = 270, 420, 13, 12
    names = ["tilevm"] + (["peer"] if any(w["peer"] for w in best.values()) else []) + (["PyTorch"] if any(w["torch"] for w in best.values()) else [])
    height = 64 + len(best) * (len(names) * bar + gap)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 130}" height="{height}" font-family="sans-serif" font-size="11">', f'<rect width="100%" height="100%" fill="white"/>',
           f'<text x="8" y="16" font-size="12">{html.escape(table["machine"]["device"])}, {html.escape(table["date"])}: best rate of each; longer is faster</text>']
    for i, n in enumerate(names):
        out.append(f'<rect x="{8 + 190 * i}" y="26" width="10" height="10" fill="{COLORS[n]}"/><text x="{22 + 190 * i}" y="35">{html.escape(table["peer"] if n == "peer" else n)}</text>')
    y = 50
    for workload, w in best.items():
        values = {"tilevm": w["ours"][0], "peer": w["peer"][0] if w["peer"] else None, "PyTorch": w["torch"]}
        most = max(v for v in values.values() if v)
        out.append(f'<text x="{left - 8}" y="{y + len(names) * bar / 2 + 4:.1f}" text-anchor="end">{html.escape(workload)}</text>')
        for n in names:
            if values[n]:
                length = width * values[n] / most
                unit = f" {w['unit']}" if n == "tilevm" else ""
                out.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" fill="{COLORS[n]}"/><text x="{left + length + 4:.1f}" y="{y + bar - 3}">{number(values[n])}{unit}</text>')
            y += bar
        y += gap
    return "\n".join(out + ["</svg>"]) + "\n"


def readme(table, path):
    text = path.read_text()
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        sys.exit(f"{path} has no lines '{BEGIN}' and '{END}'")
    path.write_text(f"{text[:begin]}{BEGIN}\n{setting(table)}. `ratio`: tilevm's best kernel by the peer's best, above 1 tilevm is faster.\n\n{best_table(table)}\n{text[end:]}")


def write(table, folder, json_only=False):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu-table.json").write_text(json.dumps(table, indent=1) + "\n")
    if not json_only:
        (folder / "gpu-table.md").write_text(markdown(table))
        (folder / "gpu-table.svg").write_text(chart(table))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilevm", nargs="?", help="the program; not with --from")
    parser.add_argument("--peers", type=pathlib.Path, metavar="FOLDER", help="cubins of the peer")
    parser.add_argument("--peer-name", default="tileiras")
    parser.add_argument("--make-peers", type=pathlib.Path, metavar="FOLDER", help="compile the kernels with tileiras into FOLDER, and end")
    parser.add_argument("--arch", default="sm_90", help="for --make-peers")
    parser.add_argument("--set", choices=SETS, default="peers", help="peers: of peer_set.py; shapes: of shape_set.py")
    parser.add_argument("--only", default="*", metavar="GLOB", help="of kernels or workloads")
    parser.add_argument("--plan", action="append", default=[], metavar="KEY=VALUE", help="forced choices of tilevm's planner")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="seconds that one kernel may take")
    parser.add_argument("--no-check", dest="check", action="store_false", help="no comparison with NumPy")
    parser.add_argument("--torch", action="store_true", help="figures of PyTorch too")
    parser.add_argument("--from", dest="recorded", type=pathlib.Path, metavar="JSON", help="do not measure: show this record")
    parser.add_argument("--out", type=pathlib.Path, metavar="FOLDER", help="for table and chart; default: the table on standard output")
    parser.add_argument("--readme", type=pathlib.Path, metavar="FILE", help="rewrite the table between the marks there")
    options = parser.parse_args()
    if bool(options.recorded) == bool(options.tilevm):
        parser.error("either TILEVM or --from")
    options.set = SETS[options.set]
    if options.make_peers:
        return make_peers(options)
    table = json.loads(options.recorded.read_text()) if options.recorded else measure_all(options)
    if options.out:
        write(table, options.out)
    else:
        print(markdown(table))
    if options.readme:
        readme(table, options.readme)
    bad = [r["kernel"] for r in table["rows"] if "failed" in r or not r.get("agrees", True)] + list(table["wrong"])
    if bad:
        sys.exit("failed or wrong: " + " ".join(dict.fromkeys(bad)))


if __name__ == "__main__":
    main()
