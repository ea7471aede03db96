// The scalar lowering against the interpreter: every operation on every type with every modifier, run as host code; and
// that LLVM makes PTX of all of it for old and new targets.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "tests/unit/backend_scalar_kit.h"

using namespace scalar_kit;

namespace {

// --- what the device supplies -------------------------------------------------------------------

/// An approximate instruction may be off: the nearest result or a neighbour, by the argument.
float about(double exact, float x) {
  const auto r = static_cast<float>(exact);
  if (!(std::fabs(r) >= 0x1p-126f) || std::isinf(r) || x == 0) return r;
  const float moved = float_of(float_bits(r) + (float_bits(x) * 0x9E3779B1u >> 16) % 3 - 1);
  return std::isinf(moved) ? r : moved;
}
float host_ex2(float x) {
  return about(std::exp2(static_cast<double>(x)), x);
}
float host_lg2(float x) {
  return about(std::log2(static_cast<double>(x)), x);
}
float host_rcp(float x) {
  return about(1 / static_cast<double>(x), x);
}
float host_rsqrt(float x) {
  return about(1 / std::sqrt(static_cast<double>(x)), x);
}
float host_sqrt(float x) {
  return about(std::sqrt(static_cast<double>(x)), x);
}
float host_sin(float x) {
  return about(std::sin(static_cast<double>(x)), x);
}
float host_cos(float x) {
  return about(std::cos(static_cast<double>(x)), x);
}
float host_tanh(float x) {
  return about(std::tanh(static_cast<double>(x)), x);
}
template <ElementType T>
uint32_t host_fma(uint32_t x, uint32_t y, uint32_t z) {
  const uint16_t a = static_cast<uint16_t>(x), b = static_cast<uint16_t>(y), c = static_cast<uint16_t>(z);
  const void* in[] = {&a, &b, &c};
  uint16_t r = 0;
  find_elementwise(Opcode::Fma, T, T, {})(&r, in, 1);
  return r;
}

struct Host {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<Variant> variants = all_variants();
  Host() {
    using namespace llvm::orc;
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("scalar", *context);
    const Target target = make_target(90, true);
    ArithmeticDevice d(*module, target);
    for (const Variant& v : variants) {
      std::string why;
      const bool lowered = add_function(d, v, why);
      if (!lowered) declined.push_back(v.name + ": " + why);
    }
    if (const char* file = std::getenv("SCALAR_IR")) {
      std::error_code ec;
      llvm::raw_fd_ostream out(file, ec);
      out << *module;
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    broken = llvm::verifyModule(*module, &stream);
    if (broken) {
      MESSAGE(text.substr(0, 2000));
      return;
    }
    JITTargetMachineBuilder machine(llvm::Triple("x86_64-unknown-linux-gnu"));
    machine.setCPU("x86-64-v3").setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
    auto made = LLJITBuilder().setJITTargetMachineBuilder(machine).create();
    if (!made) {
      llvm::consumeError(made.takeError());
      return;
    }
    jit = std::move(*made);
    module->setDataLayout(jit->getDataLayout());
    SymbolMap symbols;
    const auto add = [&](const char* name, auto* f) {
      symbols[jit->mangleAndIntern(name)] = {ExecutorAddr::fromPtr(f), llvm::JITSymbolFlags::Exported};
    };
    add("host_ex2", host_ex2);
    add("host_lg2", host_lg2);
    add("host_rcp", host_rcp);
    add("host_rsqrt", host_rsqrt);
    add("host_sqrt", host_sqrt);
    add("host_sin", host_sin);
    add("host_cos", host_cos);
    add("host_tanh", host_tanh);
    add("host_fma_f16", host_fma<ElementType::F16>);
    add("host_fma_bf16", host_fma<ElementType::BF16>);
    llvm::cantFail(jit->getMainJITDylib().define(absoluteSymbols(symbols)));
    if (auto e = jit->addIRModule(ThreadSafeModule(std::move(module), std::move(context)))) {
      llvm::consumeError(std::move(e));
      jit = nullptr;
    }
  }
  std::vector<std::string> declined;
  bool broken = false;
};

}  // namespace

TEST_CASE("every operation computes on the host what the interpreter computes") {
  Host host;
  std::string declined;
  for (const std::string& s : host.declined) declined += s + "\n";
  CHECK_MESSAGE(host.declined.empty(), declined);
  REQUIRE(host.jit != nullptr);
  const char* only = std::getenv("SCALAR_ONLY");
  std::map<std::string, int64_t> worst;
  for (const Variant& v : host.variants) {
    if (only && v.name.find(only) == std::string::npos) continue;
    auto symbol = host.jit->lookup(v.name);
    if (!symbol) {
      FAIL(llvm::toString(symbol.takeError()).substr(0, 400));
      return;
    }
    auto* const f = symbol->toPtr<uint64_t (*)(uint64_t, uint64_t, uint64_t)>();
    const std::vector<Tuple> list = operands(v);
    std::vector<std::string> in(v.in.size());
    for (size_t k = 0; k < v.in.size(); ++k) {
      const size_t size = info(v.in[k]).storage;
      in[k].resize(list.size() * size);
      for (size_t i = 0; i < list.size(); ++i) write_bits(in[k].data(), size, list[i].x[k], i);
    }
    const void* pointers[3] = {};
    for (size_t k = 0; k < in.size(); ++k) pointers[k] = in[k].data();
    const size_t size = info(v.out).storage;
    std::string expected(list.size() * size, 0);
    v.kernel(expected.data(), pointers, list.size());
    size_t wrong = 0;
    std::string examples;
    for (size_t i = 0; i < list.size(); ++i) {
      const uint64_t got = f(list[i].x[0], list[i].x[1], list[i].x[2]), want = read_bits(expected.data(), size, i);
      if (right(v, got, want, list[i])) {
        if (allowed(v) != 0 && !v.modifiers.flush_to_zero && decode(v.out, got) == decode(v.out, got)) {
          int64_t& w = worst[v.name];
          w = std::max(w, std::abs(position(v.out, got) - position(v.out, want)));
        }
        continue;
      }
      if (wrong++ < 4) {
        char line[160];
        std::snprintf(line, sizeof line, "  (%llx, %llx, %llx) gives %llx, not %llx\n",
                      static_cast<unsigned long long>(list[i].x[0]), static_cast<unsigned long long>(list[i].x[1]),
                      static_cast<unsigned long long>(list[i].x[2]), static_cast<unsigned long long>(got),
                      static_cast<unsigned long long>(want));
        examples += line;
      }
    }
    CHECK_MESSAGE(wrong == 0, v.name << ": " << wrong << " of " << list.size() << "\n" << examples);
  }
  if (only)
    for (const auto& [name, w] : worst) MESSAGE(name << " off by at most " << w);
}

TEST_CASE("every operation compiles to PTX without calls out") {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  const std::vector<Variant> variants = all_variants();
  const char* folder = std::getenv("SCALAR_PTX");  // where the texts are wanted
  for (const unsigned sm : {75u, 80u, 90u}) {
    llvm::LLVMContext context;
    llvm::Module module("scalar", context);
    const Target target = make_target(sm, false);
    ArithmeticDevice d(module, target);
    std::string why, error;
    std::string declined;
    for (const Variant& v : variants)
      if (add_function(d, v, why))
        add_kernel(d, v);
      else
        declined += v.name + " ";
    CHECK_MESSAGE(declined.empty(), declined);
    llvm::raw_string_ostream errors(error);
    REQUIRE_MESSAGE(!llvm::verifyModule(module, &errors), error);
    const std::string triple = "nvptx64-nvidia-cuda";
    module.setTargetTriple(triple);
    const llvm::Target* t = llvm::TargetRegistry::lookupTarget(triple, error);
    REQUIRE(t != nullptr);
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
    std::unique_ptr<llvm::TargetMachine> machine(t->createTargetMachine(
        triple, target.llvm_cpu, "+ptx78", options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
    module.setDataLayout(machine->createDataLayout());
    llvm::SmallString<0> text;
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager passes;
    REQUIRE(!machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile));
    passes.run(module);
    CHECK(text.str().find(".extern") == llvm::StringRef::npos);
    const size_t at = text.str().find(".extern");
    if (at != llvm::StringRef::npos) MESSAGE(text.str().substr(at, 600).str());
    if (folder) {
      std::error_code ec;
      llvm::raw_fd_ostream file(std::string(folder) + "/scalar_" + target.llvm_cpu + ".ptx", ec);
      file << text;
    }
  }
}
