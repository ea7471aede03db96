"""Bytecode: damaged and illegal files that must be rejected, unusual and ordinary ones that must be accepted. The files are those of tests/corpus."""

import os

from families.case import Case

CORPUS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests", "corpus")
CLASSES = {"Verify": ("invalid",), "Version": ("unsupported",), "Feature": ("unsupported",)}
CUTS = (1, 4, 8, 9, 12, 16, 20, 33, 50, 64, 90, 100)


def read(*parts):
    with open(os.path.join(CORPUS, *parts), "rb") as f:
        return f.read()


def case(family, name, data, classes=None, tier="standard", version=None, form="tileirbc"):
    c = Case(family, name, tier)
    c.form, c.kernel, c.version, c.goal = form, data, version, "check"
    if classes:
        c.reject(classes)
    return c


def listed(folder):
    path = os.path.join(CORPUS, folder)
    return sorted(n for n in os.listdir(path) if n.endswith(".tileirbc")) if os.path.isdir(path) else []


def reject_bytes():
    if not os.path.isdir(os.path.join(CORPUS, "invalid")):
        return
    with open(os.path.join(CORPUS, "invalid", "EXPECTED"), encoding="utf-8") as f:
        rows = [line.split() for line in f if line.strip()]
    # an empty file says nothing about its form: an implementation that recognises forms by content may take it for text
    for i, (word, name) in enumerate(r for r in rows if r[1] != "empty"):
        # what breaks a rule of the language may be found while the record is read
        classes = (
            CLASSES.get(word, ("malformed",))
            + (("unsupported",) if word == "Opcode" else ())
            + (("malformed",) if word == "Verify" else ())
        )
        yield case(
            "reject_bytes", name, read("invalid", name + ".tileirbc"), classes, "smoke" if i % 20 == 0 else "standard"
        )
    # every file cut short somewhere
    for name in ("matmul_f16.13.4", "raw_control_flow.13.4", "atomics_int.13.1", "raw_globals.13.5"):
        if name + ".tileirbc" not in listed("tileirbc"):
            continue
        data = read("tileirbc", name + ".tileirbc")
        for cut in CUTS + (len(data) // 2, len(data) - 9, len(data) - 1):
            if 0 <= cut < len(data):
                yield case("reject_bytes", f"cut.{name}.{cut}", data[:cut], ("malformed",))
        for minor in (0, 9, 255):
            changed = data[:9] + bytes([minor]) + data[10:]
            yield case("reject_bytes", f"version.{name}.13_{minor}", changed, ("unsupported", "malformed"))
        for major in (0, 12, 14):
            yield case(
                "reject_bytes",
                f"version.{name}.{major}",
                data[:8] + bytes([major]) + data[9:],
                ("unsupported", "malformed"),
            )


def accept_bytes():
    for name in listed("odd"):
        yield case(
            "accept_bytes",
            "odd." + name.removesuffix(".tileirbc"),
            read("odd", name),
            None,
            "smoke" if name.startswith("section") else "standard",
        )
    for name in listed("tileirbc"):
        yield case(
            "accept_bytes",
            name.removesuffix(".tileirbc"),
            read("tileirbc", name),
            version=".".join(name.split(".")[-3:-1]),
        )


FAMILIES = {"reject_bytes": reject_bytes, "accept_bytes": accept_bytes}
