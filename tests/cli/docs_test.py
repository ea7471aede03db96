#!/usr/bin/env python3
"""Help texts, manual pages and shell completions of tileasm and tilevm.

--update rewrites the golden help texts: TILEASM=... TILEVM=... tests/cli/docs_test.py --update
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "help"
PROGRAMS = {"tileasm": os.environ["TILEASM"], "tilevm": os.environ["TILEVM"]}
COMMANDS = {
    "tileasm": ["as", "dis", "convert", "stats", "diff", "check", "fmt", "ops", "explain", "random", "completions", "man"],
    "tilevm": ["run", "replay", "completions", "man"],
}
PAGES = [(program, command) for program in PROGRAMS for command in ["", *COMMANDS[program]]]


# What the zsh script hands on for a line.
ZSH = {
    "tileasm": [("tileasm co", ["convert:Translate between forms and versions", "FILES"]),
                ("tileasm as --p", ["--provisional[Allow versions of tileirbc that may still change]",
                                    "--color=[Colours in errors; auto\\: on terminals, unless the environment says "
                                    "otherwise]:WHEN:(auto always never)", "*:FILE:_files"]),
                ("tileasm --color always dis k", ["--partial[Of a newer minor version of tileirbc, print what is known "
                                                  "and mark where that ends]"])],
    "tilevm": [("tilevm re", ["replay:Repeat a launch that --bundle recorded, and say whether the outputs are bit-equal"]),
               ("tilevm run j", ["--no-check[Do not compare with the expected values]", ":JOB:_files"])],
}


def run(program, *args, status=0, **kwargs):
    done = subprocess.run([PROGRAMS[program], *args], capture_output=True, timeout=60, **kwargs)
    assert done.returncode == status, (args, done)
    return done.stdout.decode()


def help_of(program, command):
    return run(program, *([command] if command else []), "--help")


def page_name(program, command):
    return (f"{program}-{command}" if command else program) + ".txt"


class Help(unittest.TestCase):
    maxDiff = None

    def test_golden_texts(self):
        for program, command in PAGES:
            with self.subTest(program=program, command=command):
                golden = GOLDEN / page_name(program, command)
                self.assertTrue(golden.exists(), f"{golden} is missing: run this script with --update")
                self.assertEqual(help_of(program, command), golden.read_text())
        self.assertEqual({p.name for p in GOLDEN.glob("*.txt")}, {page_name(*page) for page in PAGES})

    def test_lines_fit_and_are_ascii(self):
        for page in PAGES:
            text = help_of(*page)
            self.assertTrue(text.isascii(), page)
            self.assertEqual([line for line in text.splitlines() if len(line) > 100 or line != line.rstrip()], [], page)

    def test_every_option_of_tileasm_has_an_example(self):
        for program, command in PAGES:
            if command in ("run", "replay"):  # those of a launch are in the help of the program
                continue
            text = help_of(program, command)
            options, examples = text.split("\nExamples:\n")
            for line in re.findall(r"(?m)^  (-.*?)(?:  |$)", options):
                names = re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", line)
                if "--help" in names:
                    continue
                self.assertTrue(any(re.search(re.escape(n) + r"(?![a-z-])", examples) for n in names),
                                f"{program} {command}: no example of {line}")

    def test_examples_are_understood(self):
        """Every example of tileasm parses: status 2 only for inputs that do not exist here."""
        for program, command in PAGES:
            if program != "tileasm":
                continue
            for line in help_of(program, command).split("\nExamples:\n")[1].split("\n\n")[0].splitlines():
                call = re.split(r"  +(?=\S)|[|<>]", line.strip())[0].removeprefix('eval "$(').removesuffix(')"')
                words = shlex.split(call.replace("2", "") if "2>&1" in line else call)[1:]
                if words[:2] == ["ops", "--write"] or "~" in call:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run([PROGRAMS[program], *words], capture_output=True, cwd=folder, timeout=60,
                                          stdin=subprocess.DEVNULL)
                self.assertNotIn(b"U0001", done.stderr, line)


class Man(unittest.TestCase):
    """The pages are checked without man: that every line is text or a request that man(7) knows, and what it says."""

    REQUESTS = {".TH", ".SH", ".SS", ".TP", ".PP", ".br", ".nf", ".fi"}

    def check(self, page):
        self.assertTrue(page.isascii())
        preformatted = False
        lines = page.splitlines()
        self.assertTrue(lines[0].startswith('.\\"'))
        self.assertTrue(lines[1].startswith(".TH "))
        for line in lines[1:]:
            if line.startswith("."):
                request = line.split()[0]
                self.assertIn(request, self.REQUESTS, line)
                self.assertEqual(request in (".nf", ".fi"), line in (".nf", ".fi"), line)
                if request in (".nf", ".fi"):
                    self.assertEqual(preformatted, request == ".fi", "nested .nf")
                    preformatted = request == ".nf"
                else:
                    self.assertFalse(preformatted and request != ".br", line)
            self.assertFalse(line.startswith("'"), line)
            for escape in re.findall(r"\\(f.|.)", line.removeprefix('.\\"')):
                self.assertIn(escape, {"-", "e", "&", "fB", "fI", "fR"}, line)
            # A dash that is not escaped becomes a hyphen, which nobody can copy into a shell.
            if not line.startswith("."):
                self.assertNotRegex(line, r"(?<!\\)-", line)
            self.assertEqual(len(re.findall(r"\\f[BI]", line)), len(re.findall(r"\\fR", line)), line)
        self.assertFalse(preformatted)

    def test_pages(self):
        for program, commands in COMMANDS.items():
            page = run(program, "man")
            self.check(page)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXAMPLES", "EXIT STATUS",
                            "ENVIRONMENT", "SEE ALSO"):
                self.assertIn(f"\n.SH {section}\n", page)
            text = page.replace("\\-", "-")
            for command in commands:
                self.assertIn(f"\n.SS {program} {command}\n", text)
                for option in re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", help_of(program, command)):
                    self.assertIn(f"\\fB{option}\\fR", text)

    def test_groff_has_nothing_to_complain_about(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for program in PROGRAMS:
            done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=run(program, "man").encode(),
                                  capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_output_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in PROGRAMS:
                path = pathlib.Path(folder) / "page.1"
                self.assertEqual(run(program, "man", "-o", str(path)), "")
                self.assertEqual(path.read_text(), run(program, "man"))


class Completions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name in ("k.tile", "two words.tile"):
            (pathlib.Path(self.folder.name) / name).write_text("")

    def bash(self, line):
        """The completions of the last word of a line, as bash would offer them."""
        program = line.split()[0]
        words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith((" ", "=")) and not line.endswith("=") else [])
        script = (run(program, "completions", "bash") +
                  f"\nCOMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _{program}; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"\n")
        done = subprocess.run(["bash", "--norc", "-eu", "-c", script], capture_output=True, cwd=self.folder.name, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""), line)
        return [line for line in done.stdout.decode().splitlines() if line]

    def test_bash(self):
        self.assertEqual(self.bash("tileasm co"), ["convert", "completions"])
        first = self.bash("tileasm ")
        self.assertLessEqual({*COMMANDS["tileasm"], "k.tile", "two words.tile"}, set(first))
        self.assertEqual(self.bash("tileasm as --pro"), ["--provisional"])
        self.assertEqual(self.bash("tileasm as --col"), ["--color"])
        self.assertEqual(self.bash("tileasm as --color "), ["auto", "always", "never"])
        self.assertEqual(self.bash("tileasm as --color=al"), ["always"])
        self.assertEqual(self.bash("tileasm --color="), ["auto", "always", "never"])
        self.assertEqual(self.bash("tileasm --color always dis --par"), ["--partial"])
        self.assertEqual(self.bash("tileasm convert k.tile --to t"),
                         ["text", "tilebc", "tileirbc", *[f"tileirbc@13.{n}" for n in range(1, 5)]])
        self.assertEqual(sorted(self.bash("tileasm as ")), ["k.tile", "two words.tile"])
        self.assertEqual(self.bash("tileasm as k.tile -o k"), ["k.tile"])
        # A value that is named like a command is none.
        self.assertEqual(self.bash("tileasm -o as --ba"), ["--bare"])
        self.assertEqual(self.bash("tileasm ops mmaf_"), ["mmaf_scaled"])
        self.assertIn("E0501", self.bash("tileasm explain E05"))
        self.assertEqual(self.bash("tileasm completions "), ["bash", "zsh", "fish"])
        self.assertEqual(self.bash("tilevm re"), ["replay"])
        self.assertEqual(self.bash("tilevm run --no-che"), ["--no-check"])
        self.assertEqual(self.bash("tilevm k.tile --undef "), ["zero", "nan", "random", "trap"])
        self.assertEqual(self.bash("tilevm k.tile --trace-"), ["--trace-block", "--trace-op", "--trace-line"])
        self.assertEqual(self.bash("tilevm k.tile --fuel "), [])

    def test_zsh(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        for program in PROGRAMS:
            path = pathlib.Path(self.folder.name) / f"_{program}"
            path.write_text(run(program, "completions", "zsh"))
            subprocess.run(["zsh", "-f", "-n", str(path)], check=True, timeout=60)
            # Without its completion system, which needs a terminal: what the script asks _arguments for.
            for line, wanted in ZSH[program]:
                words = line.split(" ")
                stubs = "_arguments() { print -rl -- $@; state=first }; _files() { print FILES }; _describe() { print -rl -- $commands }; compdef() { : }\n"
                call = f"\nwords=({' '.join(map(shlex.quote, words))}); CURRENT={len(words)}; _{program}\n"
                done = subprocess.run(["zsh", "-f", "-c", stubs + path.read_text() + call], capture_output=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, b""), line)
                for text in wanted:
                    self.assertIn(text, done.stdout.decode().splitlines(), line)

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("no fish")

        def fish(line):
            path = pathlib.Path(self.folder.name) / "script.fish"
            path.write_text(run(line.split()[0], "completions", "fish"))
            done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C {shlex.quote(line)}"],
                                  capture_output=True, cwd=self.folder.name, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            return [entry.split("\t")[0] for entry in done.stdout.decode().splitlines()]

        self.assertEqual(fish("tileasm conv"), ["convert"])
        self.assertIn("--provisional", fish("tileasm as --pro"))
        self.assertEqual(fish("tileasm as --color al"), ["always"])
        self.assertIn("k.tile", fish("tileasm as k"))
        self.assertEqual(fish("tileasm completions z"), ["zsh"])
        self.assertEqual(fish("tilevm k.tile --undef na"), ["nan"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        for old in GOLDEN.glob("*.txt"):
            old.unlink()
        for page in PAGES:
            (GOLDEN / page_name(*page)).write_text(help_of(*page))
        sys.exit(0)
    sys.exit(unittest.main())
