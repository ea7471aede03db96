#!/usr/bin/env python3
"""The command line of tileasm: commands, short forms, exit statuses, outputs."""
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TILEASM = os.environ["TILEASM"]
TEXT = "cuda_tile.module @m {\n  entry @k(%x: tile<i32>) {\n    %a = addi %x, %x : tile<i32>\n    return\n  }\n}\n"
WRONG = TEXT.replace(": tile<i32>\n    return", ": tile<i64>\n    return")


class TileasmTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = self.file("k.tile", TEXT)

    def file(self, name, content):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def run_tool(self, *args, stdin=None, status=0, env=None):
        done = subprocess.run([TILEASM, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done

    def out(self, *args, **kwargs):
        return self.run_tool(*args, **kwargs).stdout.decode()

    def test_text_to_bytes_and_back(self):
        code = os.path.join(self.folder.name, "x.tilebc")
        self.run_tool("as", self.path, "-o", code)
        self.assertEqual(self.out("dis", code), TEXT)
        self.assertEqual(self.out("dis", self.path), TEXT)
        self.assertEqual(self.out(code), TEXT)

    def test_default_output_stands_beside_the_input(self):
        self.run_tool("as", self.path)
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "k.tilebc")))
        other = self.file("b.c.tile", TEXT)
        self.run_tool(other)
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "b.c.tilebc")))
        self.run_tool("as", os.path.join(self.folder.name, "k.tilebc"), status=2)

    def test_standard_input_and_output(self):
        code = self.run_tool("as", "-", "-o", "-", stdin=TEXT.encode()).stdout
        self.assertEqual(self.run_tool("dis", "-", stdin=code).stdout.decode(), TEXT)
        self.assertEqual(self.run_tool("-", stdin=code).stdout.decode(), TEXT)
        self.assertEqual(self.run_tool("-", stdin=TEXT.encode()).stdout, code)

    def test_forms_are_recognised_by_content(self):
        code = self.run_tool("as", "-", "-o", "-", stdin=TEXT.encode()).stdout
        self.assertEqual(self.out("dis", self.file("named.tile", code)), TEXT)

    def test_tileirbc_of_every_stable_version(self):
        for version in ("13.1", "13.2", "13.3", "13.4"):
            self.run_tool("as", self.path, "--emit", "tileirbc", "--bytecode-version", version)
            code = pathlib.Path(self.folder.name) / "k.tileirbc"
            self.assertEqual(code.read_bytes()[8:10], bytes([13, int(version[-1])]))
            self.assertIn("addi %arg0, %arg0 : tile<i32>", self.out("dis", str(code)))
        self.run_tool("as", self.path, "--emit", "tileirbc", "--bytecode-version", "13.5", status=1)
        self.run_tool("as", self.path, "--emit", "tileirbc", "--bytecode-version", "13.5", "--provisional")
        self.run_tool("as", self.path, "--emit", "tileirbc", "--bytecode-version", "13.9", status=2)

    def test_options_of_dis(self):
        self.assertIn("entry @k(%0: tile<i32>)", self.out("dis", "--no-names", self.path))
        self.assertTrue(self.out("dis", "--bare", self.path).startswith("entry @k"))
        located = self.file("l.tile", TEXT.replace("tile<i32>\n", 'tile<i32> loc("a.py":1:2)\n'))
        self.assertNotIn("loc(", self.out("dis", located))
        self.assertIn('#loc1 = loc("a.py":1:2)', self.out("dis", "--debug-info", located))

    def test_errors_name_the_place_and_the_status_says_rejected(self):
        bad = self.file("bad.tile", WRONG)
        for command in ("as", "dis", "check", "fmt"):
            done = self.run_tool(command, bad, status=1)
            self.assertIn(b"bad.tile:3:24: error: addi: found type tile<i64>", done.stderr)
            self.assertIn(b"[E0501]", done.stderr)
            self.assertEqual(done.stdout, b"")
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "bad.tilebc")))

    def test_diagnostics_as_json(self):
        bad = self.file("bad.tile", WRONG)
        for args in (("--diagnostics", "json", "check", bad), ("check", "--diagnostics=json", bad)):
            found = json.loads(self.run_tool(*args, status=1).stderr)
            self.assertEqual((found["code"], found["line"], found["column"]), ("E0501", 3, 24))
        usage = json.loads(self.run_tool("as", "--diagnostics=json", status=2).stderr)
        self.assertEqual(usage["code"], "U0001")

    def test_check_reads_several_files_and_goes_on_after_errors(self):
        bad = self.file("bad.tile", WRONG)
        done = self.run_tool("check", bad, self.path, self.file("worse.tile", "entry"), status=1)
        self.assertIn(b"bad.tile", done.stderr)
        self.assertIn(b"worse.tile", done.stderr)
        self.assertEqual(self.run_tool("check", self.path).stderr, b"")

    def test_validation_can_be_left_out(self):
        invalid = self.file("invalid.tile", TEXT.replace("addi", "addf"))
        self.run_tool("as", invalid, status=1)
        self.run_tool("as", "--no-validate", invalid)

    def test_statuses(self):
        self.run_tool(status=2)
        self.run_tool("as", status=2)
        self.run_tool("dis", self.path, "--color", "blue", status=2)
        self.run_tool("dis", self.path, "--unknown", status=2)
        self.run_tool("dis", os.path.join(self.folder.name, "missing"), status=3)
        self.run_tool("dis", self.path, "-o", os.path.join(self.folder.name, "no", "such", "folder"), status=3)
        self.run_tool("dis", self.file("random.bin", bytes(range(256))), status=1)

    def test_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for args in (("dis", self.path), ("ops",)):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([TILEASM, *args], stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, 3, args)
            self.assertIn(b"[E0902]", done.stderr)

    def test_closed_pipe_is_silent(self):
        done = subprocess.run(f"'{TILEASM}' ops --json | head -c 1; exit 0", shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_bytecode_is_not_written_to_a_terminal(self):
        master, slave = pty.openpty()
        try:
            done = subprocess.run([TILEASM, "as", self.path, "-o", "-"], stdout=slave, stderr=subprocess.PIPE, timeout=60)
        finally:
            os.close(slave)
            os.close(master)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"terminal", done.stderr)

    def test_colour_only_where_wanted(self):
        bad = self.file("bad.tile", WRONG)
        self.assertNotIn(b"\x1b[", self.run_tool("check", bad, status=1).stderr)
        self.assertIn(b"\x1b[", self.run_tool("check", "--color=always", bad, status=1).stderr)

        def on_terminal(**env):
            master, slave = pty.openpty()
            try:
                subprocess.run([TILEASM, "check", bad], stderr=slave, timeout=60, env={**os.environ, "TERM": "xterm", **env})
                return os.read(master, 65536)
            finally:
                os.close(slave)
                os.close(master)

        self.assertIn(b"\x1b[", on_terminal())
        self.assertNotIn(b"\x1b[", on_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\x1b[", on_terminal(TERM="dumb"))

    def test_fmt(self):
        untidy = self.file("untidy.tile", "// head\n" + TEXT.replace("%x, %x : tile<i32>", "%x,%x :tile<i32>// note"))
        tidy = "// head\n" + TEXT.replace("tile<i32>\n    return", "tile<i32>  // note\n    return")
        self.assertEqual(self.out("fmt", untidy), tidy)
        self.assertEqual(self.out("fmt", "--check", untidy, self.path, status=1), untidy + "\n")
        self.run_tool("fmt", "-i", untidy)
        self.assertEqual(pathlib.Path(untidy).read_text(), tidy)
        self.assertEqual(self.out("fmt", "--check", untidy, self.path), "")
        self.run_tool("as", self.path)
        self.run_tool("fmt", os.path.join(self.folder.name, "k.tilebc"), status=2)

    def test_every_operation_is_listed_and_occurs_in_a_roundtrip_test(self):
        table = json.loads(self.out("ops", "--json"))["operations"]
        listed = self.out("ops").splitlines()
        self.assertEqual([line.split()[0] for line in listed], [op["name"] for op in table])
        words = set()
        for path in (ROOT / "tests" / "files" / "roundtrip").glob("*.tile"):
            words |= set(re.findall(r"[\w.]+", re.sub(r"//.*", "", path.read_text())))
        words |= {word.removeprefix("cuda_tile.") for word in set(words)}
        self.assertEqual([op["name"] for op in table if op["name"] not in words], [])

    def test_one_operation(self):
        self.assertIn("## mmaf\n", self.out("ops", "mmaf"))
        self.assertEqual(self.out("ops", "0x49"), self.out("ops", "cuda_tile.mmaf"))
        self.assertEqual(json.loads(self.out("ops", "--json", "fpowf"))["name"], "pow")
        self.assertIn(b"did you mean 'mmaf'", self.run_tool("ops", "mmaff", status=2).stderr)

    def test_written_documents_are_those_of_the_tree(self):
        self.run_tool("ops", "--write", self.folder.name)
        for name in ("ops.md", "ops.json", "diagnostics.md"):
            self.assertEqual((pathlib.Path(self.folder.name) / name).read_text(), (ROOT / "spec" / name).read_text(), name)

    def test_explain(self):
        self.assertIn("TypeMismatch", self.out("explain", "E0501"))
        self.assertIn("exit status 4", self.out("explain", "T0101"))
        self.assertEqual(self.out("explain", "addf"), self.out("ops", "addf"))
        self.assertIn(b"did you mean 'E0501'", self.run_tool("explain", "E05011", status=2).stderr)

    def test_help_and_version(self):
        help_text = self.out("--help")
        for word in ("as", "dis", "check", "fmt", "ops", "explain", "Examples:", "Exit status:"):
            self.assertIn(word, help_text)
        self.assertRegex(self.out("--version"), r"^tileasm \d+\.\d+.*\nforms: .*13\.1 to 13\.5\nbuild: ")
        self.assertIn("--no-validate", self.out("as", "--help"))

    def test_verbose_goes_to_standard_error(self):
        done = self.run_tool("-v", "dis", self.path)
        self.assertEqual(done.stdout.decode(), TEXT)
        self.assertIn(b"k.tile: text, 1 entries", done.stderr)

    def test_a_byte_order_mark_is_passed_over(self):
        marked = b"\xef\xbb\xbf// of an editor\r\n" + TEXT.replace("\n", "\r\n").encode()
        self.assertEqual(self.out("dis", "-", stdin=marked), TEXT)
        self.assertEqual(self.out("fmt", "-", stdin=marked), "// of an editor\n" + TEXT)
        self.file("marked", marked)
        self.assertIn("marked: text", self.out("stats", self.folder.name))

    def test_random_modules(self):
        texts = [self.out("random", "--seed", str(seed), "--size", "30") for seed in (1, 2, 1)]
        self.assertEqual(texts[0], texts[2])
        self.assertNotEqual(texts[0], texts[1])
        for text in texts[:2]:
            self.run_tool("check", "-", stdin=text.encode())
        self.assertTrue(texts[0].startswith("// tileasm random --seed 1 --size 30\n// tilevm FILE --grid "))
        self.assertIn(" = mmaf ", self.out("random", "--seed", "5", "--op", "mmaf", "--op", "absi"))
        os.mkdir(os.path.join(self.folder.name, "jobs"))
        module, job = (os.path.join(self.folder.name, name) for name in ("x.tile", "jobs/x.json"))
        self.run_tool("random", "--seed", "4", "--exact", "-o", module, "--job", job)
        done = subprocess.run([os.environ["TILEVM"], "run", job], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words, said in ((("--op", "addff"), b"did you mean 'addf'?"), (("--job", job), b"add -o FILE"),
                            (("--seed", "-1"), b"--seed"), (("--size", "0"), b"1 to 10000")):
            self.assertIn(said, self.run_tool("random", *words, status=2).stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
