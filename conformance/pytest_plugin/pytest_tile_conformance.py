"""pytest plugin: the conformance cases of Tile IR as tests of a front end's or an engine's own suite.

  PYTHONPATH=conformance/pytest_plugin pytest -p pytest_tile_conformance --tile-impl "COMMAND" [--tile-tier smoke] [--tile-only GLOB]

or `pip install -e conformance/pytest_plugin`, and then without -p. Every case is a test named FAMILY/NAME; -k, -x, --junit-xml and xdist work as
ever. Without --tile-impl the plugin does nothing. Unsupported and unjudged cases are skipped, all other verdicts but `pass` fail.
"""

import os
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.environ.get("TILEVM_CONFORMANCE") or os.path.dirname(HERE)


def pytest_addoption(parser):
    group = parser.getgroup("tile-conformance", "conformance suite of Tile IR")
    group.addoption(
        "--tile-impl", metavar="IMPL", help="implementation under test: a command, a shared library, 'tilevm --cpu'"
    )
    group.addoption("--tile-tier", default="smoke", choices=("smoke", "standard", "full"))
    group.addoption("--tile-only", action="append", default=[], metavar="GLOB", help="cases, such as 'mma/*'")
    group.addoption("--tile-suite", action="append", default=[], metavar="PATH", help="folders or zip files with cases")
    group.addoption("--tile-cache", metavar="DIR", help="where generated cases are kept")
    group.addoption("--tile-form", default="text", help="form of the kernels: text, tilebc, tileirbc@13.3 ...")
    group.addoption("--tile-profile", choices=("language", "tilevm"))
    group.addoption("--tile-timeout", type=float, default=20, metavar="S", help="seconds for one case")


class Failed(Exception):
    """A verdict that is a failure."""


class Case(pytest.Item):
    """One case of the suite."""

    def __init__(self, *, engine, ref, **kwargs):
        super().__init__(**kwargs)
        self.engine, self.ref = engine, ref
        self.add_marker("tile_conformance")

    def runtest(self):
        result = self.engine.run(self.ref)
        self.user_properties.append(("verdict", result["verdict"]))
        if result["verdict"] in ("unsupported", "skipped"):
            pytest.skip(f"{result['verdict']}: {result['detail']}")
        if result["verdict"] != "pass":
            raise Failed(f"{result['verdict']}: {result['detail']}")

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if isinstance(excinfo.value, Failed) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name


class Engine:
    """The implementation, started on the first case and kept to the end of the session."""

    def __init__(self, config):
        sys.path.insert(0, SUITE)
        try:
            import run
            from runner import execute, suite
        except ImportError as e:
            raise pytest.UsageError(f"tile-conformance: no suite in {SUITE} ({e}); set TILEVM_CONFORMANCE") from None
        option = config.getoption
        self.command = execute.command_of(option("tile_impl"))
        self.options = {
            "timeout": option("tile_timeout"),
            "form": option("tile_form"),
            "assembler": execute.Assembler(os.environ.get("TILEASM", "tileasm")),
        }
        self.worker = None

        class Tier:
            tier, cache = option("tile_tier"), option("tile_cache") or run.DEFAULT_CACHE

        try:
            self.can = execute.describe(self.command)
            if option("tile_profile"):
                self.can["profile"] = option("tile_profile")
            paths = option("tile_suite") or run.case_paths(Tier)
            # Another folder than this one's has cases of any tier.
            self.cases = suite.select(suite.find(paths, threading.Lock()), Tier.tier, option("tile_only"))
        except (execute.Broken, OSError, ValueError) as e:
            raise pytest.UsageError(f"tile-conformance: {e}") from None
        self.make = lambda: execute.Worker(self.command, self.can, self.options)

    def run(self, ref):
        if self.worker is None:
            self.worker = self.make()
        return self.worker.run(ref)

    def close(self):
        if self.worker is not None:
            self.worker.close()


def pytest_configure(config):
    config.addinivalue_line("markers", "tile_conformance: a case of the conformance suite of Tile IR")
    config.tile_engine = Engine(config) if config.getoption("tile_impl") else None


def pytest_unconfigure(config):
    if getattr(config, "tile_engine", None):
        config.tile_engine.close()


def pytest_report_header(config):
    engine = config.tile_engine
    if not engine:
        return None
    return f"tile conformance: {engine.can.get('name')} {engine.can.get('version', '')}, {len(engine.cases)} cases"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session, config, items):
    engine = config.tile_engine
    if engine:
        items.extend(Case.from_parent(session, name=c.name, engine=engine, ref=c) for c in engine.cases)
