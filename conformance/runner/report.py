"""Reports of a run: text, JSON, JUnit XML and a page of HTML; merging of shards and the difference of two runs."""

import html
import json
import sys
from xml.sax.saxutils import escape, quoteattr

FAILURES = ("wrong", "crash", "hang", "refused", "accepted", "trapped", "no_trap", "protocol")
VERDICTS = ("pass",) + FAILURES + ("unsupported", "skipped")


def made(head, results):
    results = sorted(results, key=lambda r: r["case"])
    counts = {v: sum(r["verdict"] == v for r in results) for v in VERDICTS}
    return {"format": 1, **head, "counts": {v: n for v, n in counts.items() if n}, "results": results}


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def merged(reports):
    """Shards of one run as one report."""
    heads = [
        {k: r[k] for k in ("implementation", "implementation_version", "profile", "form", "tier")} for r in reports
    ]
    if any(h != heads[0] for h in ({**h, "implementation_version": heads[0]["implementation_version"]} for h in heads)):
        print("warning: the reports are not of one run", file=sys.stderr)
    by_case = {r["case"]: r for one in reports for r in one["results"]}
    head = {
        **heads[0],
        "only": reports[0]["only"],
        "shards": [s for r in reports for s in r["shards"]],
        "seconds": sum(r["seconds"] for r in reports),
    }
    return made(head, by_case.values())


def changes(old, new):
    """(case, verdict before, verdict now) of every case whose verdict differs."""
    before = {r["case"]: r["verdict"] for r in old["results"]}
    now = {r["case"]: r["verdict"] for r in new["results"]}
    return [
        (c, before.get(c, "absent"), now.get(c, "absent"))
        for c in sorted(set(before) | set(now))
        if before.get(c) != now.get(c)
    ]


def finish(r, a):
    """Writes what was asked for; returns the exit status."""
    others = [load(path) for path in a.diff]
    if a.json:
        write(a.json, json.dumps(r, indent=1) + "\n")
    if a.junit:
        write(a.junit, junit(r))
    if a.html:
        write(a.html, page(r, others))
    print(
        f"{r['implementation']} {r['implementation_version']}, tier {r['tier']}, form {r['form']}, profile {r['profile']}: "
        + ", ".join(f"{n} {v}" for v, n in r["counts"].items())
        + f" in {r['seconds']:.1f} s"
    )
    for old in others:
        show_changes(old, r)
    return 5 if any(r["counts"].get(v) for v in FAILURES) else 0


def named(r):
    return f"{r['implementation']} {r['implementation_version']}".strip()


def show_changes(old, new):
    found = changes(old, new)
    print(f"{len(found)} verdicts differ from {named(old)} ({old['form']}, profile {old['profile']})")
    for case, before, now in found:
        print(f"{before} -> {now}: {case}")
    return found


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def clean(text):
    """Without the characters that XML cannot hold."""
    return "".join(c if c >= " " or c in "\n\t" else "?" for c in text)


def junit(r):
    suites = {}
    for one in r["results"]:
        suites.setdefault(one["case"].split("/")[0], []).append(one)
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites name={quoteattr('conformance of ' + r['implementation'])}>",
    ]
    for name, results in suites.items():
        bad = sum(x["verdict"] in FAILURES for x in results)
        skipped = sum(x["verdict"] in ("unsupported", "skipped") for x in results)
        out.append(
            f"<testsuite name={quoteattr(name)} tests=\"{len(results)}\" failures=\"{bad}\" skipped=\"{skipped}\" time=\"{sum(x['seconds'] for x in results):.3f}\">"
        )
        for x in results:
            head = f"<testcase classname={quoteattr(name)} name={quoteattr(x['case'].split('/', 1)[1])} time=\"{x['seconds']:.3f}\""
            if x["verdict"] == "pass":
                out.append(head + "/>")
            elif x["verdict"] in FAILURES:
                out.append(
                    f"{head}><failure type={quoteattr(x['verdict'])} message={quoteattr(clean(x['detail'])[:200])}>{escape(clean(x['detail']))}</failure></testcase>"
                )
            else:
                out.append(
                    f"{head}><skipped message={quoteattr(x['verdict'] + ': ' + clean(x['detail'])[:200])}/></testcase>"
                )
        out.append("</testsuite>")
    return "\n".join(out + ["</testsuites>", ""])


STYLE = """body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1300px;padding:0 1em;color:#1b1f24}
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #d0d7de;padding:2px 6px;text-align:center;font-size:12px}
th{background:#f6f8fa;position:sticky;top:0}td.op{text-align:left;font-family:monospace}td.left{text-align:left;font-size:13px}
.ok{background:#dafbe1}.bad{background:#ffcecb;font-weight:600}.part{background:#fff8c5}.none{color:#8c959f}code{background:#f6f8fa}"""


def matrix(r):
    """(op, type) -> (passed, failed, not judged)."""
    cells = {}
    for x in r["results"]:
        for op in x["ops"] or ["-"]:
            for t in x["types"] or ["-"]:
                c = cells.setdefault((op, t), [0, 0, 0])
                c[0 if x["verdict"] == "pass" else 1 if x["verdict"] in FAILURES else 2] += 1
    return cells


TYPE_ORDER = (
    "i1",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "tf32",
    "f8E4M3FN",
    "f8E5M2",
    "f8E8M0FNU",
    "f4E2M1FN",
    "fnv8E5M3FNU",
    "-",
)


def cell(counts):
    good, bad, open_ = counts
    css = "bad" if bad else "part" if not good else "ok"
    text = f"{good}/{good + bad}" + (f" +{open_}" if open_ else "")
    return css, text


def page(r, others=()):
    """One page without anything from elsewhere. With other reports, of older runs or other implementations, all stand in each cell."""
    e = html.escape
    runs = [(one, matrix(one)) for one in (r, *others)]
    title = f"Tile IR conformance: {r['implementation']}"
    out = [f"<!doctype html><meta charset=utf-8><title>{e(title)}</title><style>{STYLE}</style><h1>{e(title)}</h1>"]
    for one, _ in runs:
        counts = ", ".join(f"{n} {v}" for v, n in one["counts"].items())
        out.append(
            f"<p>{e(one['implementation'])} {e(one['implementation_version'])}, tier {e(one['tier'])}"
            f"{' (' + e(' '.join(one['only'])) + ')' if one['only'] else ''}, form {e(one['form'])}, profile {e(one['profile'])}: <b>{e(counts)}</b>, {one['seconds']:.1f} s</p>"
        )
    families = {}
    for x in r["results"]:
        f = families.setdefault(x["case"].split("/")[0], [0, 0, 0])
        f[0 if x["verdict"] == "pass" else 1 if x["verdict"] in FAILURES else 2] += 1
    out.append("<h2>Families</h2><table><tr><th>family<th>passed<th>failed<th>not judged</tr>")
    for name, (good, bad, open_) in families.items():
        out.append(f"<tr><td class=op>{e(name)}<td>{good}<td class={'bad' if bad else 'ok'}>{bad}<td>{open_}</tr>")
    out.append(
        "</table><h2>Operations and types</h2><p>Passed of judged, + not judged"
        + ("; one line for each run, in the order above" if others else "")
        + ".</p>"
    )
    types = [t for t in TYPE_ORDER if any(t == k[1] for _, m in runs for k in m)]
    ops = sorted({k[0] for _, m in runs for k in m})
    out.append("<table><tr><th>operation" + "".join(f"<th>{e(t)}" for t in types) + "</tr>")
    for op in ops:
        row = [f"<tr><td class=op>{e(op)}"]
        for t in types:
            shown = [cell(m[op, t]) if (op, t) in m else None for _, m in runs]
            if not any(shown):
                row.append("<td class=none>")
            else:
                css = shown[0][0] if shown[0] else "none"
                row.append(f"<td class={css}>" + "<br>".join(s[1] if s else "-" for s in shown))
        out.append("".join(row) + "</tr>")
    out.append("</table>")
    for old in others:
        out.append(f"<h2>Verdicts that differ from {e(named(old))}</h2><table><tr><th>case<th>there<th>here</tr>")
        for case, before, now in changes(old, r):
            out.append(
                f"<tr><td class=op>{e(case)}<td>{e(before)}<td class={'bad' if now in FAILURES else 'ok'}>{e(now)}</tr>"
            )
        out.append("</table>")
    out.append("<h2>Failures</h2><table><tr><th>case<th>verdict<th>detail</tr>")
    for x in r["results"]:
        if x["verdict"] in FAILURES:
            out.append(f"<tr><td class=op>{e(x['case'])}<td>{e(x['verdict'])}<td class=left>{e(x['detail'])}</tr>")
    out.append("</table><h2>Not judged</h2><table><tr><th>reason<th>cases</tr>")
    reasons = {}
    for x in r["results"]:
        if x["verdict"] in ("unsupported", "skipped"):
            key = f"{x['verdict']}: {x['detail'][:120]}"
            reasons[key] = reasons.get(key, 0) + 1
    for key, n in sorted(reasons.items(), key=lambda kv: -kv[1]):
        out.append(f"<tr><td class=left>{e(key)}<td>{n}</tr>")
    return "\n".join(out + ["</table>", ""])
