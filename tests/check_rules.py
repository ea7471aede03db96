#!/usr/bin/env python3
"""Every message of the validator is expected by a test, with its code and its place.

Usage: check_rules.py SOURCE_DIR [--list] | --self-test

Reads the sources of vm/validate and finds each expression that makes a message: the calls that report, and the texts that
say why a type is illegal. A message is the sequence of its literals; where a literal is chosen by a condition, each
choice is a message of its own. It must be matched by an ERROR comment of a filetest that has the code and a column, or,
for what only a binary form can say, by a string of tests/unit. Prints those that are not.
--list prints all, with what they match.
"""
import itertools
import pathlib
import re
import sys

# Functions that report, with the index of the argument that is the message. `fail` is what local lambdas are called.
CALLS = {"error": 1, "error_attr": 2, "error_result": 2, "error_operand": 3, "error_with": 1, "warn_attr": 1, "error_at": 2, "fail": None,
         "report": 2, "Diagnostic d": 2}
CODE = re.compile(r"Code::(\w+)")
CALL = re.compile(r"(?<![\w:])(?:c\.|diags\.)?(" + "|".join(sorted(CALLS, key=len, reverse=True)) + r")([({])")


def end_of_literal(text, at):
    """The index of the quote that ends the literal which begins at `at`."""
    i = at + 1
    while text[i] != text[at]:
        i += 2 if text[i] == "\\" else 1
    return i


def split_top(text, separator):
    """Parts of `text` between separators that stand outside of brackets and literals."""
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        ch = text[i]
        if ch in "\"'":
            i = end_of_literal(text, i)
        elif ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
        elif depth == 0 and separator == ":" and text.startswith("::", i):
            i += 1
        elif depth == 0 and text.startswith(separator, i):
            parts.append(text[start:i])
            start = i + len(separator)
        i += 1
    parts.append(text[start:])
    return [p.strip() for p in parts]


def closing(text, at):
    """The index behind the bracket that closes the one at `at`."""
    depth, i = 0, at
    while True:
        ch = text[i]
        if ch in "\"'":
            i = end_of_literal(text, i)
        elif ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1


def literal(text):
    """The value of adjacent string literals, or None."""
    pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    if not pieces or re.sub(r'"(?:[^"\\]|\\.)*"', "", text).strip():
        return None
    return "".join(pieces).replace('\\"', '"').replace("\\\\", "\\")


def texts_of(expression):
    """What an expression can say: tuples of literals, between which anything may stand."""
    expression = expression.strip()
    parts = split_top(expression, "+")
    if len(parts) > 1:
        return [sum(choice, ()) for choice in itertools.product(*(texts_of(p) for p in parts))]
    value = literal(expression)
    if value is not None:
        return [(value,)]
    wrapped = re.match(r"std::string\(", expression)
    if wrapped and closing(expression, wrapped.end() - 1) == len(expression):
        return texts_of(expression[wrapped.end():-1])
    if expression.startswith("(") and closing(expression, 0) == len(expression):
        return texts_of(expression[1:-1])
    question = split_top(expression, "?")
    if len(question) > 1:
        # The first colon is that of the first question, as these expressions nest on the right only.
        branches = split_top("?".join(question[1:]), ":")
        return texts_of(branches[0]) + texts_of(" : ".join(branches[1:]))
    counted = re.match(r"counted\(", expression)
    if counted and closing(expression, counted.end() - 1) == len(expression):
        noun = split_top(expression[counted.end():-1], ",")[1]
        return [tuple(" " + t for t in text) for text in texts_of(noun)]
    # dim("stride", i, found, "at least 1"): a helper of the type rules.
    dim = re.match(r"dim\(", expression)
    if dim and closing(expression, dim.end() - 1) == len(expression):
        what, _, _, expected = split_top(expression[dim.end():-1], ",")
        return [w + (" is ",) + (", expected " + e[0],) for w in texts_of(what) for e in texts_of(expected)]
    return [()]


def without_comments(text):
    return re.sub(r"^\s*//.*$|(?<=[;{}\s])//[^\n]*$", "", text, flags=re.MULTILINE)


def messages(source):
    """(code or None, literals) of each message that a source file can report."""
    source = without_comments(source)
    found = []
    for call in CALL.finditer(source):
        name = call.group(1)
        end = closing(source, call.end() - 1)
        if re.search(r"(?:void|bool|const auto) (?:Checker::)?$", source[:call.start()]):
            continue  # a definition
        arguments = split_top(source[call.end():end - 1], ",")
        code = next((CODE.search(a).group(1) for a in arguments if CODE.search(a)), None)
        if name == "fail" and code is None:  # that of the lambda, where it has one
            start = source.rfind("fail = [", 0, call.start())
            if start >= 0:
                brace = source.index("{", start)
                codes = set(CODE.findall(source[brace:closing(source, brace)]))
                code = codes.pop() if len(codes) == 1 else None
        index = CALLS[name]
        if name == "fail":
            index = 1 if arguments and CODE.search(arguments[0]) else 0
        elif name == "error" and "diags." in call.group(0):
            index = 2
        if index >= len(arguments):
            continue
        found += [(code, text) for text in texts_of(arguments[index])]
    # Why a type is illegal: functions that return the text.
    for body in re.finditer(r"std::string (?:\w+_fault|fault_of)\([^)]*\) \{", source):
        end = closing(source, body.end() - 1)
        for statement in re.finditer(r"return ([^;]+);", source[body.end():end]):
            found += [("E0505", text) for text in texts_of(statement.group(1))]
    return [(code, text) for code, text in found if any(re.search(r"[a-z]{2}", t) for t in text)]


def pattern(text):
    return re.compile(".*".join(re.escape(t) for t in text if t), re.DOTALL)


ERROR = re.compile(r"// ERROR ([A-Z]\d{4})@\d+ (.*?)\s*$", re.MULTILINE)
ERROR_FILE = re.compile(r"// ERROR-FILE ([A-Z]\d{4}) (.*?)\s*$", re.MULTILINE)


def check(sources, filetests, units):
    """Problems and the number of messages. `filetests` are (code, message), `units` the texts of unit tests."""
    joined = [re.sub(r'"\s*\n\s*"', "", u).replace('\\"', '"') for u in units]
    lines = [line for u in joined for line in u.splitlines()]
    problems, seen = [], {}
    for name, source in sources:
        for code, text in messages(source):
            seen.setdefault((code, text), name)
    for (code, text), name in seen.items():
        want = pattern(text)
        key = "*".join(text)
        by_file = any((code is None or code == c) and want.search(m) for c, m in filetests)
        by_unit = any(want.search(line) for line in lines)
        if not by_file and not by_unit:
            problems.append(f"{name}: {code or 'some code'}: no test expects: {key}")
    return problems, seen


def main(argv):
    if argv == ["--self-test"]:
        source = '''
          void Checker::error(Code code, const std::string& what) { report(code, place, what); }
          c.error_attr(Code::E0601, a, "dim is " + std::to_string(d) + ", expected " + (x ? "one" : "two") + " (a, b)", "help");
          std::string shape_fault(const Type& t) { if (x) return dim("stride", i, t, "at least 1"); return {}; }
          // fail("a comment");
          const auto fail = [&](const std::string& what) { c.error_attr(Code::E0603, 0, what); };
          return fail(std::string(up ? "upper" : "lower") + " bound is wrong");
        '''
        found = messages(source)
        assert found == [("E0601", ("dim is ", ", expected ", "one", " (a, b)")), ("E0601", ("dim is ", ", expected ", "two", " (a, b)")),
                         ("E0603", ("upper", " bound is wrong")), ("E0603", ("lower", " bound is wrong")),
                         ("E0505", ("stride", " is ", ", expected at least 1"))], found
        tests = [("E0601", "x: dim is 3, expected one (a, b)"), ("E0602", "x: dim is 3, expected two (a, b)")]
        units = ['"lower bound "\n   "is wrong"']
        problems, seen = check([("f", source)], tests, units)
        assert len(problems) == 3 and "two" in problems[0] and "upper" in problems[1] and "stride" in problems[2], problems
        assert len(seen) == 5
        return 0
    if not argv:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(argv[0])
    sources = [(p.name, p.read_text()) for p in sorted((root / "vm" / "validate").glob("*.cpp"))]
    texts = [p.read_text(encoding="latin-1") for p in sorted((root / "tests" / "files").rglob("*.tile"))]
    filetests = [e for t in texts for e in ERROR.findall(t) + ERROR_FILE.findall(t)]
    units = [p.read_text() for p in sorted((root / "tests" / "unit").glob("*.cpp"))]
    problems, seen = check(sources, filetests, units)
    if "--list" in argv:
        for (code, text), name in seen.items():
            print(f"{name}: {code}: {'*'.join(text)}")
    for p in problems:
        print(p)
    print(f"{len(seen)} messages, {len(problems)} problems")
    return 1 if problems or len(seen) < 100 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
