#!/usr/bin/env python3
"""Every diagnostic code is expected by name by a test, so that none changes or disappears unseen, and has an example in
vm/ops/diag_examples.inc whose words are those of the sources.

Usage: check_codes.py SOURCE_DIR | --self-test

Reads vm/base/diag_codes.inc and looks for each code below tests/: in filetests, unit tests, command-line tests and the
recorded diagnostics of damaged files. Prints the codes that none has, and the examples of which no source has a literal
of ten characters, or a shorter one near the code.
"""
import pathlib
import re
import sys

# Codes that no test can bring about, with the reason.
UNTESTABLE = {
    "E0903": "a machine without memory",
    "T0104": "for implementations under test; this machine limits local memory before it starts, with L0103",
    "L0105": "kept for implementations that stop at a number of errors",
}
ENDINGS = {".tile", ".cpp", ".h", ".py", ".json", ""}


def codes(text):
    return re.findall(r"^TILE_CODE\((\w+),", text, re.MULTILINE)


def missing(all_codes, texts):
    found = set()
    for text in texts:
        found.update(re.findall(r"\b[A-Z]\d{4}\b", text))
    return [code for code in all_codes if code not in found and code not in UNTESTABLE]


def examples(text):
    return dict(re.findall(r'^TILE_EXAMPLE\((\w+), "(.*)"\)$', text, re.MULTILINE))


NEAR = 12  # lines


def stale(all_codes, shown, sources):
    """Codes without an example, and those whose example has no literal that stands near the code in a source."""
    literals, anywhere = {}, set()
    for text in sources:
        anywhere.update(part for part in re.findall(r'"((?:[^"\\]|\\.)*)"', text) if len(part.strip()) >= 10)
        lines = text.splitlines()
        for at, line in enumerate(lines):
            for code in re.findall(r"\bCode::(\w+)", line):
                near = "\n".join(lines[max(0, at - NEAR):at + NEAR])
                literals.setdefault(code, set()).update(
                    part for part in re.findall(r'"((?:[^"\\]|\\.)*)"', near) if len(part.strip()) >= 4)
    wrong = [code for code in all_codes if code not in shown]
    for code, example in shown.items():
        words = literals.get(code, set()) | anywhere
        if code not in all_codes or (code not in UNTESTABLE and not any(part in example for part in words)):
            wrong.append(code)
    return wrong


def main(argv):
    if argv == ["--self-test"]:
        known = codes("TILE_CODE(E0101, Malformed, \"x\", \"y\")\nTILE_CODE(E0102, Malformed, \"x\", \"y\")\n")
        assert known == ["E0101", "E0102"]
        assert missing(known, ["// ERROR E0101@3 text", "codes == \"E01020\""]) == ["E0102"]
        assert missing(["E0903"], []) == []
        shown = examples('TILE_EXAMPLE(E0101, "the end of k")\nTILE_EXAMPLE(E0102, "other words")\n')
        assert shown == {"E0101": "the end of k", "E0102": "other words"}
        assert stale(["E0101", "E0102", "E0103"], shown, ['fail(Code::E0101,\n "the end of " + x);', 'Code::E0102, "words"']) == ["E0103"]
        assert stale(["E0101"], {"E0101": "else"}, ['fail(Code::E0101, "the end of " + x);']) == ["E0101"]
        assert stale(["U0001"], {"U0001": "x is not known"}, ['return usage(x + " is not known");']) == []
        return 0
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(argv[0])
    all_codes = codes((root / "vm" / "base" / "diag_codes.inc").read_text())
    files = [p for p in (root / "tests").rglob("*") if p.is_file() and p.suffix in ENDINGS and p.name != "check_codes.py"]
    texts = [p.read_bytes().decode("latin-1") for p in files]
    wrong = missing(all_codes, texts) + [code for code in UNTESTABLE if code not in all_codes]
    for code in wrong:
        print(f"{code}: no test expects it")
    sources = [p.read_text() for folder in ("vm", "assembler", "backend", "tools") for p in (root / folder).rglob("*.cpp")]
    for code in stale(all_codes, examples((root / "vm" / "ops" / "diag_examples.inc").read_text()), sources):
        print(f"{code}: its example is missing, or has no words of a source that reports it")
        wrong.append(code)
    print(f"{len(all_codes)} codes, {len(wrong)} problems")
    return 1 if wrong or not all_codes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
