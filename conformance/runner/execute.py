"""Runs an implementation under test on one case at a time, in a process of its own or through its batch mode."""

import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from runner import compare

PROTOCOL = 1


class Broken(Exception):
    """The implementation cannot be used at all."""


ADAPTERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "adapters")
NAMED = {"tilevm": "tilevm.py", "tileiras": "tileiras_cuda.py"}
LIBRARIES = (".so", ".dylib", ".dll")


def command_of(impl):
    """The command for what --impl says: itself, or that of an adapter for a shared library (abi/tile_impl.h) and for "tilevm",
    "tilevm --gpu" and the like, and "tileiras"."""
    words = shlex.split(impl)
    if not words:
        raise Broken("--impl is empty")
    if len(words) == 1 and words[0].endswith(LIBRARIES):
        return shlex.join([sys.executable, os.path.join(ADAPTERS, "library.py"), words[0]])
    if words[0] in NAMED and all(w.startswith("--") for w in words[1:]):
        return shlex.join([sys.executable, os.path.join(ADAPTERS, NAMED[words[0]]), *words[1:]])
    return impl


def describe(command):
    """What the implementation says about itself (protocol.md, section 3)."""
    try:
        done = subprocess.run(shlex.split(command) + ["--describe"], capture_output=True, timeout=60, check=False)
        can = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Broken(f"{command} --describe: {e}") from None
    except ValueError:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise Broken(f"{command} --describe: exit status {done.returncode}, no JSON. {said}") from None
    if done.returncode or not isinstance(can, dict) or can.get("protocol") != PROTOCOL:
        raise Broken(f'{command} --describe: expected a description with "protocol": {PROTOCOL}')
    return can


class Assembler:
    """Turns text cases into the form that the implementation wants, with tileasm or a program of the same options."""

    def __init__(self, command):
        self.words = shlex.split(command)

    def convert(self, folder, form):
        """(name of the new kernel file, "") or (None, why not). `form` is tilebc, tileirbc or tileirbc@13.3."""
        kind, _, version = form.partition("@")
        source, target = os.path.join(folder, "kernel.tile"), os.path.join(folder, "kernel." + kind)
        words = (
            self.words
            + ["as", source, "-o", target, "--emit", kind]
            + (["--bytecode-version", version] if version else [])
        )
        try:
            done = subprocess.run(words, capture_output=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            return None, str(e)
        if done.returncode or not os.path.exists(target):
            return None, done.stderr.decode(errors="replace")[:300]
        os.remove(source)
        return os.path.basename(target), ""


class Worker:
    """One lane: a work folder, and a child process where the implementation has a batch mode."""

    def __init__(self, command, can, options):
        self.words, self.can, self.options = shlex.split(command), can, options
        self.root = tempfile.mkdtemp(prefix="tile-conformance-", dir=options.get("tmp"))
        self.child, self.count = None, 0

    def close(self):
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def stop(self):
        if self.child:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.child.wait()
            self.child = None

    def prepare(self, case, files):
        """Writes the folder; (folder, None) or (folder, (verdict, reason))."""
        self.count += 1
        folder = os.path.join(self.root, str(self.count))
        os.mkdir(folder)
        form, want = case["form"], self.options["form"]
        version = want.split("@")[1] if "@" in want else None
        manifest = {
            "protocol": PROTOCOL,
            "case": case["case"],
            "goal": case["goal"],
            "kernel": case["kernel"],
            "form": form,
            "version": version or case["needs"]["version"],
            "timeout": self.options["timeout"],
            "needs": case["needs"],
        }
        keep = [case["kernel"]]
        if case["goal"] == "run":
            manifest.update(
                entry=case["entry"],
                grid=case["grid"],
                params=case["params"],
                buffers=[dict(b, out=f"out{i}.bin") for i, b in enumerate(case["buffers"])],
            )
            keep += [b["file"] for b in case["buffers"]]
        for name in keep:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(files[name])
        problem = None
        if form == "text" and want.split("@")[0] != "text":
            if case["expect"]["outcome"] == "rejected":
                problem = ("skipped", "a text that must be rejected has no other form")
            elif version and tuple(map(int, version.split("."))) < tuple(map(int, case["needs"]["version"].split("."))):
                problem = ("skipped", f"needs version {case['needs']['version']}")
            else:
                name, error = self.options["assembler"].convert(folder, want)
                problem = ("skipped", f"not assembled to {want}: {error}") if not name else None
                manifest.update(kernel=name, form=want.split("@")[0])
        elif form != "text" and form not in [f.split("@")[0] for f in self.can.get("forms", [])]:
            problem = ("skipped", f"the implementation does not read {form}")
        with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as f:
            json.dump(manifest, f)
        return folder, problem

    def once(self, folder):
        """A process for this case alone: a status, also for crashes and hangs."""
        with open(os.path.join(folder, "stderr.txt"), "wb") as err:
            child = subprocess.Popen(
                self.words + [folder], stdin=subprocess.DEVNULL, stdout=err, stderr=err, start_new_session=True
            )
            try:
                code = child.wait(self.options["timeout"] + 5)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass
                child.wait()
        if code is None:
            return {"status": "hang", "reason": f"no end within {self.options['timeout']} s"}
        return self.status(folder) or {
            "status": "crash",
            "reason": f"exit status {code} without status.json: {tail(os.path.join(folder, 'stderr.txt'))}",
        }

    def batch(self, folder):
        if not self.child:
            self.child = subprocess.Popen(
                self.words + ["--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            self.child.stdin.write((folder + "\n").encode())
            self.child.stdin.flush()
            line, end = b"", time.monotonic() + self.options["timeout"] + 5
            while not line.endswith(b"\n"):
                left = end - time.monotonic()
                if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                    self.stop()
                    return {"status": "hang", "reason": f"no end within {self.options['timeout']} s"}
                piece = os.read(self.child.stdout.fileno(), 4096)
                if not piece:
                    code = self.child.wait()
                    self.child = None
                    return {"status": "crash", "reason": f"the batch process ended with status {code}"}
                line += piece
            if line.strip() == b"end":  # the process ends by itself: another one for the next case
                self.child.wait()
                self.child = None
        except BrokenPipeError:
            self.stop()
            return {"status": "crash", "reason": "the batch process is gone"}
        return self.status(folder) or {"status": "crash", "reason": "no status.json"}

    def status(self, folder):
        try:
            with open(os.path.join(folder, "status.json"), encoding="utf-8") as f:
                s = json.load(f)
            return s if isinstance(s, dict) else {"status": "not a dictionary"}
        except FileNotFoundError:
            return None
        except ValueError as e:
            return {"status": f"unreadable status.json: {e}"}

    def run(self, ref):
        """A result: a dictionary with case, verdict, detail, seconds and tags. With `repeat`, that of the first run that fails."""
        for _ in range(self.options.get("repeat", 1)):
            result = self.run_once(ref)
            if result["verdict"] != "pass":
                break
        return result

    def run_once(self, ref):
        case, files = ref.load()
        start = time.monotonic()
        result = {"case": case["case"], "tier": case["tier"], "ops": case["ops"], "types": case["types"]}
        if any("pieces" in b for b in case.get("buffers", [])) and not self.can.get("pieces"):
            return {**result, "verdict": "skipped", "detail": "the implementation takes no buffers of pieces", "seconds": 0.0}
        if case["expect"].get("strict_only") and self.can.get("profile") != "tilevm":
            return {**result, "verdict": "skipped", "detail": "the language leaves this open", "seconds": 0.0}
        folder, problem = self.prepare(case, files)
        if problem:
            verdict, detail = problem
        else:
            status = (
                self.batch(folder) if self.can.get("batch") and not self.options.get("no_batch") else self.once(folder)
            )
            verdict, detail = compare.judge(
                case, files, status, lambda i: read(os.path.join(folder, f"out{i}.bin")), self.can
            )
        keep = self.options.get("keep")
        if keep and verdict not in ("pass", "skipped", "unsupported"):
            target = os.path.join(keep, case["case"].replace("/", "__"))
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
            with open(os.path.join(target, "case.json"), "w", encoding="utf-8") as f:
                json.dump(case, f, indent=1)
            for name, data in files.items():
                with open(os.path.join(target, name), "wb") as f:
                    f.write(data)
        shutil.rmtree(folder, ignore_errors=True)
        return {**result, "verdict": verdict, "detail": detail, "seconds": round(time.monotonic() - start, 4)}


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None


def tail(path):
    return (read(path) or b"")[-300:].decode(errors="replace")


def run_all(command, can, cases, options, on_result):
    """Runs the cases on options['jobs'] lanes; on_result is called under a lock, once for each."""
    lock, position = threading.Lock(), iter(cases)
    failure = []

    def lane():
        worker = Worker(command, can, options)
        try:
            while not failure:
                with lock:
                    ref = next(position, None)
                if ref is None:
                    return
                result = worker.run(ref)
                with lock:
                    on_result(result)
        except BaseException as e:  # the main thread reports it
            failure.append(e)
        finally:
            worker.close()

    threads = [threading.Thread(target=lane, daemon=True) for _ in range(options["jobs"])]
    for t in threads:
        t.start()
    try:
        for t in threads:
            while t.is_alive():
                t.join(0.2)
    except KeyboardInterrupt:
        failure.append(KeyboardInterrupt())
        for t in threads:
            t.join(options["timeout"] + 10)
    if failure:
        raise failure[0]
