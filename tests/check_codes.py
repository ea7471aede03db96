#!/usr/bin/env python3
"""Every diagnostic code is expected by name by a test, so that none changes or disappears unseen.

Usage: check_codes.py SOURCE_DIR | --self-test

Reads vm/base/diag_codes.inc and looks for each code below tests/: in filetests, unit tests, command-line tests and the
recorded diagnostics of damaged files. Prints the codes that none has.
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


def main(argv):
    if argv == ["--self-test"]:
        known = codes("TILE_CODE(E0101, Malformed, \"x\", \"y\")\nTILE_CODE(E0102, Malformed, \"x\", \"y\")\n")
        assert known == ["E0101", "E0102"]
        assert missing(known, ["// ERROR E0101@3 text", "codes == \"E01020\""]) == ["E0102"]
        assert missing(["E0903"], []) == []
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
    print(f"{len(all_codes)} codes, {len(wrong)} problems")
    return 1 if wrong or not all_codes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
