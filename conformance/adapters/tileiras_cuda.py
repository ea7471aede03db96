#!/usr/bin/env python3
"""Adapter: NVIDIA's tileiras (pip package nvidia-cuda-tileiras) and the CUDA driver, called through ctypes.

TILEIRAS names the program; without it the package's own is looked for beside this Python. TILEIRAS_ARCH sets the target (default: that of
device 0). TILEIRAS_COMPILE_ONLY=1 stops after compiling, on a machine without a GPU: such cases are reported as unsupported.
TILEIRAS_CUBINS names a file that tileiras_pack.py made: then nothing is compiled, and tileiras is not needed.
Kernels are compiled in a process each; launches share a process with one CUDA context until something goes wrong in it.
"""

import ctypes
import glob
import json
import os
import select
import subprocess
import sys
import time
import zipfile

SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "tf32": 4, "f64": 8}
TRAPS = {
    700: "out_of_bounds",
    710: "assert",
    715: "illegal_instruction",
    716: "out_of_bounds",
    717: "out_of_bounds",
    718: "out_of_bounds",
    719: "assert",
}
NEWER = {
    "f8E8M0FNU": 100,
    "f4E2M1FN": 100,
    "fnv8E5M3FNU": 10000,
    "f8E4M3FN": 89,
    "f8E5M2": 89,
}  # first sm with the type
COMPILE_ONLY = os.environ.get("TILEIRAS_COMPILE_ONLY") == "1"
CUBINS = zipfile.ZipFile(os.environ["TILEIRAS_CUBINS"]) if os.environ.get("TILEIRAS_CUBINS") else None


def tileiras():
    if os.environ.get("TILEIRAS"):
        return os.environ["TILEIRAS"]
    for base in sys.path:
        found = sorted(glob.glob(os.path.join(base, "nvidia", "cu*", "bin", "tileiras")))
        if found:
            return found[-1]
    return "tileiras"


def environment():
    """Without CUDA_HOME and CUDA_PATH, which would make tileiras take the tools of another toolkit; the package's own come first."""
    env = {k: v for k, v in os.environ.items() if k not in ("CUDA_HOME", "CUDA_PATH")}
    env["PATH"] = os.path.dirname(tileiras()) + os.pathsep + env.get("PATH", "")
    return env


class Driver:
    """The few driver calls that a launch takes."""

    def __init__(self):
        self.cu = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(device), 0)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
        self.arch = f"sm_{major.value}{minor.value}"
        self.device = device
        number, name = ctypes.c_int(), ctypes.create_string_buffer(100)
        self("cuDriverGetVersion", ctypes.byref(number))
        self("cuDeviceGetName", name, len(name), device)
        # As NVIDIA writes it: 13000 is CUDA 13.0.
        self.about = f"{name.value.decode()}, driver for CUDA {number.value // 1000}.{number.value % 1000 // 10}"

    def open(self):
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name, *args):
        code = getattr(self.cu, name)(*args)
        if code:
            raise DriverError(name, code)


class DriverError(Exception):
    def __init__(self, name, code):
        super().__init__(f"{name} gives error {code}")
        self.code = code


def launch(driver, folder, m):
    """Runs the entry; raises DriverError."""
    path = lambda name: os.path.join(folder, name)
    with open(path("kernel.cubin"), "rb") as f:
        image = f.read()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image))
    driver("cuModuleGetFunction", ctypes.byref(function), module, m["entry"].encode())
    memory = []
    for b in m["buffers"]:
        with open(path(b["file"]), "rb") as f:
            data = f.read()
        p = ctypes.c_uint64()
        driver("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(max(1, b["bytes"])))
        # Pieces of a large buffer, or all of it.
        pieces, done = b.get("pieces", [[0, b["bytes"]]]), 0
        for at, size in pieces:
            piece, done = data[done : done + size], done + size
            driver("cuMemcpyHtoD_v2", ctypes.c_uint64(p.value + at), ctypes.c_char_p(piece), ctypes.c_size_t(size))
        memory.append((p, pieces))
    values = []
    for p in m["params"]:
        if p["kind"] == "pointer":
            values.append(ctypes.c_uint64(memory[p["buffer"]][0].value + p["offset"]))
        else:
            size = SIZES.get(p["type"], 1)
            values.append((ctypes.c_uint8 * size)(*int(p["bits"], 0).to_bytes(size, "little")))
    slots = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values))
    driver("cuLaunchKernel", function, *m["grid"], 1, 1, 1, 0, None, slots, None)
    driver("cuCtxSynchronize")
    for b, (p, pieces) in zip(m["buffers"], memory):
        with open(path(b["out"]), "wb") as f:
            for at, size in pieces:
                out = ctypes.create_string_buffer(max(1, size))
                driver("cuMemcpyDtoH_v2", out, ctypes.c_uint64(p.value + at), ctypes.c_size_t(size))
                f.write(out.raw[:size])
        driver("cuMemFree_v2", p)
    driver("cuModuleUnload", module)


def serve():
    """Launches folder after folder: a line in, a line of JSON out on a copy of standard output; what kernels print goes to a file."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    printed = os.open(os.path.join(sys.argv[2], "printed"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(printed, 1)
    libc = ctypes.CDLL(None)
    driver = Driver()
    driver.open()
    for line in sys.stdin:
        folder = line.rstrip("\n")
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
            m = json.load(f)
        os.ftruncate(printed, 0)
        os.lseek(printed, 0, os.SEEK_SET)
        try:
            launch(driver, folder, m)
            status = {"status": "ok"}
        except DriverError as e:
            status = (
                {"status": "trap", "class": TRAPS[e.code], "reason": str(e)}
                if e.code in TRAPS
                else {"status": "crash", "reason": str(e)}
            )
        libc.fflush(None)
        status["prints"] = os.pread(printed, 1 << 20, 0).decode(errors="replace")
        answers.write(json.dumps(status) + "\n")
        if status["status"] != "ok":
            return  # the context is lost


class Launcher:
    """The serving process, started anew when it is gone."""

    def __init__(self):
        self.child = None

    def run(self, folder, timeout):
        if not self.child or self.child.poll() is not None:
            self.child = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "--serve", os.path.dirname(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        else:
            timeout /= 2  # the other half is for the start of a context
        self.child.stdin.write((folder + "\n").encode())
        self.child.stdin.flush()
        line, end = b"", time.monotonic() + timeout
        while not line.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                self.stop()
                return {"status": "hang", "reason": "the launch did not end"}
            piece = os.read(self.child.stdout.fileno(), 65536)
            if not piece:
                code = self.child.wait()
                return {"status": "crash", "reason": f"the launching process ended with status {code}"}
            line += piece
        status = json.loads(line)
        if status["status"] != "ok":
            self.child.wait()
        return status

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.kill()
            self.child.wait()


def compiled(folder, m, arch):
    """Writes kernel.cubin into the folder; None, or the status where there is none."""
    if m["form"] != "tileirbc":
        return {"status": "unsupported", "reason": f"tileiras does not read {m['form']}"}
    sm = int("".join(c for c in arch if c.isdigit()))
    missing = [t for t in m["needs"]["types"] if NEWER.get(t, 0) > sm]
    if missing:
        return {"status": "unsupported", "reason": f"{arch} has no {', '.join(missing)}"}
    command = [
        tileiras(),
        "--gpu-name",
        arch,
        os.path.join(folder, m["kernel"]),
        "-o",
        os.path.join(folder, "kernel.cubin"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=m["timeout"], env=environment(), check=False)
    except subprocess.TimeoutExpired:
        return {"status": "hang", "reason": "tileiras did not end"}
    text = (done.stderr + done.stdout).decode(errors="replace").replace(folder + os.sep, "")[-2000:]
    if done.returncode < 0 or done.returncode >= 128:
        return {"status": "crash", "reason": f"tileiras ended with status {done.returncode}: {text}"}
    if done.returncode:
        return {"status": "unsupported" if "Incompatibility with architecture" in text else "rejected", "reason": text}
    return None


def unpacked(folder, m):
    """As compiled(), from the file of TILEIRAS_CUBINS."""
    names = CUBINS.NameToInfo
    if m["case"] + ".json" in names:
        return json.loads(CUBINS.read(m["case"] + ".json"))
    if m["case"] + ".cubin" not in names:
        return {"status": "unsupported", "reason": "not in TILEIRAS_CUBINS"}
    with open(os.path.join(folder, "kernel.cubin"), "wb") as f:
        f.write(CUBINS.read(m["case"] + ".cubin"))
    return None


def run(folder, launcher, arch):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        m = json.load(f)
    status = unpacked(folder, m) if CUBINS else compiled(folder, m, arch)
    if status:
        return status
    if m["goal"] == "check":
        return {"status": "ok"}
    if COMPILE_ONLY:
        return {"status": "unsupported", "reason": "compiled, not launched"}
    return launcher.run(folder, m["timeout"])


def one(folder, launcher, arch):
    try:
        status = run(folder, launcher, arch)
    except (OSError, ValueError, KeyError) as e:
        status = {"status": "crash", "reason": f"adapter: {e!r}"}
    with open(os.path.join(folder, "status.json"), "w", encoding="utf-8") as f:
        json.dump(status, f)


def version():
    done = subprocess.run([tileiras(), "--version"], capture_output=True, check=False, text=True, env=environment())
    return " ".join(line.strip() for line in done.stdout.splitlines() if "release" in line or "Build" in line)


def description(arch, device=""):
    compiler = json.loads(CUBINS.read("about.json"))["version"] if CUBINS else version()
    return {
        "protocol": 1,
        "name": f"tileiras for {arch}",
        "version": f"{compiler}; {device}" if device else compiler,
        "forms": ["tileirbc"],
        "batch": True,
        "pieces": True,
        "profile": "language",
        "classes": False,
        "lines": False,
        "prints": not COMPILE_ONLY,
    }


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve()
    arch = os.environ.get("TILEIRAS_ARCH")
    if not arch and CUBINS:
        arch = json.loads(CUBINS.read("about.json"))["arch"]
    elif not arch:
        arch = "sm_90" if COMPILE_ONLY else Driver().arch
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(description(arch, "" if COMPILE_ONLY else Driver().about)))
        return None
    launcher = Launcher()
    try:
        if sys.argv[1:] == ["--batch"]:
            for line in sys.stdin:
                one(line.rstrip("\n"), launcher, arch)
                print("done", flush=True)
        else:
            one(sys.argv[1], launcher, arch)
    finally:
        launcher.stop()
    return None


if __name__ == "__main__":
    main()
