#!/usr/bin/env python3
"""The cache of compiled kernels under many processes, under kills, and through `tilevm cache`.

Environment: TILEVM, TILEASM, SOURCE_DIR, BUILD_DIR.  Skipped in a build without the GPU part."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TILEVM, TILEASM = os.environ.get("TILEVM", "tilevm"), os.environ.get("TILEASM", "tileasm")
SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "."))
STRESS, FAKE = BUILD / "cache_stress", BUILD / "libfake_cuda.so"
KERNEL = """cuda_tile.module @m {
  entry @one(%p: tile<ptr<f32>>) {
    %one = constant <f32: NUMBER> : tile<f32>
    %t = store_ptr_tko weak %p, %one : tile<ptr<f32>>, tile<f32> -> token
    return
  }
}
"""
failures = []


def check(what, condition, details=""):
    if not condition:
        failures.append(f"{what}: {details}")


def main():
    if not STRESS.exists() or not FAKE.exists():
        print("skipped: this build has no GPU part")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cache = folder / "cache"

        # 64 processes ask for one kernel at once.
        log = folder / "made"
        processes = [subprocess.Popen([STRESS, "make", folder / "many", log]) for _ in range(64)]
        statuses = [p.wait(timeout=120) for p in processes]
        check("64 processes", statuses == [0] * 64, statuses)
        check("64 processes", 1 <= log.stat().st_size <= 2, f"made {log.stat().st_size} times")
        # The one that makes it is killed: another takes over.
        log2 = folder / "made again"
        first = subprocess.Popen([STRESS, "make", folder / "killed", log2])
        while not log2.exists():
            pass
        first.kill()
        first.wait()
        check("after a kill", subprocess.run([STRESS, "make", folder / "killed", log2], timeout=60).returncode == 0)
        check("after a kill", log2.stat().st_size == 2, log2.stat().st_size)
        # Writers are killed at any moment.
        result = subprocess.run([STRESS, "kill", folder / "kills", "1000", "1"], capture_output=True, text=True, timeout=250)
        check("1000 kills", result.returncode == 0 and ", 0 bad" in result.stdout, result.stdout + result.stderr[-500:])

        def run(*arguments, status=0, **env):
            full = {k: v for k, v in os.environ.items() if not k.startswith("TILEVM_")}
            full.update({"TILEVM_DRIVER": str(FAKE), "TILEVM_PTXAS": "driver", "TILEVM_CACHE": str(cache), **env})
            result = subprocess.run([TILEVM, *arguments], cwd=folder, env=full, capture_output=True, text=True, timeout=120)
            check(" ".join(arguments), result.returncode == status, f"status {result.returncode}: {result.stdout[-300:]} {result.stderr[-500:]}")
            return result

        def run_json(*arguments, **more):
            return json.loads(run(*arguments, "--json", **more).stdout)

        for number in ("1.0", "2.0"):
            (folder / f"k{number[0]}.tile").write_text(KERNEL.replace("NUMBER", number))
        check("empty", run_json("cache", "ls")["entries"] == [])
        check("cold", not run_json("cache", "why", "k1.tile")["hit"])
        made = run_json("cache", "warm", "k1.tile", "k2.tile", "--target", "sm_90a")
        check("warm", [m["result"] for m in made] == ["compiled", "compiled"], made)
        made = run_json("cache", "warm", "k1.tile")
        check("warm again", [m["result"] for m in made] == ["was there"], made)
        check("why: a hit", run_json("cache", "why", "k1.tile")["hit"])
        for options, part in ((["-O1"], "options"), (["--lineinfo"], "options"), (["--target", "sm_80"], "target")):
            why = run_json("cache", "why", "k1.tile", *options)
            check(f"why {options}", not why["hit"] and [d["part"] for d in why["nearest"]["differs"]] == [part], why)
        (folder / "k3.tile").write_text(KERNEL.replace("NUMBER", "3.0"))
        why = run_json("cache", "why", "k3.tile")
        check("why: another kernel", [d["part"] for d in why["nearest"]["differs"]] == ["bytecode"], why)
        why = run_json("cache", "why", "k1.tile", FAKE_CUDA_VERSION="13010")
        check("why: another driver", [d["part"] for d in why["nearest"]["differs"]] == ["linker"], why)
        check("why as text", "options" in run("cache", "why", "k1.tile", "-O1").stdout)

        entries = run_json("cache", "ls")["entries"]
        # Names, forms and places of a program make no difference; with --lineinfo its lines and its file do.
        def key(name, *options):
            return run_json("cache", "why", name, *options)["key"]

        source = (folder / "k1.tile").read_text()
        (folder / "elsewhere").mkdir()
        for name, text in ("renamed.tile", source.replace("%one", "%number").replace("@m", "@other")), ("moved.tile", "// a line more\n" + source), ("elsewhere/k1.tile", source):
            (folder / name).write_text(text)
        for form in "tilebc", "tileirbc":
            subprocess.run([TILEASM, "convert", folder / "k1.tile", "--to", form, "-o", folder / f"k1.{form}"], check=True, timeout=60)
        same = [key(n) for n in ("k1.tile", "renamed.tile", "moved.tile", "elsewhere/k1.tile", "k1.tilebc", "k1.tileirbc")]
        check("keys of one program", len(set(same)) == 1, same)
        lines = [key(n, "--lineinfo") for n in ("k1.tile", "moved.tile", "elsewhere/k1.tile")]
        check("keys of a program with lines", len(set(lines + same)) == 4, lines)
        examples = [p for p in sorted((SOURCE / "examples").glob("*.tile")) if p.name[:2] in ("04", "11", "13")]
        for path in examples:
            for form in "tilebc", "tileirbc":
                subprocess.run([TILEASM, "convert", path, "--to", form, "-o", folder / f"x.{form}"], check=True, timeout=60)
            check(f"keys of {path.name}", len({key(str(path)), key("x.tilebc"), key("x.tileirbc")}) == 1)

        check("ls", len(entries) == 2 and all(e["device"] == "sm_90a" and e["parts"]["entry"] == "one" for e in entries), entries)
        shown = run_json("cache", "show", entries[0]["key"][:8])
        check("show", shown[0]["key"] == entries[0]["key"] and shown[0]["threads"] > 0, shown)
        run("cache", "show", "zz", status=3)
        check("verify", run_json("cache", "verify")["damaged"] == [])

        # Damage: found by verify, mended by a launch with a remark, removed by gc.
        path = pathlib.Path(entries[0]["path"])
        kernel = "k1.tile" if run_json("cache", "why", "k1.tile")["key"] == entries[0]["key"] else "k2.tile"
        good = path.read_bytes()
        path.write_bytes(good[: len(good) // 2])
        check("verify damage", len(run_json("cache", "verify", status=3)["damaged"]) == 1)
        result = run(kernel, "--arg", "ptr:f32[1]=zeros", "--gpu")
        check("mended", "truncated" in result.stderr and path.read_bytes() == good, result.stderr)
        check("mended", run(kernel, "--arg", "ptr:f32[1]=zeros", "--gpu").stderr == "")
        path.write_bytes(b"x" + good[1:])
        check("gc", run_json("cache", "gc")["removed_entries"] == 1)
        check("gc --limit", run_json("cache", "gc", "--limit", "1")["entries"] == 0)
        run("cache", "gc", "--limit", "x", status=2)
        run("cache", "frob", status=2)
        run("cache", "warm", "k1.tile")
        check("clear", run_json("cache", "clear")["removed_entries"] == 1)
        check("hidden", "stress" not in run("cache", "--help").stdout)

        # Without a cache that works the work goes on.
        (folder / "file").write_text("")
        result = run("k1.tile", "--arg", "ptr:f32[1]=zeros", "--gpu", TILEVM_CACHE=str(folder / "file"))
        check("no folder", "not kept" in result.stderr, result.stderr)
        result = run("cache", "warm", "k1.tile", status=3, TILEVM_CACHE=str(folder / "file"))
        check("warming without a folder", "k1.tile: one: compiled, not kept" in result.stdout and "E0902" in result.stderr, result.stdout + result.stderr)
        result = run("cache", "warm", "k1.tile", status=3, TILEVM_CACHE="", XDG_CACHE_HOME="", HOME="")
        check("warming without a home", "there is no folder for them" in result.stderr, result.stderr)
        check("no home", "none of TILEVM_CACHE, XDG_CACHE_HOME and HOME is set" in run("cache", "ls", TILEVM_CACHE="", XDG_CACHE_HOME="", HOME="").stdout)
        # A folder of another user's, or, where that cannot be played, one that is read-only.
        run("cache", "warm", "k1.tile")
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        folder.chmod(0o755)
        for path in (cache, cache / "sm_90a"):
            path.chmod(0o555)
        full = {**os.environ, "TILEVM_DRIVER": str(FAKE), "TILEVM_PTXAS": "driver", "TILEVM_CACHE": str(cache)}
        try:
            for arguments, status, words in ((["cache", "clear"], 3, "cannot be removed: Permission denied [E0902]"), (["cache", "gc", "--limit", "1"], 3, "E0902"),
                                             (["k2.tile", "--arg", "ptr:f32[1]=zeros", "--gpu"], 0, "the compiled kernel is not kept: Permission denied")):
                result = subprocess.run([TILEVM, *arguments], cwd=folder, env=full, capture_output=True, text=True, timeout=120, check=False, **other)
                check(f"read-only: {arguments}", result.returncode == status and words in result.stderr, f"status {result.returncode}: {result.stdout} {result.stderr}")
        except PermissionError:
            print("skipped: another user cannot run tilevm")
        for path in (cache, cache / "sm_90a"):
            path.chmod(0o755)
        # A full disk: a file system in memory of a name space of its own, with no room for a page, then with none for a file.
        disk = folder / "disk"
        disk.mkdir()
        mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o "$1" none "$0" && head -c 4096 /dev/zero > "$0/fill"; shift; exec "$@"', disk]
        can = shutil.which("unshare") and subprocess.run([*mounted, "size=4k", "test", "-s", disk / "fill"], capture_output=True, timeout=60, check=False).returncode == 0
        for room in ("size=4k,nr_inodes=20", "size=1m,nr_inodes=3") if can else ():
            for arguments, status, words in ((["k1.tile", "--arg", "ptr:f32[1]=zeros", "--gpu"], 0, "is not kept: No space left on device [W0001]"),
                                             (["cache", "warm", "k1.tile", "--target", "sm_90a"], 3, "kernels are not kept in")):
                result = subprocess.run([*mounted, room, "sh", "-c", '"$@"; status=$?; find "$0" -type f ! -name fill | sed "s/^/left: /"; exit $status', disk, TILEVM, *arguments],
                                        cwd=folder, env={**full, "TILEVM_CACHE": str(disk)}, capture_output=True, text=True, timeout=120, check=False)
                check(f"full disk, {room}: {arguments}", result.returncode == status and words in result.stderr and "left" not in result.stdout, f"status {result.returncode}: {result.stdout} {result.stderr}")
        if not can:
            print("skipped: no file system can be mounted here, a full disk is not shown")
        if pathlib.Path("/dev/full").exists():
            result = run("cache", "ls", TILEVM_CACHE="/dev/full")
            check("not a folder", "0 kernels" in result.stdout, result.stdout)
        run("k1.tile", "--arg", "ptr:f32[1]=zeros", "--gpu", TILEVM_CACHE_SIZE="1")
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
