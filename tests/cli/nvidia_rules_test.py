#!/usr/bin/env python3
"""What the filetests of the validator expect to be rejected, NVIDIA's tileirdisasm rejects too.

Each operation with an ERROR comment in tests/files/validate is left alone in its file, written to tileirbc without
validation, and given to tileirdisasm, which verifies what it reads. Exits with 77 without the tools
(tests/cli/nvidia_tools_test.py says where they are looked for).
"""
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

from nvidia_tools_test import ROOT, TILEASM, find_tools, run

# Codes of rules that are stricter here, with the reason. Of E0504 one filetest: results of one operation that have
# different types, for which text has no form.
STRICTER = {"E0608": "constant indices of slices are checked"}
STRICTER_LINES = ("get_tensor_shape: result 1 has type",)
ERROR = re.compile(r"// ERROR (\w+)@\d+ (.*)")


def variants(path):
    """(code, message, text) for each expected error of a file, without the operations that have others."""
    lines = path.read_text().split("\n")
    wrong = [i for i, line in enumerate(lines) if ERROR.search(line)]
    plain = [line.split("//")[0].rstrip() for line in lines]
    for at in wrong:
        kept = [text for i, text in enumerate(plain) if i == at or i not in wrong or text.endswith(("{", "}", ")"))]
        code, message = ERROR.search(lines[at]).groups()
        yield code, message, "\n".join(kept)


def check(case):
    tileirdisasm, name, code, message, text, base = case
    source, written = base.with_suffix(".tile"), str(base.with_suffix(".tileirbc"))
    source.write_text(text)
    asked = False
    for form in ("tileirbc", "tileirbc@13.5"):  # some rules came with 13.5
        if run(TILEASM, "as", str(source), "--no-validate", "--provisional", "--to", form, "-o", written).returncode:
            continue
        asked = True
        if run(tileirdisasm, written).returncode == 0:
            return name, code, message, "accepted"
    return name, code, message, "rejected" if asked else "not written"


def main():
    tools = find_tools()
    if not tools:
        print("tileirdisasm is missing")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for path in sorted((ROOT / "tests" / "files" / "validate").glob("bad_*.tile")):
            for code, message, text in variants(path):
                cases.append((tools[1], path.name, code, message, text, pathlib.Path(folder) / str(len(cases))))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(check, cases))
    failed = 0
    for name, code, message, outcome in found:
        stricter = code in STRICTER or message.startswith(STRICTER_LINES)
        if (outcome == "accepted") != stricter and outcome != "not written":
            failed += 1
            print(f"{name}: {code} {message}: {outcome} by tileirdisasm")
    counts = {o: sum(1 for f in found if f[3] == o) for o in ("rejected", "accepted", "not written")}
    print(f"{len(found)} errors, {counts}, {failed} failed")
    return 1 if failed or counts["rejected"] < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
