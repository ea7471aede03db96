// The kernel's text. Products of one repetition differ in their factors and sums: the assembler makes one of equal ones.
#include "backend/cuda/matrix_rate.h"

#include <cstdlib>
#include <vector>

namespace tile::cuda {
namespace {

/// How random words become factors of absolute value 1/2 to 1: bits kept, bits set. Integers take all bits.
struct Factors {
  uint32_t keep, set;
};

Factors factors_of(MatrixType type) {
  switch (type) {
    case MatrixType::F16F32:
    case MatrixType::F16F16: return {0x83FF83FFu, 0x38003800u};
    case MatrixType::BF16F32: return {0x807F807Fu, 0x3F003F00u};
    case MatrixType::TF32F32: return {0x807FE000u, 0x3F000000u};
    case MatrixType::F8F32: return {0x87878787u, 0x30303030u};
    case MatrixType::F64F64: return {0x800FFFFFu, 0x3FE00000u};  // of the upper word
    case MatrixType::I8I32: return {~0u, 0};
  }
  return {~0u, 0};
}

struct Unit {
  const char* shape;               // "m16n8k16"
  const char* types;               // as the instruction spells them
  unsigned a, b, c;                // registers
  unsigned m, n, k;
};

/// mma.sync of a target.
std::optional<Unit> sync_unit(MatrixType type, unsigned sm) {
  const bool old = sm < 80;
  switch (type) {
    case MatrixType::F16F32:
      if (old) return Unit{"m16n8k8", "f32.f16.f16.f32", 2, 1, 4, 16, 8, 8};
      return Unit{"m16n8k16", "f32.f16.f16.f32", 4, 2, 4, 16, 8, 16};
    case MatrixType::F16F16:
      if (old) return Unit{"m16n8k8", "f16.f16.f16.f16", 2, 1, 2, 16, 8, 8};
      return Unit{"m16n8k16", "f16.f16.f16.f16", 4, 2, 2, 16, 8, 16};
    case MatrixType::BF16F32:
      if (old) return std::nullopt;
      return Unit{"m16n8k16", "f32.bf16.bf16.f32", 4, 2, 4, 16, 8, 16};
    case MatrixType::TF32F32:
      if (old) return std::nullopt;
      return Unit{"m16n8k8", "f32.tf32.tf32.f32", 4, 2, 4, 16, 8, 8};
    case MatrixType::F8F32:
      if (sm < 89) return std::nullopt;
      return Unit{"m16n8k32", "f32.e4m3.e4m3.f32", 4, 2, 4, 16, 8, 32};
    case MatrixType::I8I32:
      if (old) return Unit{"m8n8k16", "s32.s8.s8.s32", 1, 1, 2, 8, 8, 16};
      return Unit{"m16n8k32", "s32.s8.s8.s32", 4, 2, 4, 16, 8, 32};
    case MatrixType::F64F64:
      if (old) return std::nullopt;
      if (sm < 90) return Unit{"m8n8k4", "f64.f64.f64.f64", 1, 1, 2, 8, 8, 4};
      return Unit{"m16n8k16", "f64.f64.f64.f64", 8, 4, 4, 16, 8, 16};
  }
  return std::nullopt;
}

std::string list(const std::string& name, unsigned first, unsigned count) {
  std::string out = "{";
  for (unsigned i = 0; i < count; ++i) out += (i ? ", %" : "%") + name + std::to_string(first + i);
  return out + "}";
}

std::string head(const std::string& target, const std::string& version, const std::string& symbol, unsigned threads, unsigned blocks) {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n.visible .entry " + symbol + "(.param .u64 out, .param .u32 times)\n.reqntid " + std::to_string(threads) +
         ", 1, 1\n.minnctapersm " + std::to_string(blocks) +
         "\n{\n.reg .b32 %seed, %times, %lane, %cta, %sum;\n.reg .b64 %out, %at;\n.reg .pred %more;\n"
         "ld.param.u64 %out, [out];\nld.param.u32 %times, [times];\nmov.u32 %lane, %tid.x;\nmov.u32 %cta, %ctaid.x;\n"
         "mad.lo.u32 %seed, %cta, " + std::to_string(threads) + ", %lane;\nmul.wide.u32 %at, %seed, 4;\nadd.u64 %out, %out, %at;\nmad.lo.u32 %seed, %seed, 2654435761, 12345;\n";
}

/// The next random word, made into factors, in a register.
std::string next(const std::string& to, const Factors& f) {
  return "mad.lo.u32 %seed, %seed, 1664525, 1013904223;\nshr.u32 " + to + ", %seed, 5;\nxor.b32 " + to + ", " + to + ", %seed;\nand.b32 " + to + ", " + to + ", " + std::to_string(f.keep) +
         ";\nor.b32 " + to + ", " + to + ", " + std::to_string(f.set) + ";\n";
}

/// Adds up registers of 32 bits, whatever they mean, and stores the sum.
std::string tail(const std::vector<std::string>& words) {
  std::string out = "mov.u32 %sum, 0;\n";
  for (const std::string& w : words) out += "xor.b32 %sum, %sum, " + w + ";\n";
  return out + "st.global.b32 [%out], %sum;\nret;\n}\n";
}

MatrixRateKernel by_sync(MatrixType type, const Unit& u, const std::string& target, const std::string& version) {
  // Four left and two right fragments: eight sums that do not wait for each other. f64 takes twice the registers.
  const bool f64 = type == MatrixType::F64F64;
  const unsigned lefts = f64 ? 2 : 4, rights = 2;
  const Factors f = factors_of(type);
  MatrixRateKernel k;
  k.symbol = "matrix_rate";
  k.unit = std::string("mma.sync ") + u.shape;
  k.threads = 256;
  k.blocks_per_sm = 2;
  const char* scalar = f64 ? "f64" : type == MatrixType::F16F32 || type == MatrixType::BF16F32 || type == MatrixType::TF32F32 || type == MatrixType::F8F32 ? "f32" : "b32";
  std::string p = head(target, version, k.symbol, k.threads, k.blocks_per_sm);
  p += std::string(".reg .") + (f64 ? "f64" : "b32") + " %a<" + std::to_string(lefts * u.a) + ">, %b<" + std::to_string(rights * u.b) + ">;\n.reg ." + scalar + " %c<" +
       std::to_string(lefts * rights * u.c) + ">;\n.reg .b32 %w, %x;\n";
  const auto fill = [&](const std::string& to) { p += f64 ? next("%w", f) + next("%x", {~0u, 0}) + "mov.b64 " + to + ", {%x, %w};\n" : next(to, f); };
  for (unsigned i = 0; i < lefts * u.a; ++i) fill("%a" + std::to_string(i));
  for (unsigned i = 0; i < rights * u.b; ++i) fill("%b" + std::to_string(i));
  for (unsigned i = 0; i < lefts * rights * u.c; ++i) p += std::string("mov.") + scalar + " %c" + std::to_string(i) + ", " + (f64 ? "0d0000000000000000" : scalar[0] == 'f' ? "0f00000000" : "0") + ";\n";
  p += "AGAIN:\n";
  constexpr unsigned kUnroll = 4;
  for (unsigned r = 0; r < kUnroll; ++r)
    for (unsigned i = 0; i < lefts; ++i)
      for (unsigned j = 0; j < rights; ++j) {
        const std::string c = list("c", (i * rights + j) * u.c, u.c), a = list("a", i * u.a, u.a), b = list("b", j * u.b, u.b);
        p += std::string("mma.sync.aligned.") + u.shape + ".row.col." + u.types + " " + c + ", " + a + ", " + b + ", " + c + ";\n";
      }
  p += "sub.u32 %times, %times, 1;\nsetp.ne.u32 %more, %times, 0;\n@%more bra AGAIN;\n";
  std::vector<std::string> words;
  for (unsigned i = 0; i < lefts * rights * u.c; ++i) {
    const std::string c = "%c" + std::to_string(i);
    p += f64 ? ".reg .b32 %l" + std::to_string(i) + ", %h" + std::to_string(i) + ";\nmov.b64 {%l" + std::to_string(i) + ", %h" + std::to_string(i) + "}, " + c + ";\n"
             : ".reg .b32 %s" + std::to_string(i) + ";\nmov.b32 %s" + std::to_string(i) + ", " + c + ";\n";
    words.push_back((f64 ? "%h" : "%s") + std::to_string(i));
  }
  k.ptx = p + tail(words);
  k.flops_per_repetition = 2.0 * u.m * u.n * u.k * lefts * rights * kUnroll * (k.threads / 32);
  return k;
}

/// Two warpgroups, each with 64 x 256 sums. Factors lie in shared memory in rows of 128 bytes, swizzled as bulk copies would leave them: 64 rows of
/// its own for each group, 256 for both.
MatrixRateKernel by_wgmma(MatrixType type, const std::string& target, const std::string& version) {
  struct Spelling {
    const char *types, *tail;
    unsigned k;
  };
  const Spelling s = type == MatrixType::F16F32    ? Spelling{"f32.f16.f16", ", 1, 1, 0, 0", 16}
                     : type == MatrixType::F16F16  ? Spelling{"f16.f16.f16", ", 1, 1, 0, 0", 16}
                     : type == MatrixType::BF16F32 ? Spelling{"f32.bf16.bf16", ", 1, 1, 0, 0", 16}
                     : type == MatrixType::TF32F32 ? Spelling{"f32.tf32.tf32", ", 1, 1", 8}
                     : type == MatrixType::F8F32   ? Spelling{"f32.e4m3.e4m3", ", 1, 1", 32}
                                                   : Spelling{"s32.s8.s8", "", 32};
  constexpr unsigned kN = 256, kLeftBytes = 64 * 128, kRightBytes = kN * 128, kSteps = 4, kUnroll = 4;
  const unsigned registers = type == MatrixType::F16F16 ? kN / 4 : kN / 2;
  const bool floats = type != MatrixType::F16F16 && type != MatrixType::I8I32;
  const Factors f = factors_of(type);
  MatrixRateKernel k;
  k.symbol = "matrix_rate";
  k.unit = "wgmma m64n" + std::to_string(kN) + "k" + std::to_string(s.k);
  k.threads = 256;
  k.blocks_per_sm = 1;
  std::string p = head(target, version, k.symbol, k.threads, k.blocks_per_sm);
  p += ".shared .align 1024 .b8 factors[" + std::to_string(2 * kLeftBytes + kRightBytes) + "];\n.reg .b32 %w, %base, %i, %group, %low;\n.reg .b64 %left, %right, %wide;\n.reg .pred %true;\n";
  p += std::string(".reg .") + (floats ? "f32" : "b32") + " %c<" + std::to_string(registers) + ">;\n";
  for (unsigned step = 0; step < kSteps; ++step) p += ".reg .b64 %a" + std::to_string(step) + ", %b" + std::to_string(step) + ";\n";
  p += "mov.u32 %base, factors;\nshl.b32 %i, %lane, 2;\nFILL:\n" + next("%w", f) + "add.u32 %low, %base, %i;\nst.shared.b32 [%low], %w;\nadd.u32 %i, %i, " + std::to_string(4 * k.threads) +
       ";\nsetp.lt.u32 %more, %i, " + std::to_string(2 * kLeftBytes + kRightBytes) + ";\n@%more bra FILL;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
  // Descriptors: rows of 128 bytes with their swizzle (1 << 62), 1,024 bytes from eight rows to the next eight.
  p += "shr.u32 %group, %lane, 7;\nshfl.sync.idx.b32 %group, %group, 0, 31, -1;\nmad.lo.u32 %low, %group, " + std::to_string(kLeftBytes) + ", %base;\nshr.u32 %low, %low, 4;\ncvt.u64.u32 %wide, %low;\n"
       "or.b64 %left, %wide, 4611686293305294848;\nadd.u32 %low, %base, " + std::to_string(2 * kLeftBytes) + ";\nshr.u32 %low, %low, 4;\ncvt.u64.u32 %wide, %low;\nor.b64 %right, %wide, 4611686293305294848;\n";
  for (unsigned step = 0; step < kSteps; ++step)
    p += "add.u64 %a" + std::to_string(step) + ", %left, " + std::to_string(2 * step) + ";\nadd.u64 %b" + std::to_string(step) + ", %right, " + std::to_string(2 * step) + ";\n";
  for (unsigned i = 0; i < registers; ++i) p += std::string(floats ? "mov.f32 %c" : "mov.b32 %c") + std::to_string(i) + (floats ? ", 0f00000000;\n" : ", 0;\n");
  p += "setp.eq.u32 %true, %lane, %lane;\nAGAIN:\nwgmma.fence.sync.aligned;\n";
  for (unsigned r = 0; r < kUnroll; ++r)
    for (unsigned step = 0; step < kSteps; ++step)
      p += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(kN) + "k" + std::to_string(s.k) + "." + s.types + " " + list("c", 0, registers) + ", %a" + std::to_string(step) + ", %b" +
           std::to_string(step) + ", %true" + s.tail + ";\n";
  p += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nsub.u32 %times, %times, 1;\nsetp.ne.u32 %more, %times, 0;\n@%more bra AGAIN;\n";
  std::vector<std::string> words;
  for (unsigned i = 0; i < registers; ++i) {
    p += ".reg .b32 %s" + std::to_string(i) + ";\nmov.b32 %s" + std::to_string(i) + ", %c" + std::to_string(i) + ";\n";
    words.push_back("%s" + std::to_string(i));
  }
  k.ptx = p + tail(words);
  k.flops_per_repetition = 2.0 * 64 * kN * s.k * kSteps * kUnroll * 2;
  return k;
}

}  // namespace

std::optional<MatrixRateKernel> matrix_rate_kernel(MatrixType type, const std::string& target, unsigned sm, const std::string& ptx_version) {
  if (target == "sm_90a" && type != MatrixType::F64F64) return by_wgmma(type, target, ptx_version);
  const auto unit = sync_unit(type, sm);
  if (!unit) return std::nullopt;
  // PTX has f8 in mma.sync since 8.4, which is later than the first of sm_89 and sm_90.
  return by_sync(type, *unit, target, type == MatrixType::F8F32 && std::strtod(ptx_version.c_str(), nullptr) < 8.4 ? "8.4" : ptx_version);
}

}  // namespace tile::cuda
