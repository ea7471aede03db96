#!/usr/bin/env python3
"""tileasm convert, diff, stats and dis --partial through the program."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TILEASM = os.environ["TILEASM"]
SOURCE = pathlib.Path(os.environ["SOURCE_DIR"])
EXAMPLE = str(SOURCE / "examples" / "04_f16.tile")


def tileasm(*args, data=None):
    return subprocess.run([TILEASM, *map(str, args)], input=data, capture_output=True)


class Forms(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def test_every_form_means_the_same(self):
        for form in ("tilebc", "tileirbc", "tileirbc@13.1", "tileirbc@13.2", "tileirbc@13.3", "tileirbc@13.4"):
            with self.subTest(form):
                out = self.dir / "x"
                done = tileasm("convert", EXAMPLE, "--to", form, "-o", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                if "@" in form:
                    self.assertEqual(out.read_bytes()[8:10], bytes([13, int(form[-1])]))
                self.assertEqual(tileasm("diff", EXAMPLE, out).returncode, 0)
        text = tileasm("convert", self.dir / "x", "--to", "text")
        self.assertEqual(text.returncode, 0)
        (self.dir / "y.tile").write_bytes(text.stdout)
        self.assertEqual(tileasm("diff", EXAMPLE, self.dir / "y.tile").returncode, 0)

    def test_a_version_that_lacks_something_names_it(self):
        (self.dir / "a.tile").write_text("cuda_tile.module @m {\n  entry @k(%x: tile<f32>) {\n    %y = atan2 %x, %x : tile<f32>\n    return\n  }\n}\n")
        done = tileasm("convert", self.dir / "a.tile", "--to", "tileirbc@13.1", "-o", self.dir / "a.bin")
        self.assertEqual(done.returncode, 1)
        for word in (b"E0607", b"atan2", b"13.2", b"a.tile:3:"):
            self.assertIn(word, done.stderr)
        self.assertFalse((self.dir / "a.bin").exists())

    def test_provisional_version_wants_the_switch(self):
        self.assertEqual(tileasm("convert", EXAMPLE, "--to", "tileirbc@13.5", "-o", self.dir / "x").returncode, 1)
        self.assertEqual(tileasm("convert", EXAMPLE, "--to", "tileirbc@13.5", "--provisional", "-o", self.dir / "x").returncode, 0)

    def test_unknown_forms(self):
        for form in ("foo", "tilebc@13.1", "tileirbc@13.9", "text@1"):
            self.assertEqual(tileasm("convert", EXAMPLE, "--to", form).returncode, 2, form)

    def test_diff_knows_what_means_the_same(self):
        # tileirbc writes an else for every if, and an empty dictionary of hints is none.
        text = ("cuda_tile.module @m {\n  global @g <i8: 1> : tile<2xi8>\n  entry @k(%c: tile<i1>, %p: tile<ptr<f32>>) {\n    if %c {\n      return\n    }\n"
                "    %v, %t = load_ptr_tko weak %p HINTS: tile<ptr<f32>> -> tile<f32>, token\n    return\n  }\n  entry @other() {\n    return\n  }\n}\n")
        (self.dir / "a.tile").write_text(text.replace("HINTS", ""))
        (self.dir / "b.tile").write_text(text.replace("HINTS", "optimization_hints=<> "))
        self.assertEqual(tileasm("convert", self.dir / "a.tile", "--to", "tileirbc", "-o", self.dir / "a.tileirbc").returncode, 0)
        self.assertIn(b"} else {", tileasm("dis", self.dir / "a.tileirbc").stdout)
        for other in ("a.tileirbc", "b.tile"):
            done = tileasm("diff", self.dir / "a.tile", self.dir / other)
            self.assertEqual((done.returncode, done.stdout), (0, b""), other)
        (self.dir / "c.tile").write_text(text.replace("HINTS", "").replace("      return\n    }", "      return\n    } else {\n      return\n    }"))
        done = tileasm("diff", self.dir / "a.tile", self.dir / "c.tile")
        self.assertEqual(done.returncode, 5)
        # Each item by itself: the global and the other entry are equal.
        self.assertEqual(done.stdout.decode(), "entry @k, line 4 of its canonical text:\n    if %0 {\n      return\n-   }\n+   } else {\n")

    def test_diff_shows_the_first_difference(self):
        changed = pathlib.Path(EXAMPLE).read_text().replace("nearest_even", "zero").replace("<f32: 0.0>", "<f32: 1.0>")
        self.assertNotEqual(changed, pathlib.Path(EXAMPLE).read_text())
        (self.dir / "b.tile").write_text(changed)
        done = tileasm("diff", EXAMPLE, self.dir / "b.tile")
        self.assertEqual(done.returncode, 5)
        self.assertRegex(done.stdout.decode(), r"(?m)^- .*\n\+ ")

    def test_stats(self):
        done = tileasm("stats", "--json", EXAMPLE)
        self.assertEqual(done.returncode, 0)
        stats = json.loads(done.stdout)
        self.assertEqual(stats["entries"], 1)
        self.assertEqual(stats["operations"]["mmaf"], 1)
        self.assertEqual(sum(stats["operations"].values()), stats["instructions"])

    def test_newer_minor_version(self):
        data = bytearray((SOURCE / "tests/corpus/tileirbc/raw_control_flow.13.5.tileirbc").read_bytes())
        data[9] = 9
        self.assertEqual(tileasm("dis", "-", data=bytes(data)).returncode, 1)
        self.assertIn(b"13.5", tileasm("dis", "-", data=bytes(data)).stderr)
        self.assertIn(b"--partial", tileasm("dis", "--help").stdout)
        done = tileasm("dis", "--partial", "-", data=bytes(data))
        self.assertIn(b"entry @", done.stdout)


if __name__ == "__main__":
    unittest.main()
