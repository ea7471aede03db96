#!/usr/bin/env python3
"""The GPU part against a driver that executes nothing (tests/gpu/fake_cuda.cpp): every error of the driver, traps, the cache, options.
In a build without the GPU part: that every option of it says so.

Environment: TILEVM, BUILD_DIR, SOURCE_DIR."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TILEVM = os.environ.get("TILEVM", "tilevm")
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "."))
SOURCE = pathlib.Path(os.environ.get("SOURCE_DIR", "."))
FAKE = BUILD / "libfake_cuda.so"
KERNEL = """cuda_tile.module @m {
  global @g <f32: [1.0, 2.0]> : tile<2xf32>
  entry @add_one(%p: tile<ptr<f32>>, %c: tile<i1>) {
    %x, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
    %one = constant <f32: 1.0> : tile<f32>
    %y = addf %x, %one : tile<f32>
    assert %c, "c must be true" : tile<i1>
    %t2 = store_ptr_tko weak %p, %y token=%t : tile<ptr<f32>>, tile<f32> -> token
    return
  }
}
"""
RING = """!v = !cuda_tile.tensor_view<?x?xf16, strides=[?,1]>
!p = !cuda_tile.partition_view<tile=(128x64), padding_value = zero, !v>
!r = !cuda_tile.partition_view<tile=(64x128), padding_value = zero, !v>
cuda_tile.module @m { entry @e(%a: tile<ptr<f16>>, %c: tile<ptr<f32>>, %n: tile<i32>, %s: tile<i32>) {

  %va = make_tensor_view %a, shape = [%n, %n], strides = [%s, 1] : tile<i32> -> !v
  %pa = make_partition_view %va : !p
  %pb = make_partition_view %va : !r
  %0 = constant <i32: 0> : tile<i32>
  %1 = constant <i32: 1> : tile<i32>

  %id:3 = get_tile_block_id : tile<i32>
  %none = constant <f32: 0.0> : tile<128x128xf32>
  %r = for %k in (%0 to %n, step %1) : tile<i32> iter_values(%sum = %none) -> (tile<128x128xf32>) {
    %x, %t0 = load_view_tko weak %pa[%id#0, %k] : !p, tile<i32> -> tile<128x64xf16>, token
    %y, %t1 = load_view_tko weak %pb[%k, %id#1] : !r, tile<i32> -> tile<64x128xf16>, token

    // The product.
    %next = mmaf %x, %y, %sum : tile<128x64xf16>, tile<64x128xf16>, tile<128x128xf32>
    continue %next : tile<128x128xf32>
  }
  %w = reshape %c : tile<ptr<f32>> -> tile<1x1xptr<f32>>
  %d = broadcast %w : tile<1x1xptr<f32>> -> tile<128x128xptr<f32>>
  %t2 = store_ptr_tko weak %d, %r : tile<128x128xptr<f32>>, tile<128x128xf32> -> token
  return } }
"""
NUMBERS = """cuda_tile.module @m { entry @e(%p: tile<ptr<i32>>) {
  %x, %y, %z = get_tile_block_id : tile<i32>
  %q = offset %p, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
  %t = store_ptr_tko weak %q, %x : tile<ptr<i32>>, tile<i32> -> token
  return } }
"""
PRODUCT = """cuda_tile.module @m { entry @e(%p: tile<ptr<f32>>) {
  %a = constant <f16: 1.0> : tile<64x64xf16>
  %c = constant <f32: 0.0> : tile<64x64xf32>
  %d = mmaf %a, %a, %c : tile<64x64xf16>, tile<64x64xf16>, tile<64x64xf32>
  %q = reshape %p : tile<ptr<f32>> -> tile<1x1xptr<f32>>
  %b = broadcast %q : tile<1x1xptr<f32>> -> tile<64x64xptr<f32>>
  %t = store_ptr_tko weak %b, %d : tile<64x64xptr<f32>>, tile<64x64xf32> -> token
  return } }
"""
API_KERNEL = """cuda_tile.module @m {
  entry @plain(%p: tile<ptr<f32>>, %c: tile<i1>) {
    assert %c, "c" : tile<i1>
    return
  }
  entry @chained(%p: tile<ptr<f32>>, %c: tile<i1>) {
    %t = gdc_wait_tko -> token
    %x, %t1 = load_ptr_tko weak %p token=%t : tile<ptr<f32>> -> tile<f32>, token
    return
  }
}
"""
failures = []


def check(what, condition, details=""):
    if not condition:
        failures.append(f"{what}: {details}")


def run(arguments, cwd, **env):
    full = {k: v for k, v in os.environ.items() if not k.startswith("TILEVM_") and not k.startswith("FAKE_CUDA")}
    full.update({"TILEVM_DRIVER": str(FAKE), "TILEVM_PTXAS": "driver", "TILEVM_CACHE": str(cwd / "cache"), **{k: str(v) for k, v in env.items()}})
    return subprocess.run([TILEVM, *arguments], cwd=cwd, env=full, capture_output=True, text=True, timeout=120)


def expect(what, result, status, code=None, *words):
    text = result.stdout + result.stderr
    check(what, result.returncode == status, f"status {result.returncode}, expected {status}: {text[-600:]}")
    for word in ([f"[{code}]"] if code else []) + list(words):
        check(what, word in text, f"no '{word}' in: {text[-600:]}")


def without_gpu_part(folder):
    launch = ["k.tile", "--arg", "ptr:f32[1]=zeros", "--arg", "i1:true"]
    for option in (["--gpu"], ["--gpu=emulate"], ["--both"], ["--target", "sm_90a"], ["-O2"], ["--emit", "ptx"], ["--remarks"], ["--lineinfo"], ["--plan", "a=b"], ["--no-cache"]):
        expect(f"without the GPU part: {option}", run(launch + option, folder), 1, "E0808", "-DTILEVM_GPU=ON")
    for command in (["devices"], ["cache", "ls"], ["bench", "k.tile"]):
        expect(f"without the GPU part: {command}", run(command, folder), 1, "E0808", "-DTILEVM_GPU=ON")


def serve(folder, calls):
    """The conformance suite's batch mode: one context for many cases, until a kernel faults."""
    cases = []
    for name in ("one", "two", "three"):
        case = folder / name
        case.mkdir()
        (case / "kernel.tile").write_text((folder / "k.tile").read_text())
        (case / "b0.bin").write_bytes(bytes(4))
        params = [{"kind": "pointer", "type": "f32", "buffer": 0, "offset": 0}, {"kind": "scalar", "type": "i1", "bits": "0x1"}]
        buffers = [{"type": "f32", "file": "b0.bin", "bytes": 4, "out": "out0.bin"}]
        manifest = {"protocol": 1, "case": name, "goal": "run", "kernel": "kernel.tile", "form": "text", "version": "13.1",
                    "entry": "add_one", "grid": [1, 1, 1], "params": params, "buffers": buffers}
        (case / "manifest.json").write_text(json.dumps(manifest))
        cases.append(case)

    def batch(**env):
        for case in cases:
            (case / "status.json").unlink(missing_ok=True)
        words = ["sh", "-c", f"printf '%s\\n' {' '.join(str(c) for c in cases)} | '{TILEVM}' conformance serve --gpu --batch"]
        full = {**os.environ, "TILEVM_DRIVER": str(FAKE), "TILEVM_PTXAS": "driver", "TILEVM_CACHE": str(folder / "cache"), "FAKE_CUDA_LOG": str(folder / "served"), **env}
        (folder / "served").unlink(missing_ok=True)
        said = subprocess.run(words, env=full, capture_output=True, text=True, timeout=60).stdout.split()
        statuses = [json.loads((c / "status.json").read_text()) if (c / "status.json").exists() else None for c in cases]
        return said, statuses, (folder / "served").read_text().splitlines()

    said, statuses, seen = batch()
    check("serve", said == ["done"] * 3 and [s["status"] for s in statuses] == ["ok"] * 3, (said, statuses))
    # The context is released for good only at the end.
    held, least = 0, []
    for call in seen:
        held += call.startswith("cuDevicePrimaryCtxRetain") - call.startswith("cuDevicePrimaryCtxRelease")
        least += [held] if call.startswith("cuLaunchKernel") else []
    between = [c for c in seen[: max(i for i, c in enumerate(seen) if c.startswith("cuLaunchKernel"))]]
    check("serve: one context", len(least) == 3 and min(least) == 2 and sum(c.startswith("cuInit") for c in between) == 1, (least, seen[:6]))
    said, statuses, seen = batch(FAKE_CUDA_TRAP="101:0")
    check("serve: a trap ends the process", said == ["end"] and statuses[0]["status"] == "trap" and statuses[0]["class"] == "out_of_bounds" and statuses[1] is None, (said, statuses))
    said, statuses, seen = batch(FAKE_CUDA_FAIL="cuInit:100")
    check("serve without a GPU", said[0] == "done" and statuses[0]["status"] == "unsupported", (said, statuses))
    said, statuses, seen = batch(FAKE_CUDA_FAIL="cuMemcpyHtoD_v2:999")
    check("serve: a failing call is no excuse", said == ["end"] and statuses[0]["status"] == "crash", (said, statuses))


def with_gpu_part(folder):
    launch = ["k.tile", "--arg", "p=ptr:f32[1]=full(5)", "--arg", "i1:true", "--gpu"]
    log = folder / "calls"

    def calls(arguments, **env):
        log.unlink(missing_ok=True)
        result = run(arguments, folder, FAKE_CUDA_LOG=log, **env)
        return result, log.read_text().splitlines() if log.exists() else []

    # Drivers that cannot be used.
    expect("no driver", run(launch, folder, TILEVM_DRIVER="/no/such/libcuda.so"), 3, "E0910", "TILEVM_DRIVER")
    expect("not a driver", run(launch, folder, TILEVM_DRIVER="libc.so.6"), 3, "E0911", "cuInit")
    expect("old driver", run(launch, folder, FAKE_CUDA_VERSION=11000), 3, "E0911", "11.0", "11.4")
    expect("no device", run(launch, folder, FAKE_CUDA_FAIL="cuInit:100"), 3, "E0912")
    expect("no devices", run(launch, folder, FAKE_CUDA_COUNT=0), 3, "E0912")
    expect("mismatch", run(launch, folder, FAKE_CUDA_FAIL="cuInit:803"), 3, "E0911")
    expect("other device", run(launch, folder, TILEVM_DEVICE=7), 3, "E0912", "device 7")
    expect("other device", run(launch[:-1] + ["--gpu=3"], folder), 3, "E0912", "device 3")
    expect("bad device", run(launch, folder, TILEVM_DEVICE="x"), 3, "E0912")
    expect("unknown capability", run(launch, folder, FAKE_CUDA_SM=121), 1, "E0808", "12.1")
    expect("PTX too new", run(launch, folder, FAKE_CUDA_VERSION=12000), 3, "E0911", "PTX")

    # A launch: what is called, with what.
    result, seen = calls(launch + ["--show", "p", "--stats"])
    expect("launch", result, 0, None, "p: f32[1] = 5")
    check("launch", any(re.match(r"cuLaunchKernel grid 1 1 1 block \d+ 1 1 shared \d+$", c) for c in seen), seen)
    check("launch", any(c.startswith("cuLinkAddData_v2") for c in seen), seen)
    check("leaks", sum(c.startswith("cuMemAlloc") for c in seen) == sum(c.startswith("cuMemFree_v2") for c in seen), seen)
    for made, gone in (("cuModuleLoadData", "cuModuleUnload"), ("cuMemHostAlloc", "cuMemFreeHost"), ("cuStreamCreate", "cuStreamDestroy_v2"), ("cuEventCreate", "cuEventDestroy_v2"),
                       ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"), ("cuLinkCreate_v2", "cuLinkDestroy")):
        check("leaks", seen.count(made) == seen.count(gone) > 0, f"{made} {seen.count(made)}, {gone} {seen.count(gone)}")
    result, seen = calls(launch)
    check("second launch", result.returncode == 0 and not any(c.startswith("cuLink") for c in seen), "the cache was not used")
    for options in (["--no-cache"], ["-O1"], ["--lineinfo"]):
        result, seen = calls(launch + options)
        check(f"launch {options}", result.returncode == 0 and any(c.startswith("cuLinkComplete") for c in seen), "it was not compiled anew")
    result, seen = calls(launch, FAKE_CUDA_VERSION=13010)
    check("another driver", any(c.startswith("cuLinkComplete") for c in seen), "a cubin of another driver was used")

    # ptxas that was only found gives way to the driver's linker where one of the two is too new for the other; one that was named does not.
    tools = folder / "tools"
    tools.mkdir()
    for release, driver in ("11.8", True), ("14.0", True), ("13.0", False):
        (tools / "ptxas").write_text(f"#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release {release}, V{release}.1'; exit; fi\necho 'ptxas fatal   : this one' >&2\nexit 255\n")
        (tools / "ptxas").chmod(0o755)
        result, seen = calls(launch + ["--no-cache"], TILEVM_PTXAS="", PATH=f"{tools}:{os.environ['PATH']}")
        check(f"ptxas {release} beside a driver for 13.0", (result.returncode == 0) == driver == any(c.startswith("cuLinkComplete") for c in seen), result.stderr)
        check(f"ptxas {release}", driver or "this one" in result.stderr, result.stderr)
        if release == "11.8":
            expect("old ptxas by name", run(launch + ["--no-cache"], folder, TILEVM_PTXAS=tools / "ptxas", TMPDIR=tools), 3, "E0915", "k.tile:3:", "is PTX 8.3; ptxas V11.8.1 (", "takes PTX up to 7.8", "pip install")
    # One that takes too long is not asked again where its messages belong.
    (tools / "ptxas").write_text("#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release 13.0, V13.0.1'; exit; fi\necho >> asked\nexec sleep 20\n")
    expect("slow ptxas", run(["k.tile", "--emit", "cubin=x.cubin", "--compile-time-limit", "1.5"], folder, TILEVM_PTXAS=tools / "ptxas", TMPDIR=tools), 6, "L0106", "takes longer than 1.5 s", "k.tile:3:")
    check("slow ptxas", (folder / "asked").read_text() == "\n", "asked more than once")

    # Every function that can fail, does.
    symbols = re.findall(r'X\(\w+, "(cu\w+)"', (SOURCE / "backend/cuda/driver.h").read_text())
    check("symbols", len(symbols) > 40, symbols)
    _, seen = calls(launch + ["--no-cache"])
    used = [s for s in symbols if any(c.split()[0] == s for c in seen)]
    harmless = {"cuGetErrorName", "cuGetErrorString", "cuFuncGetAttribute", "cuMemFree_v2", "cuMemFreeHost", "cuModuleUnload", "cuStreamDestroy_v2", "cuEventDestroy_v2",
                "cuDevicePrimaryCtxRelease_v2", "cuLinkDestroy", "cuMemGetInfo_v2"}
    check("used functions", len(used) > 30, used)
    for symbol in used:
        result = run(launch + ["--no-cache"], folder, FAKE_CUDA_FAIL=f"{symbol}:999")
        if symbol in harmless:
            expect(f"{symbol} fails", result, 0)
        else:
            code = {"cuDriverGetVersion": "E0911", "cuLinkAddData_v2": "E0915", "cuLinkComplete": "E0915"}.get(symbol, "E0913")
            expect(f"{symbol} fails", result, 3, code)
            if code == "E0913":
                expect(f"{symbol} fails", result, 3, code, "CUDA_ERROR_FAKE", "999")
    expect("device memory", run(launch, folder, FAKE_CUDA_FAIL="cuMemAlloc_v2:2"), 3, "E0914", "global @g")
    for call in ("cuEventSynchronize:700,cuEventQuery:700", "cuMemcpyDtoH_v2:700"):
        expect("illegal address", run(launch, folder, FAKE_CUDA_FAIL=call), 4, "T0101", "--gpu=emulate")
    expect("no binary", run(launch, folder, FAKE_CUDA_FAIL="cuModuleLoadData:209"), 3, "E0913", "Fake GPU")
    expect("no entry", run(launch, folder, FAKE_CUDA_FAIL="cuModuleGetFunction:500"), 3, "E0913", "no kernel")
    result = run(launch + ["--no-cache"], folder, FAKE_CUDA_FAIL="cuLinkAddData_v2:218", FAKE_CUDA_LINK_LOG="ptxas application ptx input, line 3; error   : what is this")
    expect("linker", result, 3, "E0915", "what is this", "add_one.ptx:3:")

    # What the assembler says of a line is said of the operation, where its code has one.
    lifted = {"FAKE_CUDA_FAIL": "cuLinkAddData_v2:218", "FAKE_CUDA_LINK_LOG": "ptxas application ptx input, line {add.rn.f32}; error   : strange", "TMPDIR": folder}
    result = run(launch + ["--no-cache"], folder, **lifted)
    expect("lifted message", result, 3, "E0915", "k.tile:6:", "addf: the assembler rejects the code: strange", "add.rn.f32")

    # A compiler or assembler that fails leaves a bundle that can be replayed.
    bundles = list(folder.glob("tilevm-*.tvb"))
    check("bundle of a failure", len(bundles) == 1 and str(bundles[0]) in result.stderr, result.stderr)
    for bundle in bundles:
        expect("replay of a failure", run(["replay", bundle, "--gpu", "--no-cache"], folder, **lifted), 3, "E0915", "strange")
        expect("replay on the CPU", run(["replay", bundle], folder), 0)

    # Limits of the compiler.
    expect("compile time", run(launch + ["--no-cache", "--compile-time-limit", "0.000001"], folder, TMPDIR=folder), 6, "L0106", "--compile-time-limit", "tilevm replay")
    large = SOURCE / "tools" / "bench" / "gpu" / "kernels" / "attention_d128_128x128_causal.tile"
    expect("compile memory", run([large, "--emit", "ptx=large.ptx", "--target", "sm_90a", "--compile-max-memory", "1M"], folder), 6, "L0103", "--compile-max-memory")
    expect("enough of both", run(launch + ["--no-cache", "--compile-time-limit", "100", "--compile-max-memory", "8G"], folder), 0)
    expect("bad size", run(launch + ["--compile-max-memory", "much"], folder), 2, "U0001")
    # Where code is only written, a bundle of kernel and entry is left, with the arguments if there are any, and repeats it.
    for what, options in (("without arguments", []), ("with arguments", ["--arg", "p=ptr:f32[1]=full(5)", "--arg", "i1:true"])):
        for old in folder.glob("tilevm-*.tvb"):
            old.unlink()
        result = run(["k.tile", *options, "--emit", "ptx", "--compile-time-limit", "0.000001"], folder, TMPDIR=folder)
        bundles = list(folder.glob("tilevm-*.tvb"))
        expect(f"limits when code is written {what}", result, 6, "L0106")
        check(f"bundle when code is written {what}", len(bundles) == 1 and str(bundles[0]) in result.stderr, result.stderr)
        for bundle in bundles:
            expect(f"replay --emit {what}", run(["replay", bundle, "--emit", "ptx", "--target", "sm_80"], folder), 0, None, ".target sm_80")
            expect(f"replay --emit with the limit {what}", run(["replay", bundle, "--emit", "ptx", "--compile-time-limit", "0.000001"], folder, TMPDIR=folder), 6, "L0106")
            expect(f"replay as a launch {what}", run(["replay", bundle], folder), 0 if options else 1, None if options else "E0802")
    expect("no folder for the bundle", run(["k.tile", "--emit", "ptx", "--compile-time-limit", "0.000001"], folder, TMPDIR=folder / "none"), 6, "L0106", "no bundle to replay: ", "none/tilevm-", "cannot write: no such file or directory")
    expect("no room for the bundle", run(launch + ["--no-cache"], folder, **{**lifted, "TMPDIR": "/proc"}), 3, "E0915", "no bundle to replay: /proc/tilevm-")
    expect("an assembler that fails where code is written", run(["k.tile", "--emit", "cubin=x.cubin"], folder, **lifted), 3, "E0915", "addf: the assembler rejects", "tilevm replay")

    # Warnings and advice of the assembler, too, are said of operations; errors that name the kernel alone of the entry.
    result = run(launch + ["--no-cache"], folder, FAKE_CUDA_LINK_INFO="ptxas application ptx input, line {add.rn.f32}; warning : odd rounding")
    expect("lifted warning", result, 0, None, "k.tile:6:", "addf: the assembler warns: odd rounding")
    shared = "ptxas error   : Entry function 'k_add_one' uses too much shared data (0x12000 bytes, 0xc000 max)"
    expect("too much shared data", run(launch + ["--no-cache"], folder, FAKE_CUDA_FAIL="cuLinkAddData_v2:218", FAKE_CUDA_LINK_LOG=shared, TMPDIR=folder), 3, "E0915", "k.tile:3:", "uses too much shared data (73728 bytes, 49152 max)")
    advice = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to the presence of Extern calls in the function 'k_e'"
    (folder / "ring.tile").write_text(RING)
    ring = ["ring.tile", "--emit", "cubin=ring.cubin", "--no-cache"]
    result = run(ring, folder, FAKE_CUDA_LINK_INFO=advice)
    expect("lifted advice", result, 0, None, "ring.tile:19:", "remark: mmaf: assembler C7510; Potential Performance Loss: wgmma.mma_async instructions are serialized")
    result = run(ring + ["--remarks=json"], folder, FAKE_CUDA_LINK_INFO=advice + "\nptxas info    : Function properties for k_e\n    512 bytes stack frame, 640 bytes spill stores, 700 bytes spill loads")
    remarks = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    check("advice in JSON", [r for r in remarks if r["unit"] == "assembler C7510" and r["op"] == "mmaf" and r["place"].startswith("ring.tile:19:")], remarks)
    spilled = [r for r in remarks if r["unit"].startswith("assembler: registers")]
    check("spills in JSON", spilled and "640 bytes are stored" in spilled[0]["unit"] and "700 loaded" in spilled[0]["unit"] and "registers a thread" in spilled[0].get("why", ""), remarks)
    check("spills of the kernel", any(r["unit"] == "kernel" and r.get("spill_store_bytes") == 640 for r in remarks), remarks)

    # The C++ interface: launches on streams and contexts of the caller's.
    (folder / "api.tile").write_text(API_KERNEL)
    api = subprocess.run([BUILD / "launch_api", FAKE, folder / "api.tile", folder / "api.log"], env={**os.environ, "TILEVM_CACHE": str(folder / "cache")}, capture_output=True, text=True, timeout=120)
    check("launch_api", api.returncode == 0, api.stdout + api.stderr)

    # Traps come from the mailbox, with the operation's place.
    expect("assertion", run(launch, folder, FAKE_CUDA_TRAP="102:3"), 4, "T0102", "c must be true", "block (3, 2, 1)", "k.tile:7:")
    expect("bounds", run(launch, folder, FAKE_CUDA_TRAP="101:0"), 4, "T0101", "k.tile:4:")
    expect("bad trap", run(launch, folder, FAKE_CUDA_TRAP="999:0"), 70, "I0001", "999")
    expect("bad place", run(launch, folder, FAKE_CUDA_TRAP="101:4000000000"), 4, "T0101")
    serve(folder, calls)

    # Limits and options.
    result, seen = calls(launch + ["--grid", "1,65536,3"], FAKE_CUDA_PARAMS=8)
    # Two parameters, mailbox, a global; then the grid, and the number of the first block.
    check("grid beyond what GPUs launch along y", result.returncode == 0 and any(re.match(r"cuLaunchKernel grid 196608 1 1 .* 1 10000 3 0$", c) for c in seen), seen)
    result, seen = calls(launch + ["--grid", "16777215,300"])
    check("many blocks", result.returncode == 0 and any(c.startswith("cuLaunchKernel grid 16777215 300 1 ") for c in seen), seen)
    result, seen = calls(launch + ["--grid", "65536,65536,1"], FAKE_CUDA_PARAMS=8)
    parts = [c for c in seen if c.startswith("cuLaunchKernel ")]
    check("more blocks than one launch has", len(parts) == 3 and parts[1].startswith("cuLaunchKernel grid 2147483647 1 1 ") and parts[1].endswith(" 10000 10000 1 7fffffff") and
          parts[2].startswith("cuLaunchKernel grid 2 1 1 ") and parts[2].endswith(" fffffffe"), parts)
    expect("more blocks than there are numbers", run(launch + ["--grid", "16777215,16777215,70000"], folder), 1, "E0808", "2^48")
    expect("a trap in a grid along x", run(launch + ["--grid", "2,70000"], folder, FAKE_CUDA_TRAP="102:3"), 4, "T0102", "block (1, 1, 0)")
    expect("grid", run(launch + ["--grid", "1,65535"], folder), 0)
    # Clusters as the hint asks, where the grid is a multiple and the device holds one.
    (folder / "clusters.tile").write_text("cuda_tile.module @m { entry @e(%p: tile<ptr<f32>>) optimization_hints=<sm_90 = {num_cta_in_cga = 2}> { return } }\n")
    clusters = ["clusters.tile", "--arg", "ptr:f32[1]=zeros", "--gpu"]
    on = ["--plan", "clusters=on"]
    for options, env, grid, launched in ((on, {}, "6,3", "cuLaunchKernelEx grid 6 3 1 attribute 4 2"), (on, {}, "5,3", "cuLaunchKernel grid 5 3 1"),
                                         ([], {}, "6,3", "cuLaunchKernel grid 6 3 1"), (on, {"FAKE_CUDA_CLUSTERS": 0}, "6,3", "cuLaunchKernel grid 6 3 1")):
        result, seen = calls(clusters + options + ["--grid", grid], **env)
        check(f"clusters {options} {env} {grid}", result.returncode == 0 and any(c.startswith(launched) for c in seen), (result.stderr, seen))
        check(f"clusters {options} {env} {grid}: a warning", ("cannot hold 2 blocks" in result.stderr) == bool(env), result.stderr)
    expect("remark on clusters", run(clusters + on + ["--emit", "plan", "--remarks"], folder), 0, None, "clusters of 2 blocks along x, as the hint num_cta_in_cga = 2 asks")
    expect("remark without clusters", run(clusters + ["--emit", "plan", "--remarks"], folder), 0, None, "no clusters, though the hint says num_cta_in_cga = 2; blocks would share nothing (--plan clusters=on)")
    expect("target", run(launch + ["--target", "sm_100a"], folder), 1, "E0808", "Fake GPU")
    expect("bad target", run(launch + ["--target", "sm_91"], folder), 2, "U0001", "sm_90a")
    expect("bad device word", run(launch[:-1] + ["--gpu=fast"], folder), 2, "U0001")
    expect("bad emit", run(launch + ["--emit", "tasm"], folder), 2, "U0001")
    expect("bad plan", run(launch + ["--plan", "warps"], folder), 2, "U0001")
    expect("bad level", run(launch + ["-O4"], folder), 2, "U0001")
    expect("cpu and gpu", run(launch + ["--cpu"], folder), 2, "U0001")
    expect("option without gpu", run(launch[:-1] + ["--lineinfo"], folder), 2, "U0001", "--lineinfo")
    expect("observer", run(launch + ["--trace=t.trace"], folder), 1, "E0808", "--cpu")
    expect("emit", run(["k.tile", "--emit", "ptx", "--target", "sm_80"], folder), 0, None, ".target sm_80", ".entry")
    expect("emit", run(["k.tile", "--emit", "ptx=k.ptx", "--emit", "plan=k.plan", "--emit", "llvm=k.ll", "--emit", "cubin=k.cubin"], folder), 0)
    for name in ("k.ptx", "k.plan", "k.ll", "k.cubin"):
        check("emit", (folder / name).exists() and (folder / name).stat().st_size > 0, name)
    check("emit", (folder / "k.cubin").read_bytes()[:4] == b"\x7fELF" and "sm_90a" in (folder / "k.ptx").read_text())
    expect("emit without driver", run(["k.tile", "--emit", "ptx"], folder, TILEVM_DRIVER="/no/such"), 0, None, ".target sm_90a")
    result = run(launch + ["--remarks=json"], folder)
    remarks = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    check("remarks", result.returncode == 0 and all("unit" in r and "place" in r for r in remarks), result.stderr)

    # Limits and numbers of the emulation.
    (folder / "endless.tile").write_text("cuda_tile.module @m { entry @e(%p: tile<ptr<f32>>) { loop { continue } return } }\n")
    endless = ["endless.tile", "--arg", "ptr:f32[1]=zeros", "--gpu=emulate"]
    expect("time limit of the emulation", run([*endless, "--time-limit", "0.3"], folder), 6, "L0106", "the launch takes longer than 0.3 s", "raise --time-limit")
    expect("fuel of the emulation", run([*endless, "--fuel", "1000"], folder), 6, "L0104", "endless.tile:1:")
    for seed in "-1", "x", "18446744073709551616", "1.5":
        expect(f"seed {seed}", run([*endless, "--emulate-seed", seed], folder), 2, "U0001", "--emulate-seed")
    expect("the last seed", run([*launch[:-1], "--gpu=emulate", "--emulate-seed", "18446744073709551615"], folder), 0)

    # --both: the fake computes nothing, so the GPU's results are wrong.
    expect("both", run(launch + ["--both"], folder), 5, "E0809", "Fake GPU against cpu", "[0]: 5", "expected 6", "k.tile:8:", "that element is written by block (0, 0, 0)")
    # Of five blocks each writes its number; zeros are there before.
    (folder / "numbers.tile").write_text(NUMBERS)
    expect("both, a block of several", run(["numbers.tile", "--gpu", "--both", "--grid", "5", "--arg", "ptr:i32[5]=zeros"], folder), 5, "E0809", "4 of 5 elements differ, first at [1]", "written by block (1, 0, 0)")
    expect("both, emulated", run(launch[:-1] + ["--gpu=emulate", "--both"], folder), 0, None, "agree")
    result = run(launch + ["--json"], folder)
    check("json", result.returncode == 0 and json.loads(result.stdout)["device"] == "Fake GPU", result.stdout)
    # What a launch spent its time on: compiled by the first, found by the second.
    for cache, made in ("phases", "compile"), ("phases", "cache"):
        begun = time.monotonic()
        result = run(launch + ["--json", "--repeat", "2"], folder, TILEVM_CACHE=folder / cache)
        took, phases = time.monotonic() - begun, json.loads(result.stdout)["phases"]
        check(f"phases, {made}", list(phases) == ["driver", "context", "assembler", "memory", "plan", made, "load", "launch", "results"], phases)
        check(f"phases, {made}: their sum", all(s >= 0 for s in phases.values()) and 0 < sum(phases.values()) < took, (phases, took))
    check("phases of the interpreter", "phases" not in json.loads(run([*launch[:-1], "--json"], folder).stdout), "")

    # Facts.
    result = run(["devices", "--json"], folder)
    facts = json.loads(result.stdout)
    check("devices", result.returncode == 0 and facts["driver"]["cuda"] == "13.0" and facts["driver"]["highest_ptx"] == "9.0", facts)
    check("devices", facts["devices"][0]["target"] == "sm_90a" and facts["devices"][0]["uuid"] == "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a", facts)
    expect("devices", run(["devices"], folder), 0, None, "Fake GPU")
    expect("devices without driver", run(["devices"], folder, TILEVM_DRIVER="/no/such"), 3, "E0910", "none")
    expect("version", run(["--version"], folder), 0, None, "LLVM", "Fake GPU")

    # Timing.
    result = run(["bench", "k.tile", "--arg", "ptr:f32[1]=zeros", "--arg", "i1:true", "--rounds", "3", "--json", "--flops", "1000"], folder)
    check("bench", result.returncode == 0, result.stderr)
    if result.returncode == 0:
        bench = json.loads(result.stdout)
        check("bench", bench["ours"]["median_s"] == 0.00025 and bench["ours"]["rounds"] == 3 and bench["flops"] == 1000, bench)
    result = run(["bench", "k.tile", "--arg", "ptr:f32[1]=zeros", "--arg", "i1:true", "--rounds", "3", "--peer-cubin", "k.cubin", "--peer-entry", "other"], folder)
    expect("bench with a peer", result, 0, None, "peer", "all arrays are equal", "GB/s")
    (folder / "no.cubin").write_text("no cubin" * 20)
    peer = ["bench", "k.tile", "--arg", "ptr:f32[1]=zeros", "--arg", "i1:true", "--rounds", "3", "--peer-cubin"]
    expect("a peer that is no cubin", run([*peer, "no.cubin"], folder), 3, "E0901", "no.cubin: error: this is no cubin")
    expect("a peer without the entry", run([*peer, "k.cubin"], folder, FAKE_CUDA_FAIL="cuModuleGetFunction:500"), 3, "E0913", "no kernel")
    check("bench of a kernel without products has no ceiling of products", "of the unit" not in result.stdout and "mma" not in bench, result.stdout)
    # Products beside the unit's rate: two warpgroups, each with 16 wgmma of 64 x 256 x 16 in one repetition. The fake's time leads to 4096 repetitions.
    (folder / "product.tile").write_text(PRODUCT)
    product = ["bench", "product.tile", "--arg", "ptr:f32[4096]=zeros", "--rounds", "3"]
    result = run(product + ["--json"], folder)
    check("bench of a product", result.returncode == 0, result.stderr)
    if result.returncode == 0:
        bench = json.loads(result.stdout)
        flops = 2 * 64 * 256 * 16 * 16 * 2 * 4096 * 132
        check("rate of the unit", bench["mma"]["unit"] == "wgmma m64n256k16" and bench["mma"]["flops"] == flops and abs(bench["mma"]["tflops"] - flops / 0.00025 * 1e-12) < 1, bench["mma"])
        check("share of the unit", bench["flops"] == 2 * 64 ** 3 and abs(bench["of_mma"] / (bench["flops"] / flops) - 1) < 1e-9, bench)
        check("share of a copy", bench["of_copy"] > 0, bench)
    result, seen = calls(product)
    expect("bench of a product", result, 0, None, "% of the unit)", "wgmma m64n256k16", "mma")
    check("no model of a product outside of loops", "model" not in result.stdout, result.stdout)
    matrices = [w for shape in ("1024,1024", "1024,1024", "1024,1024") for w in ("--arg", f"array:f16[{shape}]=zeros")]
    result = run(["bench", SOURCE / "tools" / "bench" / "gpu" / "kernels" / "mm_f16_128x256x64_c2_p0.tile", "--grid", "32", "--rounds", "3", "--json", *matrices], folder)
    check("bench of a grid of products", result.returncode == 0, result.stderr)
    if result.returncode == 0:
        model = json.loads(result.stdout).get("model", {})
        check("model of a grid of products", model.get("rows") == 128 and model.get("columns") == 256 and model.get("tiles") == 32 and model.get("waves") == 1 and
              abs(model.get("us", 0) - (4.1 + 4.6 + 16 * 0.65)) < 1e-6 and model.get("better", {}).get("tiles") == 128, model)
    # Blocks that loop, unless their kernel spills more than one that does not.
    many = ["bench", SOURCE / "tools" / "bench" / "gpu" / "kernels" / "mm_f16_128x128x64_c1_p0.tile", "--grid", "256", "--rounds", "1", *[w if ":" not in w else w.replace("1024,1024", "2048,2048") for w in matrices]]
    for spills, threads in (("", 384), ("0,8", 384), ("0,1448", 256), ("200,1448", 256), ("1448,1448", 384)):  # of the one that does not loop, then of the other
        result, seen = calls(many, FAKE_CUDA_LOCAL=spills)
        launches = [c for c in seen if c.startswith("cuLaunchKernel ") and " shared 0" not in c]
        check(f"blocks that loop, spills {spills}", result.returncode == 0 and launches and all(f" block {threads} 1 1 " in c for c in launches), (result.stderr[-300:], launches[:3]))
    check("matrix_rate is loaded and launched", "cuModuleGetFunction matrix_rate" in seen and any(c.startswith("cuLaunchKernel grid 132 1 1 block 256 1 1 shared 0") for c in seen), seen[-20:])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "k.tile").write_text(KERNEL)
        version = subprocess.run([TILEVM, "--version"], capture_output=True, text=True, env={**os.environ, "TILEVM_DRIVER": "/no/such"}).stdout
        if "gpu: not in this build" in version:
            without_gpu_part(folder)
        else:
            with_gpu_part(folder)
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
