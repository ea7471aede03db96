// From a valid entry to PTX or to loaded host code.
#include "backend/compile.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include "backend/plan/plan.h"
#include "backend/ptx/jit.h"
#include "backend/ptx/lowering.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tile {
namespace {

constexpr unsigned kNewestPtx = 85;  // of LLVM 19

/// LLVM's feature for a PTX version "8.3": "+ptx83", at most what LLVM 19 knows.
std::string ptx_feature(const std::string& version) {
  unsigned n = 0;
  for (const char c : version)
    if (c != '.') n = n * 10 + static_cast<unsigned>(c - '0');
  return "+ptx" + std::to_string(std::min(n, kNewestPtx));
}

std::unique_ptr<llvm::TargetMachine> ptx_machine(const Target& target, unsigned opt, std::string& error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  const char* triple = "nvptx64-nvidia-cuda";
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const auto level = opt == 0 ? llvm::CodeGenOptLevel::None : opt == 1 ? llvm::CodeGenOptLevel::Less : opt == 2 ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::Aggressive;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, target.llvm_cpu, ptx_feature(target.ptx_version), options, llvm::Reloc::PIC_, std::nullopt, level));
}

/// Leaves out passes of LLVM's own sequence whose only effect on kernels is the time they take: those for calls, global variables and branches that
/// kernels do not have, and in the last part of the sequence those for what the vectorisers would have left them to do.
void leave_out_idle_passes(llvm::PassInstrumentationCallbacks& callbacks) {
  callbacks.registerShouldRunOptionalPassCallback([last_part = false](llvm::StringRef name, const llvm::Any&) mutable {
    static constexpr std::string_view kIdle[] = {"CalledValuePropagationPass", "GlobalOptPass", "PostOrderFunctionAttrsPass", "ConstraintEliminationPass", "ADCEPass", "MemCpyOptPass", "RecomputeGlobalsAAPass", "TailCallElimPass"};
    static constexpr std::string_view kIdleInTheEnd[] = {"InstCombinePass", "InstSimplifyPass", "LoopDeletionPass"};
    const auto among = [&](const auto& names) { return std::find(std::begin(names), std::end(names), std::string_view(name)) != std::end(names); };
    last_part = last_part || name == "Float2IntPass";  // the first of that part
    return !among(kIdle) && !(last_part && among(kIdleInTheEnd));
  });
}

/// @param machine  null for code of the emulation, where nothing may become a call of a C function
void optimise(llvm::Module& module, llvm::TargetMachine* machine, unsigned level) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = tuning.LoopUnrolling = false;
  llvm::PassInstrumentationCallbacks callbacks;
  if (level >= 2) leave_out_idle_passes(callbacks);
  llvm::PassBuilder builder(machine, tuning, std::nullopt, &callbacks);
  llvm::TargetLibraryInfoImpl no_functions;
  no_functions.disableAllFunctions();
  if (!machine) fam.registerPass([&] { return llvm::TargetLibraryAnalysis(no_functions); });
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  const auto& o = level == 0 ? llvm::OptimizationLevel::O0 : level == 1 ? llvm::OptimizationLevel::O1 : level == 2 ? llvm::OptimizationLevel::O2 : llvm::OptimizationLevel::O3;
  auto passes = level == 0 ? builder.buildO0DefaultPipeline(o) : builder.buildPerModuleDefaultPipeline(o);
  passes.run(module, mam);
}

/// LLVM 19 does not fold a constant of one 16-bit float type that is read as the other, NVPTX has no code for it, and values become constants as
/// late as there. So constants are folded here, and what else passes from one type to the other does so in an instruction that nobody looks into.
void part_half_types(llvm::Module& module) {
  const auto is_half = [](const llvm::Type* t) { return t->isHalfTy() || t->isBFloatTy(); };
  std::vector<std::pair<llvm::BitCastInst*, llvm::Value*>> found;
  for (llvm::Function& f : module)
    for (llvm::BasicBlock& block : f)
      for (llvm::Instruction& i : block) {
        for (llvm::Use& use : i.operands()) {
          auto* folded = llvm::dyn_cast<llvm::ConstantExpr>(use.get());
          if (!folded || !is_half(folded->getType()) || folded->getOpcode() != llvm::Instruction::BitCast) continue;
          if (auto* from = llvm::dyn_cast<llvm::ConstantFP>(folded->getOperand(0)))
            use.set(llvm::ConstantFP::get(folded->getType(), llvm::APFloat(folded->getType()->getFltSemantics(), from->getValueAPF().bitcastToAPInt())));
        }
        auto* cast = llvm::dyn_cast<llvm::BitCastInst>(&i);
        if (!cast || !is_half(cast->getType())) continue;
        llvm::Value* from = cast->getOperand(0);
        while (auto* before = llvm::dyn_cast<llvm::BitCastOperator>(from)) from = before->getOperand(0);
        if (is_half(from->getType()) && from->getType() != cast->getType()) found.emplace_back(cast, from);
      }
  for (const auto& [cast, from] : found) {
    llvm::IRBuilder<> b(cast);
    llvm::Type* word = b.getInt16Ty();
    auto* move = llvm::InlineAsm::get(llvm::FunctionType::get(word, {word}, false), "mov.b16 $0, $1;", "=h,h", false);
    cast->replaceAllUsesWith(b.CreateBitCast(b.CreateCall(move, {b.CreateBitCast(from, word)}), cast->getType()));
    cast->eraseFromParent();
  }
}

std::string llvm_text(const llvm::Module& module) {
  std::string out;
  llvm::raw_string_ostream os(out);
  module.print(os, nullptr);
  return out;
}

/// A symbol that PTX takes, made of the entry's name.
std::string symbol_of(std::string_view name) {
  std::string out = "k_";
  for (const char c : name) out += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ? c : '_';
  return out;
}

/// Source lines for profilers: those that the bytecode carries, or those of the text.
class SourceLines {
 public:
  SourceLines(const Module& m, const Function& f, bool numbers, llvm::Module& out, llvm::IRBuilder<>& b) : m_(m), f_(f), numbers_(numbers), b_(b), builder_(out) {
    out.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  }
  /// After the kernel has begun.
  void begin(llvm::Function& kernel) {
    const auto [file, line] = place(kNone);
    (void)builder_.createCompileUnit(llvm::dwarf::DW_LANG_C, this->file(file), "tilevm", true, "", 0, "", llvm::DICompileUnit::DebugDirectivesOnly);
    auto* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
    scope_ = builder_.createFunction(this->file(file), kernel.getName(), kernel.getName(), this->file(file), line, type, line, llvm::DINode::FlagZero,
                                     llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
    kernel.setSubprogram(scope_);
    at(kNone);
  }
  void at(InstId i) {
    const auto [file, line] = place(i);
    llvm::DIScope* scope = scope_;
    if (this->file(file) != scope_->getFile()) scope = builder_.createLexicalBlockFile(scope_, this->file(file));
    b_.SetCurrentDebugLocation(llvm::DILocation::get(b_.getContext(), line, 1, scope));
  }
  void end() { builder_.finalize(); }

 private:
  /// File and line of an instruction, or of the entry.
  std::pair<std::string, unsigned> place(InstId i) const {
    if (numbers_) return {"instructions", i == kNone ? 0 : i + 1};
    const LocId loc = m_.locs.line_of(i == kNone ? f_.loc : f_.insts[i].loc);
    if (loc != kNone) return {std::string(m_.str(m_.locs.get(loc).file)), m_.locs.get(loc).line};
    const Place p = i == kNone ? m_.place(f_) : m_.place(f_, i);
    if (p.source && p.span.valid()) return {p.source->name(), p.source->line_col(p.span.begin).line};
    return {m_.file, 0};
  }
  llvm::DIFile* file(const std::string& name) {
    auto& f = files_[name];
    const size_t slash = name.rfind('/');
    if (!f) f = slash == std::string::npos ? builder_.createFile(name, ".") : builder_.createFile(name.substr(slash + 1), name.substr(0, slash));
    return f;
  }
  const Module& m_;
  const Function& f_;
  bool numbers_;
  llvm::IRBuilder<>& b_;
  llvm::DIBuilder builder_;
  llvm::DISubprogram* scope_ = nullptr;
  std::map<std::string, llvm::DIFile*> files_;
};

/// Blocks of a cluster that the entry's hint for the target asks for: "sm_90" counts for sm_90a, too. 1: none.
uint64_t hinted_cluster(const Module& m, const Function& entry, const Target& target) {
  if (target.sm < 90 || entry.hints == kNone) return 1;
  const auto find = [&](AttrId dictionary, std::string_view name) {
    for (const auto& [key, value] : m.attrs.get(dictionary).entries)
      if (m.str(key) == name) return value;
    return AttrId{kNone};
  };
  for (const std::string& name : {"sm_" + std::to_string(target.sm), std::string("default")}) {
    const AttrId hints = find(entry.hints, name);
    const AttrId value = hints == kNone ? kNone : find(hints, "num_cta_in_cga");
    if (value == kNone) continue;
    return m.attrs.get(value).bits;
  }
  return 1;
}

/// Blocks of the kernel's clusters, with a remark if the hint asks for any. More than eight blocks are not portable.
uint32_t cluster_of(uint64_t hinted, const CompileOptions& options, std::vector<Remark>& remarks) {
  if (hinted <= 1) return 1;
  const std::string hint = "num_cta_in_cga = " + std::to_string(hinted);
  // Blocks of a cluster share nothing yet: products of 4096^3 in clusters of two ran as fast as without on an H200.
  const char* why = options.choice("clusters") != "on" ? "blocks would share nothing (--plan clusters=on)" : hinted != 2 && hinted != 4 && hinted != 8 ? "clusters have 2, 4 or 8 blocks" : "";
  if (*why) {
    remarks.push_back({kNone, "no clusters, though the hint says " + hint, why});
    return 1;
  }
  remarks.push_back({kNone, "clusters of " + std::to_string(hinted) + " blocks along x, as the hint " + hint + " asks, in grids that they divide", ""});
  return static_cast<uint32_t>(hinted);
}

struct Lowered {
  KernelPlan plan;
  CompiledKernel kernel;
};

// Of a kernel's parameters, from PTX 8.1 on; before that kSmallParameterBytes.
constexpr size_t kMostParameterBytes = 32764, kSmallParameterBytes = 4352;

/// One attempt. `room`: bytes that one operation may take of shared memory, in kernels without rings. `excess`: bytes that are missing where the kernel
/// needs more than there is; then there is no result and no error. Nor is there a result if not `apart`: warpgroups that alternate would meet.
Result<Lowered> attempt(const ValidModule& module, const Function& entry, const Target& target, const CompileOptions& options, llvm::Module& out, uint32_t room,
                        uint32_t* excess, bool* apart, Diagnostics& diags) {
  auto plan = make_plan(*module, entry, target, options, diags);
  if (!plan) return Failed;
  Lowered result{*std::move(plan), {}};
  auto device = target.emulated ? make_host_device(out, target) : make_ptx_device(out, target);
  CompiledKernel& k = result.kernel;
  k.entry = symbol_of((*module).str(entry.name));
  k.target = target.name;
  k.threads = result.plan.block_threads();
  k.plan = result.plan.print(*module, entry);
  k.cluster = cluster_of(hinted_cluster(*module, entry, target), options, k.remarks);
  device->clusters = k.cluster > 1;
  Lowering lowering(*device, *module, entry, result.plan, diags);
  if (result.plan.ring_bytes == 0) lowering.room = room;  // kernels with rings lose these first
  lowering.cramped = room < target.max_shared();
  k.linear_grid = lowering.linear_grid = options.choice("grid") == "linear";
  k.loops = result.plan.loops;
  std::optional<SourceLines> lines;
  if ((options.lineinfo || options.instruction_lines) && !target.emulated) {
    lines.emplace(*module, entry, options.instruction_lines, out, device->b);
    lowering.locate = [&, begun = false](InstId i) mutable {
      if (!begun) lines->begin(*device->b.GetInsertBlock()->getParent());
      begun = true;
      lines->at(i);
    };
  }
  if (!lowering.run(k.entry)) return Failed;
  if (lines) lines->end();
  k.shared_bytes = lowering.shared_bytes();
  k.local_bytes_per_block = lowering.local.bytes;
  k.maps = result.plan.maps;
  k.remarks.insert(k.remarks.end(), result.plan.remarks.begin(), result.plan.remarks.end());
  for (Remark& r : lowering.take_remarks()) k.remarks.push_back(std::move(r));
  *apart = !lowering.alternation_fails();
  if (k.shared_bytes > target.max_shared()) *excess = k.shared_bytes - target.max_shared();
  if (const size_t bytes = lowering.parameter_bytes(); bytes > kMostParameterBytes)
    return diags.error(Code::E0808, (*module).place(entry),
                       "the kernel needs " + std::to_string(bytes) + " bytes of parameters (8 for each of the entry's and each global of the module), a kernel has at most " +
                           std::to_string(kMostParameterBytes));
  std::string broken;
  llvm::raw_string_ostream os(broken);
  if (llvm::verifyModule(out, &os))
    return diags.error(Code::I0001, (*module).place(entry), "the code generator made invalid code: " + broken.substr(0, broken.find('\n')));
  return result;
}

/// Carries values of type bfloat from block to block as integers. LLVM's x86 code has no registers for the type and would carry them as
/// float; the way back is a conversion, which is slow and changes the bits of a NaN that the kernel only moves.
void carry_bfloats_as_words(llvm::Module& module) {
  llvm::Type* word = llvm::Type::getInt16Ty(module.getContext());
  for (llvm::Function& function : module) {
    std::vector<llvm::Instruction*> values;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& i : block)
        if (i.getType()->isBFloatTy()) values.push_back(&i);
    const auto behind = [](llvm::Instruction* i) { return llvm::isa<llvm::PHINode>(i) ? i->getParent()->getFirstInsertionPt() : std::next(i->getIterator()); };
    for (llvm::Instruction* i : values) {
      std::vector<llvm::Use*> away;
      for (llvm::Use& use : i->uses()) {
        const auto* user = llvm::cast<llvm::Instruction>(use.getUser());
        if (user->getParent() != i->getParent() || llvm::isa<llvm::PHINode>(user)) away.push_back(&use);
      }
      if (away.empty()) continue;
      llvm::IRBuilder<> b(i->getParent(), behind(i));
      llvm::Value* bits = b.CreateBitCast(i, word);
      std::map<llvm::BasicBlock*, llvm::Value*> back;
      for (llvm::Use* use : away) {
        auto* user = llvm::cast<llvm::Instruction>(use->getUser());
        const auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
        llvm::BasicBlock* where = phi ? phi->getIncomingBlock(*use) : user->getParent();
        llvm::Value*& value = back[where];
        if (!value) {
          if (where == i->getParent())
            b.SetInsertPoint(where, std::next(llvm::cast<llvm::Instruction>(bits)->getIterator()));
          else
            b.SetInsertPoint(where, where->getFirstInsertionPt());
          value = b.CreateBitCast(bits, i->getType());
        }
        use->set(value);
      }
    }
    for (llvm::Instruction* i : values) {
      auto* phi = llvm::dyn_cast<llvm::PHINode>(i);
      if (!phi) continue;
      llvm::IRBuilder<> b(phi);
      llvm::PHINode* words = b.CreatePHI(word, phi->getNumIncomingValues());
      for (unsigned k = 0; k < phi->getNumIncomingValues(); ++k) {
        b.SetInsertPoint(phi->getIncomingBlock(k)->getTerminator());
        words->addIncoming(b.CreateBitCast(phi->getIncomingValue(k), word), phi->getIncomingBlock(k));
      }
      b.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
      phi->replaceAllUsesWith(b.CreateBitCast(words, phi->getType()));
      phi->eraseFromParent();
    }
  }
}

class HostKernel final : public EmulatedKernel {
 public:
  HostKernel(CompiledKernel kernel, std::unique_ptr<LoadedCode> code) : kernel_(std::move(kernel)), code_(std::move(code)) {}
  [[nodiscard]] const CompiledKernel& kernel() const override { return kernel_; }
  [[nodiscard]] void* code() const override { return code_->entry(); }
  [[nodiscard]] size_t frame_bytes() const override { return code_->frame_bytes(); }

 private:
  CompiledKernel kernel_;
  std::unique_ptr<LoadedCode> code_;
};

/// Lowers the entry; where the stages of rings leave too little shared memory for the rest, with fewer stages, and in the end without
/// rings. `fresh` gives an empty module for every attempt.
Result<Lowered> lower(const ValidModule& module, const Function& entry, const Target& target, CompileOptions options, const std::function<llvm::Module&()>& fresh,
                      Diagnostics& diags) {
  for (uint32_t room = target.max_shared();;) {
    uint32_t excess = 0;
    bool apart = true;
    auto result = attempt(module, entry, target, options, fresh(), room, &excess, &apart, diags);
    if (!result || (excess == 0 && apart)) return result;
    if (!apart) {
      options.plan["alternate"] = "off";
      continue;
    }
    const KernelPlan& plan = result->plan;
    constexpr uint32_t kLeastRoom = 4096;
    if (plan.ring_bytes == 0 && room / 2 >= kLeastRoom) {
      room /= 2;
      continue;
    }
    if (plan.ring_bytes == 0)
      return diags.error(Code::E0808, (*module).place(entry),
                         "the kernel needs " + std::to_string(result->kernel.shared_bytes) + " bytes of shared memory, a block of " + target.name + " has " +
                             std::to_string(target.max_shared()),
                         "use smaller tiles");
    if (plan.roles && !options.plan.contains("roles")) {
      options.plan["roles"] = "off";
      continue;
    }
    unsigned stages = 0;
    uint32_t stage_bytes = 0;
    const auto longest = [&](const auto& ring) {
      if (ring.end() == plan.ring_bytes) stages = ring.stages, stage_bytes = ring.stage_bytes;
    };
    for (const auto& [loop, ring] : plan.rings) longest(ring);
    for (const auto& [loop, ring] : plan.streams) longest(ring);
    const uint32_t fewer = (excess + stage_bytes - 1) / stage_bytes;
    if (stages >= fewer + 2) {
      options.plan["stages"] = std::to_string(stages - fewer);
    } else {
      const bool copies = !plan.rings.empty() && plan.rings.begin()->second.copies;
      options.plan[copies ? "ring" : "tma"] = "off";
    }
  }
}

void set_up_ptx_module(llvm::Module& code, llvm::TargetMachine& machine) {
  code.setTargetTriple("nvptx64-nvidia-cuda");
  code.setDataLayout(machine.createDataLayout());
}

/// Optimises the module and writes it as PTX; `llvm` gets the text of what was optimised, if it is not null.
Result<std::string> ptx_text(llvm::Module& code, const Target& target, llvm::TargetMachine& machine, unsigned opt_level, std::string* llvm, Diagnostics& diags) {
  optimise(code, &machine, opt_level);
  part_half_types(code);
  if (llvm) *llvm = llvm_text(code);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager emit;
  constexpr bool kNoVerifier = true;  // attempt() has one
  if (machine.addPassesToEmitFile(emit, os, nullptr, llvm::CodeGenFileType::AssemblyFile, kNoVerifier)) return diags.error(Code::I0001, Place{}, "LLVM cannot emit PTX");
  emit.run(code);
  std::string ptx(text.data(), text.size());
  // Targets newer than LLVM's are named in the header; the instructions are a subset of theirs.
  const auto line = [&](const char* key, const std::string& value) {
    const size_t at = ptx.find(key);
    if (at == std::string::npos) return;
    const size_t end = ptx.find('\n', at);
    ptx.replace(at, end - at, std::string(key) + " " + value);
  };
  if (target.sm > 90) {
    line(".version", target.ptx_version);
    line(".target", target.ptx_target);
  }
  // Not for all kernels, since older drivers take the rest: many parameters, wgmma of signed by unsigned integers.
  const auto many = [](const llvm::Function& f) { return f.hasExternalLinkage() && !f.isDeclaration() && f.arg_size() * 8 > kSmallParameterBytes; };
  if (target.ptx_version < "8.1" && llvm::any_of(code, many)) line(".version", "8.1");
  const auto has = [&](const char* what) { return ptx.find(what) != std::string::npos; };
  if (target.ptx_version < "8.4" && (has(".s32.s8.u8") || has(".s32.u8.s8")) && has("wgmma.mma_async")) line(".version", "8.4");
  return ptx;
}

Result<Target> target_of(const CompileOptions& options, const Place& place, Diagnostics& diags) {
  static constexpr std::string_view kPlanKeys[] = {
      "ahead", "alternate", "blocks", "clusters", "grid", "left", "mma", "order", "refill", "ring", "roles", "rotate", "single", "stages", "store", "tma", "together", "unaligned", "warps", "whole",
  };
  for (const auto& [key, value] : options.plan) {
    if (std::find(std::begin(kPlanKeys), std::end(kPlanKeys), key) != std::end(kPlanKeys)) continue;
    std::string names;
    for (const std::string_view name : kPlanKeys) names += (names.empty() ? "" : ", ") + std::string(name);
    return diags.error(Code::E0808, place, "the planner has no choice '" + key + "'", "the choices are " + names);
  }
  if (auto t = find_target(options.target)) return *t;
  return diags.error(Code::E0808, place, "there is no target '" + options.target + "'", "the targets are " + target_names());
}

}  // namespace

void exit_without_memory(int status) {
  static std::atomic<int> wanted;
  wanted = status;
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { ::_exit(wanted); });
  std::set_new_handler([] { ::_exit(wanted); });
}

Result<LaunchNeeds> launch_needs(const ValidModule& module, const Function& entry, const CompileOptions& options, Diagnostics& diags) {
  auto target = target_of(options, (*module).place(entry), diags);
  if (!target) return Failed;
  auto plan = make_plan(*module, entry, *target, options, diags);
  if (!plan) return Failed;
  LaunchNeeds needs{std::move(plan->maps), false};
  needs.loop_pays = plan->loops;  // on request
  if (plan->rings.empty() || options.plan.contains("grid")) return needs;
  CompileOptions looping = options;
  looping.plan["grid"] = "loop";
  const auto other = make_plan(*module, entry, *target, looping, diags);
  needs.loop_pays = other && blocks_should_follow(*module, entry, *other);
  return needs;
}

Result<CompiledKernel> compile_ptx(const ValidModule& module, const Function& entry, const CompileOptions& options, Diagnostics& diags) {
  auto target = target_of(options, (*module).place(entry), diags);
  if (!target) return Failed;
  std::string error;
  const auto machine = ptx_machine(*target, options.opt_level, error);
  if (!machine) return diags.error(Code::I0001, Place{}, "LLVM has no NVPTX target: " + error);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> made;
  auto lowered = lower(module, entry, *target, options, [&]() -> llvm::Module& {
    made = std::make_unique<llvm::Module>("tilevm", context);
    set_up_ptx_module(*made, *machine);
    return *made;
  }, diags);
  if (!lowered) return Failed;
  CompiledKernel kernel = std::move(lowered->kernel);
  auto ptx = ptx_text(*made, *target, *machine, options.opt_level, options.keep_llvm ? &kernel.llvm : nullptr, diags);
  if (!ptx) return Failed;
  kernel.ptx = *std::move(ptx);
  return kernel;
}

Result<std::string> ptx_of(const std::function<void(llvm::Module&)>& fill, const Target& target, Diagnostics& diags) {
  std::string error;
  const auto machine = ptx_machine(target, 3, error);
  if (!machine) return diags.error(Code::I0001, Place{}, "LLVM has no NVPTX target: " + error);
  llvm::LLVMContext context;
  llvm::Module code("tilevm", context);
  set_up_ptx_module(code, *machine);
  fill(code);
  return ptx_text(code, target, *machine, 3, nullptr, diags);
}

Result<std::unique_ptr<EmulatedKernel>> compile_emulated(const ValidModule& module, const Function& entry, const CompileOptions& options, Diagnostics& diags) {
  auto target = target_of(options, (*module).place(entry), diags);
  if (!target) return Failed;
  target->emulated = true;
  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code;
  auto lowered = lower(module, entry, *target, options, [&]() -> llvm::Module& {
    code = std::make_unique<llvm::Module>("tilevm", *context);
    set_up_host_module(*code);
    return *code;
  }, diags);
  if (!lowered) return Failed;
  if (options.optimise_host) optimise(*code, nullptr, options.opt_level);
  carry_bfloats_as_words(*code);
  if (options.keep_llvm) lowered->kernel.llvm = llvm_text(*code);
  auto loaded = load_host_code(std::move(context), std::move(code), lowered->kernel.entry, diags);
  if (!loaded) return Failed;
  return std::unique_ptr<EmulatedKernel>(std::make_unique<HostKernel>(std::move(lowered->kernel), *std::move(loaded)));
}

}  // namespace tile
