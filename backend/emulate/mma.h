// mma.sync of one warp: gathers the lanes' fragments, multiplies, scatters the result. And the arithmetic that wgmma
// shares.
#pragma once

#include <array>
#include <cstdint>

namespace tile::emu {

/// Kinds as backend/ptx/device.h numbers them (MmaKind).
enum MmaNumber : uint32_t { kF16F32, kBF16F32, kF16F16, kTF32F32, kS8, kU8, kS8U8, kU8S8, kF64, kF8F32 };

/// Value of an element (its bits in the low end of `bits`) of operand A, or B if `second`; exact. Not for F64.
/// `formats`: bit 0, bit 1: A, B is e5m2, not e4m3.
float operand_value(uint32_t kind, uint32_t formats, bool second, uint32_t bits);
/// Bits of a result; NaN is the canonical one, as on the GPU.
uint32_t result_bits(float x);
/// C += A x B, rows x k times k x n, n a multiple of 8. Each element: in ascending k, product and sum rounded once to
/// f32.
void multiply_tiles(const float* a, unsigned a_pitch, const float* b, unsigned b_pitch, float* c, unsigned c_pitch,
                    unsigned rows, unsigned k, unsigned n);

/// One lane's registers. C is overwritten by D.
struct MmaOperands {
  const void* a;
  const void* b;
  void* c;
};

/// `formats`: bit 2: the shapes of sm_75, F16F32 m16n8k8 and integers m8n8k16; from bit 4 on, for F64: elements of A in each lane, 1 for m8n8k4,
/// 2, 4, 8 for m16n8k4, k8, k16.
void execute_mma(uint32_t kind, uint32_t formats, const std::array<MmaOperands, 32>& lanes);

}  // namespace tile::emu
