#!/usr/bin/env python3
"""Makes a case of a launch: record.py LAUNCH --name FAMILY/NAME --out DIR [--against IMPL]

LAUNCH is a job file, a launch.json or a bundle. The launch is run on --impl (tilevm); what it leaves behind becomes the expected memory only
if something independent agrees: expectations in the job file that cover every changed buffer, or a second implementation, or an oracle, which is
any program that speaks the protocol of implementations (adapters/template.py). Otherwise nothing is written and the status is 5.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from runner import compare, execute, export, numeric, suite  # noqa: E402

STRUCTURE = {"cuda_tile", "entry", "global", "return", "yield", "continue", "break", "else", "module", "testing"}


class Refused(Exception):
    """The launch makes no case."""


def options(argv, prog):
    p = argparse.ArgumentParser(
        prog=prog,
        description="Makes a case of a launch whose result is confirmed by expectations, a second implementation or an oracle.",
        epilog="Exit status: 0 written, 5 nothing confirms the result or something contradicts it, 2 usage, 3 cannot be run.",
    )
    p.add_argument("launch", metavar="LAUNCH", help="job file, launch.json or bundle")
    p.add_argument("--name", required=True, metavar="FAMILY/NAME")
    p.add_argument("--out", required=True, metavar="DIR", help="the case goes to DIR/FAMILY/NAME")
    p.add_argument("--impl", default="tilevm", metavar="IMPL", help="where the values come from (tilevm)")
    p.add_argument(
        "--against", action="append", default=[], metavar="IMPL", help="must agree; may be given several times"
    )
    p.add_argument("--rule", default="exact", help="bits, exact, ulp:N or close:ABS:REL (exact)")
    p.add_argument("--what", default="", help="a remark")
    p.add_argument("--tier", choices=suite.TIERS, default="standard")
    p.add_argument("--timeout", type=float, default=60, metavar="S")
    a = p.parse_args(argv)
    if not re.fullmatch(r"[a-z0-9_]+/[A-Za-z0-9_.+-]+", a.name):
        p.error("--name: expected FAMILY/NAME of letters, digits, . _ + -")
    try:
        a.keys = parse_rule(a.rule)
    except ValueError:
        p.error(f"--rule {a.rule}: expected bits, exact, ulp:N or close:ABS:REL")
    return a


def parse_rule(text):
    name, *numbers = text.split(":")
    if name in ("bits", "exact") and not numbers:
        return {"rule": name}
    if name == "ulp" and len(numbers) == 1:
        return {"rule": "ulp", "n": int(numbers[0])}
    if name == "close" and len(numbers) == 2:
        return {"rule": "close", "abs": float(numbers[0]), "rel": float(numbers[1])}
    raise ValueError(text)


def program(variable, name):
    return shlex.split(os.environ.get(variable, name))


def call(words, what):
    try:
        done = subprocess.run(words, capture_output=True, check=False, timeout=300)
    except OSError as e:
        raise execute.Broken(f"{what}: {e}") from None
    if done.returncode:
        raise Refused(f"{what}: {done.stderr.decode(errors='replace').strip()[-600:]}")
    return done.stdout.decode(errors="replace")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def unpacked(launch, folder):
    """(case without expectations, files, buffers that the job's own expectations cover)."""
    call([*program("TILEVM", "tilevm"), "conformance", "unpack", launch, folder], launch)
    case = json.loads(read(os.path.join(folder, "case.json")))
    covered = case.pop("checked")
    kernel = os.path.join(folder, case["kernel"])
    text = os.path.join(folder, "kernel.tile")
    if case["form"] != "text":
        call([*program("TILEASM", "tileasm"), "dis", kernel, "-o", text], kernel)
    case.update(form="text", kernel="kernel.tile")
    files = {"kernel.tile": read(text)}
    for b in case["buffers"]:
        files[b["file"]] = read(os.path.join(folder, b["file"]))
    return case, files, covered


def lowest_version(text):
    """The lowest version of tileirbc that can hold the kernel."""
    assembler = execute.Assembler(os.environ.get("TILEASM", "tileasm"))
    with tempfile.TemporaryDirectory() as folder:
        for minor in range(1, 6):
            with open(os.path.join(folder, "kernel.tile"), "wb") as f:
                f.write(text)
            if assembler.convert(folder, f"tileirbc@13.{minor}")[0]:
                return f"13.{minor}"
    return "13.5"


def described(case, text, a):
    """The case with what reports and adapters need to know."""
    source = re.sub(r"//.*", "", text.decode(errors="replace"))
    words = set(re.findall(r"[A-Za-z]\w*", re.sub(r"(?:\d+x|\?x)+(?=[a-z])", " ", source)))
    types = sorted(w for w in words if w in numeric.FLOATS or w in numeric.INTS or w == "i4")
    ops = set(re.findall(r"^\s*(?:%[^=]*=\s*)?([a-z]\w*)\b", source, re.M)) - STRUCTURE
    head = {"case": a.name, "tier": a.tier, "ops": sorted(ops), "types": types}
    if a.what:
        head["what"] = a.what
    order = ("goal", "form", "kernel", "entry", "grid", "params", "buffers")
    head.update({k: case[k] for k in order[:3]}, needs={"version": lowest_version(text), "types": types})
    head.update({k: case[k] for k in order[3:]}, expect={"outcome": "ok", "buffers": []})
    return head


def result_of(impl, case, files, a):
    """(status, memory of every buffer afterwards, description) of an implementation."""
    command = execute.command_of(impl)
    can = execute.describe(command)
    form = "text"
    if "text" not in can.get("forms", []):
        form = f"tileirbc@{case['needs']['version']}" if "tileirbc" in can["forms"] else "tilebc"
    assembler = execute.Assembler(os.environ.get("TILEASM", "tileasm"))
    worker = execute.Worker(command, can, {"timeout": a.timeout, "form": form, "assembler": assembler, "tmp": None})
    try:
        folder, problem = worker.prepare(case, files)
        if problem:
            raise Refused(f"{impl}: {problem[1]}")
        status = worker.once(folder)
        memory = [execute.read(os.path.join(folder, f"out{i}.bin")) for i in range(len(case["buffers"]))]
        return status, memory, can
    finally:
        worker.close()


def expected(case, files, status, memory, a):
    """Writes what the launch did into the case; returns the buffers that it changed."""
    if status["status"] == "trap":
        case["expect"] = {"outcome": "trap", "class": status.get("class", ""), "strict_only": True}
        return []
    if status["status"] != "ok":
        raise Refused(f"{a.impl}: {status['status']}: {status.get('reason', '')}")
    if any(m is None or len(m) != b["bytes"] for m, b in zip(memory, case["buffers"])):
        raise Refused(f"{a.impl}: a buffer was not written back whole")
    changed = [i for i, b in enumerate(case["buffers"]) if memory[i] != files[b["file"]]]
    for i in changed:
        t = case["buffers"][i]["type"]
        count = case["buffers"][i]["bytes"] * 8 // numeric.memory_bits(t)
        keys = dict(a.keys) if t in numeric.FLOATS or a.keys["rule"] != "ulp" else {"rule": "bits"}
        case["expect"]["buffers"].append(
            {"buffer": i, "type": t, "first": 0, "count": count, **keys, "file": f"e{i}.bin"}
        )
        files[f"e{i}.bin"] = memory[i]
    prints = [line for line in status.get("prints", "").split("\n") if line]
    if prints:
        case["expect"]["prints"] = prints
    if not changed and not prints:
        raise Refused("the launch changes nothing and prints nothing")
    return changed


def confirmed(case, files, changed, covered, a):
    """Who confirms the result, as a list of names; raises where somebody disagrees or nobody is there."""
    names = []
    if covered is not None:
        call([*program("TILEVM", "tilevm"), "run", a.launch], f"{a.launch}: its own expectations")
        missing = sorted(set(changed) - set(covered))
        if not missing and (changed or case["expect"]["outcome"] != "ok"):
            names.append("the job's expectations")
        elif not a.against:
            raise Refused(
                f"no expectation of the job covers buffer {missing[0] if missing else 0}, which the launch changes"
            )
    for impl in a.against:
        status, memory, can = result_of(impl, case, files, a)
        judged = {**can, "profile": "tilevm"} if case["expect"]["outcome"] == "trap" else can
        verdict, detail = compare.judge(case, files, status, lambda i, memory=memory: memory[i], judged)
        if verdict != "pass":
            raise Refused(f"{impl} does not agree: {verdict}: {detail}")
        names.append(f"{can.get('name', impl)} {can.get('version', '')}".strip())
    if not names:
        raise Refused(
            "one engine alone makes no case: name a second one or an oracle with --against, or give the job expectations"
        )
    return names


def main(argv=None, prog=None):
    a = options(argv, prog)
    try:
        with tempfile.TemporaryDirectory() as folder:
            case, files, covered = unpacked(a.launch, folder)
        case = described(case, files["kernel.tile"], a)
        status, memory, can = result_of(a.impl, case, files, a)
        changed = expected(case, files, status, memory, a)
        by = confirmed(case, files, changed, covered, a)
    except Refused as e:
        print(f"error: {e}", file=sys.stderr)
        return 5
    except (execute.Broken, OSError, ValueError, subprocess.TimeoutExpired) as e:
        print(f"error: {e}", file=sys.stderr)
        return 3
    case["expect"]["origin"] = {"values": f"{can.get('name')} {can.get('version', '')}".strip(), "confirmed": by}
    export.write_folder(a.out, case, files)
    print(f"{os.path.join(a.out, *a.name.split('/'))}: {len(changed)} buffers, confirmed by {', '.join(by)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
