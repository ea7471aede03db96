#include "backend/ptx/jit.h"

#include <atomic>
#include <mutex>

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectTransformLayer.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/LEB128.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include "backend/emulate/emulate.h"

namespace tile {
namespace {

using namespace llvm;

/// Sum of the frames in an object's .stack_sizes section: an 8-byte address and a ULEB128 size for each function. 0 if
/// there is none.
size_t frames_of(MemoryBufferRef buffer) {
  auto object = object::ObjectFile::createObjectFile(buffer);
  if (!object) {
    consumeError(object.takeError());
    return 0;
  }
  uint64_t total = 0;
  for (const auto& section : (*object)->sections()) {
    auto name = section.getName();
    auto data = section.getContents();
    if (!name || !data) {
      if (!name) consumeError(name.takeError());
      if (!data) consumeError(data.takeError());
      continue;
    }
    if (*name != ".stack_sizes") continue;
    const uint8_t *p = data->bytes_begin(), *end = data->bytes_end();
    while (end - p > 8) {
      unsigned n = 0;
      const char* wrong = nullptr;
      const uint64_t size = decodeULEB128(p + 8, &n, end, &wrong);
      if (wrong) break;
      total += size;
      p += 8 + n;
    }
  }
  return total;
}

// Frames of the object compiled last by this thread: ORC compiles on the thread that looks a symbol up.
thread_local size_t last_frame = 0;

/// A fixed processor, not the host's: AVX512-BF16 flushes subnormals and AVX512-FP16 rounds once what others round
/// twice.
orc::JITTargetMachineBuilder target_builder() {
  orc::JITTargetMachineBuilder builder(Triple("x86_64-unknown-linux-gnu"));
  builder.setCPU("x86-64-v3");
  builder.setCodeGenOptLevel(CodeGenOptLevel::None);
  builder.getOptions().EmitStackSizeSection = true;
  builder.getOptions().AllowFPOpFusion = FPOpFusion::Strict;
  return builder;
}

/// One for the process: starting one takes longer than compiling a small kernel.
struct Jit {
  std::unique_ptr<orc::LLJIT> lljit;
  orc::JITDylib* runtime = nullptr;
  std::string why;                       // set if it could not be made
  std::atomic<uint64_t> libraries{0};

  Jit() {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    orc::LLJITBuilder builder;
    builder.setJITTargetMachineBuilder(target_builder());
    builder.setLinkProcessSymbolsByDefault(false);
    builder.setPlatformSetUp(orc::setUpInactivePlatform);
    auto made = builder.create();
    if (!made) {
      why = toString(made.takeError());
      return;
    }
    lljit = std::move(*made);
    // Errors come back from the calls; ORC would print them as well.
    lljit->getExecutionSession().setErrorReporter([](Error e) { consumeError(std::move(e)); });
    lljit->getObjTransformLayer().setTransform([](std::unique_ptr<MemoryBuffer> object) {
      last_frame = frames_of(object->getMemBufferRef());
      return Expected<std::unique_ptr<MemoryBuffer>>(std::move(object));
    });
    auto library = lljit->createJITDylib("runtime");
    if (!library) {
      why = toString(library.takeError());
      return;
    }
    runtime = &*library;
    orc::SymbolMap symbols;
    for (const auto& [name, address] : emulation_symbols())
      symbols[lljit->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address), JITSymbolFlags::Exported};
    if (auto e = runtime->define(orc::absoluteSymbols(std::move(symbols)))) why = toString(std::move(e));
  }
};

Jit& jit() {
  static auto* one = new Jit;            // never destroyed: loaded code may live in static objects
  return *one;
}

class OrcCode final : public LoadedCode {
 public:
  OrcCode(orc::JITDylib& library, void* entry, size_t frame) : library_(library), entry_(entry), frame_(frame) {}
  OrcCode(const OrcCode&) = delete;
  ~OrcCode() override { consumeError(jit().lljit->getExecutionSession().removeJITDylib(library_)); }
  [[nodiscard]] void* entry() const override { return entry_; }
  [[nodiscard]] size_t frame_bytes() const override { return frame_; }

 private:
  orc::JITDylib& library_;
  void* entry_;
  size_t frame_;
};

}  // namespace

void set_up_host_module(llvm::Module& module) {
  module.setTargetTriple("x86_64-unknown-linux-gnu");
  if (jit().lljit) module.setDataLayout(jit().lljit->getDataLayout());
}

Result<std::unique_ptr<LoadedCode>> load_host_code(std::unique_ptr<llvm::LLVMContext> context,
                                                   std::unique_ptr<llvm::Module> module, const std::string& entry,
                                                   Diagnostics& diags) {
  orc::ThreadSafeModule owner(std::move(module), std::move(context));  // destroys the module before its context
  llvm::Module& m = *owner.getModuleUnlocked();
  Jit& j = jit();
  if (!j.why.empty()) return diags.error(Code::I0001, {}, "the loader of emulated code does not start: " + j.why);
  std::string why;
  raw_string_ostream text(why);
  if (verifyModule(m, &text))
    return diags.error(Code::I0001, {}, "the code generator made an invalid module: " + text.str());
  set_up_host_module(m);

  auto library = j.lljit->createJITDylib("kernel" + std::to_string(j.libraries.fetch_add(1)));
  if (!library) return diags.error(Code::I0001, {}, "emulated code cannot be loaded: " + toString(library.takeError()));
  library->addToLinkOrder(*j.runtime, orc::JITDylibLookupFlags::MatchExportedSymbolsOnly);
  const auto failed = [&](Error e) {
    const std::string message = toString(std::move(e));
    consumeError(j.lljit->getExecutionSession().removeJITDylib(*library));
    return diags.error(Code::I0001, {}, "emulated code cannot be loaded: " + message);
  };
  if (auto e = j.lljit->addIRModule(*library, std::move(owner))) return failed(std::move(e));
  last_frame = 0;
  auto address = j.lljit->lookup(*library, entry);
  if (!address) return failed(address.takeError());
  return std::unique_ptr<LoadedCode>(
      std::make_unique<OrcCode>(*library, address->toPtr<void*>(), last_frame ? last_frame : size_t{1} << 18));
}

}  // namespace tile
