#!/usr/bin/env python3
"""What tileasm says of every file of tests/corpus/invalid: code, class, byte or instruction, operand and message, as in
DIAGNOSTICS there. `invalid_files_test.py --update` writes that file anew: read the difference."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

TILEASM = os.environ["TILEASM"]
FOLDER = pathlib.Path(os.environ["SOURCE_DIR"]) / "tests" / "corpus" / "invalid"
# The class of the published list, by the subclass of the diagnostic where those names differ. Files that keep the form
# and break the language are the validator's.
SUBCLASSES = {"Version": "unsupported", "Feature": "unsupported"}


def diagnostics(path):
    done = subprocess.run([TILEASM, "check", "--diagnostics", "json", path.name], cwd=FOLDER, capture_output=True, timeout=60)
    found = [json.loads(line) for line in done.stderr.splitlines() if line.startswith(b"{")]
    return done.returncode, [d for d in found if d["severity"] == "error"]


def line(name, d):
    place = []
    for key in ("byte_offset", "function", "instruction", "op", "operand"):
        if d.get(key) is not None:
            place.append(f"{key} {d[key]}")
    return f'{name}: {d["code"]} {d["class"]}/{d["subclass"]} {", ".join(place) or "file"}: {d["message"]}'


def report():
    lines = []
    for path in sorted(FOLDER.glob("*.tileirbc")):
        status, found = diagnostics(path)
        lines += [line(path.stem, d) for d in found] or [f"{path.stem}: status {status}"]
    return lines


class InvalidFiles(unittest.TestCase):
    maxDiff = None

    def test_diagnostics_are_those_of_the_list(self):
        self.assertEqual(report(), (FOLDER / "DIAGNOSTICS").read_text().splitlines())

    def test_every_file_has_the_class_that_was_published(self):
        expected = dict(reversed(text.split()) for text in (FOLDER / "EXPECTED").read_text().splitlines())
        self.assertEqual(sorted(expected), [p.stem for p in sorted(FOLDER.glob("*.tileirbc"))])
        for name, kind in expected.items():
            status, found = diagnostics(FOLDER / (name + ".tileirbc"))
            with self.subTest(name=name):
                self.assertTrue(found)
                first = found[0]
                self.assertEqual(status, 1)
                if kind == "Verify":
                    # Some of these a Module cannot hold, so that the reader says what the validator would.
                    self.assertIn(first["class"], ("invalid", "malformed"))
                elif name != "magic_wrong":  # without a magic number a file is text, which this one is not either
                    self.assertEqual(first["subclass"], kind)
                    self.assertEqual(first["class"], SUBCLASSES.get(kind, "malformed"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        (FOLDER / "DIAGNOSTICS").write_text("\n".join(report()) + "\n")
    else:
        unittest.main()
