#!/usr/bin/env python3
"""Commands of tileasm over several files and folders, and the rules of colours for both programs."""
import json
import os
import pathlib
import pty
import subprocess
import tempfile
import unittest

TILEASM, TILEVM = os.environ["TILEASM"], os.environ["TILEVM"]
TEXT = "cuda_tile.module @m {\n  entry @k(%x: tile<i32>) {\n    %a = addi %x, %x : tile<i32>\n    return\n  }\n}\n"
OTHER = TEXT.replace("addi", "muli").replace("%x, %x :", "%x,%x :")
WRONG = TEXT.replace("    return", "    %b = addi %a, %c : tile<i32>\n    return")


def run(program, *args, cwd=None, env=None, **kwargs):
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE")}
    return subprocess.run([program, *args], capture_output=True, cwd=cwd, timeout=60, env={**clean, **(env or {})}, **kwargs)


class Inputs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = pathlib.Path(self.folder.name)
        # What a folder is searched for: endings, magic numbers, and text that begins like a module.
        self.write("in/a.tile", TEXT)
        self.write("in/sub/b.tile", OTHER)
        self.write("in/sub/deep/by_content", "// a kernel\n\n" + TEXT)
        self.write("in/notes.md", "cuda_tile is a dialect")
        self.write("in/empty", "")
        self.write("in/.hidden/c.tile", "wrong")
        code = self.tool("as", "in/a.tile", "-o", "-").stdout
        self.write("in/code.bin", code)
        os.symlink("..", self.dir / "in" / "sub" / "loop")

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def tool(self, *args, status=0, **kwargs):
        done = run(TILEASM, *args, cwd=self.dir, **kwargs)
        self.assertEqual(done.returncode, status, (args, done.stderr))
        return done

    def made(self, folder):
        return sorted(str(p.relative_to(self.dir / folder)) for p in (self.dir / folder).rglob("*") if p.is_file())

    def test_folders_are_walked(self):
        found = [json.loads(line)["file"] for line in self.tool("stats", "--json", "in").stdout.splitlines()]
        self.assertEqual(found, ["in/a.tile", "in/code.bin", "in/sub/b.tile", "in/sub/deep/by_content"])
        self.tool("check", "in")
        self.tool("check", "in/a.tile", "in/sub/", "in/code.bin")

    def test_outputs_keep_their_places(self):
        self.tool("as", "in", "-o", "out/")
        self.assertEqual(self.made("out"), ["a.tilebc", "code.tilebc", "sub/b.tilebc", "sub/deep/by_content.tilebc"])
        self.tool("dis", "out", "-o", "text/")
        self.assertEqual(self.made("text"), ["a.tile", "code.tile", "sub/b.tile", "sub/deep/by_content.tile"])
        self.assertEqual((self.dir / "text/a.tile").read_text(), TEXT)
        self.tool("convert", "out", "--to", "tileirbc@13.2", "-o", "converted/")
        self.assertEqual((self.dir / "converted/sub/b.tileirbc").read_bytes()[8:10], bytes([13, 2]))
        self.tool("diff", "in/a.tile", "converted/a.tileirbc")
        # The short form: text becomes bytecode, bytecode text.
        self.tool("in/a.tile", "in/code.bin", "-o", "short/")
        self.assertEqual(self.made("short"), ["a.tilebc", "code.tile"])

    def test_a_folder_for_one_file(self):
        self.tool("as", "in/a.tile", "-o", "new/")
        self.tool("as", "in/sub/b.tile", "-o", "new")
        self.tool("dis", "-", "-o", "new/", input=TEXT.encode())
        self.assertEqual(self.made("new"), ["a.tilebc", "b.tilebc", "stdin.tile"])

    def test_several_inputs_need_a_folder(self):
        for command in (("as",), ("dis",), ("convert", "--to", "tilebc"), ()):
            for inputs in (("in/a.tile", "in/sub/b.tile"), ("in",)):
                done = self.tool(*command, *inputs, status=2)
                self.assertIn(b"several inputs, but no -o", done.stderr)
                self.assertIn(b"is no folder", self.tool(*command, *inputs, "-o", "one.out", status=2).stderr)
        self.assertEqual(self.made("in"), [".hidden/c.tile", "a.tile", "code.bin", "empty", "notes.md", "sub/b.tile", "sub/deep/by_content"])
        self.assertIn(b"twice", self.tool("check", "-", "-", status=2, input=TEXT.encode()).stderr)

    def test_outputs_do_not_meet(self):
        done = self.tool("as", "in/a.tile", "in/../in/a.tile", "-o", "out/", status=2)
        self.assertIn(b"out/a.tilebc is the output of another input", done.stderr)
        before = (self.dir / "in/sub/b.tile").read_bytes()
        self.assertIn(b"is the input itself", self.tool("dis", "in", "-o", "in/", status=2).stderr)
        self.assertEqual((self.dir / "in/sub/b.tile").read_bytes(), before)

    def test_every_error_names_its_file_and_the_worst_status_counts(self):
        self.write("in/sub/wrong.tile", WRONG)
        done = self.tool("check", "in", status=1)
        self.assertIn(b"in/sub/wrong.tile:4:", done.stderr)
        done = self.tool("check", "missing.tile", "in", "also_missing.tile", status=3)
        for name in (b"missing.tile: error", b"in/sub/wrong.tile:4:", b"also_missing.tile: error"):
            self.assertIn(name, done.stderr)
        # The others are written all the same.
        self.tool("as", "in", "-o", "out/", status=1)
        self.assertEqual(self.made("out"), ["a.tilebc", "code.tilebc", "sub/b.tilebc", "sub/deep/by_content.tilebc"])
        for line in self.tool("--diagnostics=json", "check", "missing.tile", "in", status=3).stderr.splitlines():
            self.assertIn(json.loads(line)["file"], ("missing.tile", "in/sub/wrong.tile"))
        (self.dir / "nothing").mkdir()
        self.assertIn(b"holds no file of Tile IR", self.tool("check", "nothing", "in/a.tile", status=3).stderr)
        self.assertIn(b"5 files, 1 with errors", self.tool("-v", "check", "in", status=1).stderr)

    def test_fmt_of_a_folder(self):
        self.assertEqual(self.tool("fmt", "--check", "in", status=1).stdout, b"in/sub/b.tile\n")
        self.tool("fmt", "-i", "in")
        self.tool("fmt", "--check", "in")
        self.assertEqual((self.dir / "in/sub/b.tile").read_text(), TEXT.replace("addi", "muli"))

    def test_diff_of_folders(self):
        self.tool("as", "in", "-o", "out/")
        self.assertEqual(self.tool("diff", "in", "out").stdout, b"")
        self.write("in/a.tile", TEXT.replace("addi", "subi"))
        self.write("in/more.tile", TEXT)
        done = self.tool("diff", "in", "out", status=5)
        self.assertIn(b"in/a.tile and out/a.tilebc differ", done.stdout)
        self.assertIn(b"more is only in in", done.stdout)
        self.tool("diff", "in", "out/a.tilebc", status=2)

    def test_what_a_command_does_not_take(self):
        self.assertIn(b"is not expected", self.tool("diff", "in/a.tile", "in/a.tile", "in/code.bin", status=2).stderr)
        self.assertIn(b"is not expected", self.tool("check", "--bare", "in/a.tile", status=2).stderr)

    def test_forms_of_as(self):
        self.tool("as", "in/a.tile", "--to", "tileirbc@13.3", "-o", "x")
        self.assertEqual((self.dir / "x").read_bytes()[8:10], bytes([13, 3]))
        self.tool("as", "in/a.tile", "--emit", "tileirbc", "--bytecode-version", "13.3", "-o", "y")
        self.assertEqual((self.dir / "x").read_bytes(), (self.dir / "y").read_bytes())
        for form in ("text", "tilebc@13.1", "tileirbc@13.9", "foo"):
            self.tool("as", "in/a.tile", "--to", form, status=2)
        self.tool("as", "in/a.tile", "--bytecode-version", "13.3", status=2)

    def test_several_names(self):
        out = self.tool("ops", "addi", "0x49").stdout
        self.assertIn(b"## addi\n", out)
        self.assertIn(b"## mmaf\n", out)
        done = self.tool("explain", "E0501", "nonsense", "T0101", status=2)
        self.assertIn(b"exit status 4", done.stdout)


class Colours(unittest.TestCase):
    """--color, then NO_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM, then whether standard error is a terminal."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "wrong.tile")
        pathlib.Path(self.path).write_text(WRONG)

    def coloured(self, command, terminal, env):
        clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE")}
        master, slave = pty.openpty() if terminal else os.pipe()
        try:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=slave, timeout=60, env={**clean, "TERM": "xterm", **env})
            text = os.read(master, 65536)
        finally:
            os.close(slave)
            os.close(master)
        self.assertIn(b"error", text)
        return b"\x1b[" in text

    def test_rules(self):
        always, never, auto = ("--color=always",), ("--color=never",), ("--color=auto",)
        cases = [  # options, terminal, environment, colours
            ((), True, {}, True),
            ((), False, {}, False),
            (auto, True, {}, True),
            (auto, False, {}, False),
            (always, False, {"NO_COLOR": "1"}, True),
            (never, True, {"CLICOLOR_FORCE": "1"}, False),
            ((), True, {"NO_COLOR": "1"}, False),
            ((), True, {"NO_COLOR": ""}, True),
            ((), False, {"CLICOLOR_FORCE": "1"}, True),
            ((), False, {"CLICOLOR_FORCE": "0"}, False),
            ((), False, {"CLICOLOR_FORCE": ""}, False),
            ((), False, {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
            ((), True, {"CLICOLOR": "0"}, False),
            ((), True, {"CLICOLOR": "1"}, True),
            ((), True, {"TERM": "dumb"}, False),
            ((), True, {"TERM": ""}, False),
        ]
        for name, command in (("tileasm", [TILEASM, "check", self.path]), ("tilevm", [TILEVM, self.path]),
                              ("tilevm run", [TILEVM, "run", self.path]), ("usage", [TILEASM, "--nonsense"])):
            for options, terminal, env, wanted in cases:
                with self.subTest(name=name, options=options, terminal=terminal, env=env):
                    self.assertEqual(self.coloured([*command, *options], terminal, env), wanted)


if __name__ == "__main__":
    unittest.main()
