"""Judges the memory that an implementation left behind (protocol.md, section 5)."""

import numpy as np

from runner import numeric


def _right(t, got, want, rule, e, allowance):
    """Which elements are right."""
    same = got == want
    if rule == "bits" or t not in numeric.FLOATS and rule in ("exact", "ulp"):
        return same
    if t in numeric.FLOATS:
        both_nan = numeric.is_nan(t, got) & numeric.is_nan(t, want)
        any_nan = numeric.is_nan(t, got) | numeric.is_nan(t, want)
        same = np.where(any_nan, both_nan, same)
    if rule == "exact":
        return same
    if rule == "ulp":
        (gs, gp), (ws, wp) = numeric.place(t, got), numeric.place(t, want)
        return same | (~any_nan & (gs == ws) & (np.abs(gp - wp) <= e["n"]))
    g, w = numeric.values(t, got), numeric.values(t, want)
    with np.errstate(all="ignore"):
        if rule == "close":
            limit = e["abs"] + e["rel"] * np.abs(w)
        elif rule == "bound":
            limit = allowance
        else:
            raise ValueError(f"unknown rule {rule}")
        near = np.abs(g - w) <= limit
    # An infinity of the expected value must be met; an allowance of 0 tells zeros apart.
    return same | (near & (limit > 0) & np.isfinite(w)) | (np.isinf(limit) if rule == "bound" else False)


def _order_free(got, want, count, unit):
    """The first `count` elements may be permuted in runs of `unit`."""
    if not np.array_equal(got[count:], want[count:]):
        return False

    def runs(a):
        rows = a[:count].reshape(-1, unit)
        return rows[np.lexsort(rows.T[::-1])]

    return np.array_equal(runs(got), runs(want))


def check_array(e, after, files, strict):
    """None, or what is wrong with an array of the expectation e in the bytes `after`."""
    t, count, first = e["type"], e["count"], e["first"]
    n = (count * numeric.memory_bits(t) + 7) // 8
    got = numeric.bits_of(t, after[first : first + n], count)
    rule = e.get("strict", e["rule"]) if strict else e["rule"]
    detail = ""
    for i, name in enumerate([e["file"]] + e.get("alternatives", [])):
        want = numeric.bits_of(t, files[name], count)
        if rule == "order_free":
            if _order_free(got, want, e["permuted"], e["unit"]):
                return None
            wrong = got != want
        else:
            allowance = np.frombuffer(files[e["bound"]], "<f8") if "bound" in e else None
            wrong = ~_right(t, got, want, rule, e, allowance)
        if "free" in e and (not strict or e.get("free_strict")):
            wrong &= np.frombuffer(files[e["free"]], np.uint8) == 0
        if not wrong.any():
            return None
        if i == 0:
            at = int(np.argmax(wrong))
            width = (numeric.memory_bits(t) + 3) // 4
            g, w = f"0x{int(got[at]):0{width}X}", f"0x{int(want[at]):0{width}X}"
            if t in numeric.FLOATS:
                g += f" ({numeric.values(t, got[at:at + 1])[0]!r})"
                w += f" ({numeric.values(t, want[at:at + 1])[0]!r})"
            detail = f"buffer {e['buffer']} ({t}): {int(wrong.sum())} of {count} wrong by rule {rule}; first at {at}: found {g}, expected {w}"
            detail = detail.replace("np.float64(", "").replace("))", ")")
    return detail


def check_memory(case, files, outputs, strict):
    """None, or the first thing wrong with the buffers. `files` are those of the case, `outputs` a function from a buffer's number to its bytes."""
    by_buffer = {}
    for e in case["expect"]["buffers"]:
        by_buffer.setdefault(e["buffer"], []).append(e)
    for i, b in enumerate(case["buffers"]):
        before, after = files[b["file"]], outputs(i)
        if after is None:
            return f"buffer {i}: no output"
        if len(after) != len(before):
            return f"buffer {i}: {len(after)} bytes, expected {len(before)}"
        outside = np.frombuffer(after, np.uint8).copy()
        original = np.frombuffer(before, np.uint8)
        for e in by_buffer.get(i, []):
            n = (e["count"] * numeric.memory_bits(e["type"]) + 7) // 8
            outside[e["first"] : e["first"] + n] = original[e["first"] : e["first"] + n]
            wrong = check_array(e, after, files, strict)
            if wrong:
                return wrong
        if not np.array_equal(outside, original):
            at = int(np.argmax(outside != original))
            return f"buffer {i}: byte {at}, which must not change, is 0x{int(outside[at]):02X}, was 0x{int(original[at]):02X}"
    return None


def check_prints(expect, printed):
    """None, or what was not printed. Lines may come in any order, and others beside them."""
    lines = printed.split("\n")
    for text in expect.get("prints", []):
        if text not in lines:
            return f"the kernel did not print {text!r}"
        lines.remove(text)
    return None


def judge(case, files, status, outputs, can):
    """(verdict, detail) for a status that an implementation gave. `can`: its description (protocol.md, section 3)."""
    strict = can.get("profile") == "tilevm"
    expect, said = case["expect"], status.get("status")
    wanted = expect["outcome"]
    reason = str(status.get("reason", ""))[:400]
    if said in ("crash", "hang", "unsupported"):
        return said, reason
    if said not in ("ok", "trap", "rejected"):
        return "protocol", f"status is {said!r}"
    if wanted == "rejected":
        if said != "rejected":
            return "accepted", "an invalid program was accepted"
        if can.get("classes") and status.get("class") not in expect["classes"]:
            return "wrong", f"rejected as {status.get('class')!r}, expected {' or '.join(expect['classes'])}: {reason}"
        if can.get("lines") and "line" in expect and status.get("line") != expect["line"]:
            return "wrong", f"rejected at line {status.get('line')}, expected line {expect['line']}: {reason}"
        return "pass", ""
    if wanted == "survives":
        return "pass", ""
    if said == "rejected":
        return "refused", f"{status.get('class', '')}: {reason}"
    if wanted == "trap":
        if said != "trap":
            return "no_trap", f"expected a trap of class {expect['class']}"
        if can.get("classes") and status.get("class") != expect["class"]:
            return "wrong", f"trap of class {status.get('class')!r}, expected {expect['class']!r}"
        return "pass", ""
    if said == "trap":
        return "trapped", f"{status.get('class', '')}: {reason}"
    if case["goal"] == "check":
        return "pass", ""
    wrong = check_memory(case, files, outputs, strict) or (
        check_prints(expect, status.get("prints", "")) if can.get("prints") else None
    )
    return ("wrong", wrong) if wrong else ("pass", "")
