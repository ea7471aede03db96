// Dispatch of matrix products: batches, row ranges, orientation, decoded scales, scratch.
#include "vm/interp/mma.h"

#include <algorithm>

#include "vm/base/check.h"
#include "vm/interp/isa/isa.h"
#include "vm/interp/isa/mma_job.h"

namespace tile {
namespace {

using mma_impl::MmaFn;
using mma_impl::MmaJob;

constexpr size_t kAlign = 64;

// The build for `isa`, or the next lower one where the compiler did not make it.
MmaFn build(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::Avx512 && mma_impl::mma_avx512()) return mma_impl::mma_avx512();
  if (isa >= Isa::Avx2 && mma_impl::mma_avx2()) return mma_impl::mma_avx2();
#endif
  static_cast<void>(isa);
  return mma_impl::mma_plain();
}

MmaFn kernel() {
  static const MmaFn builds[kIsas] = {build(Isa::Plain), build(Isa::Avx2), build(Isa::Avx512)};
  return builds[static_cast<int>(current_isa())];
}

// A result of at most four columns is computed as its transpose, so that the vectors run along m. fma(a, b, s) and
// fma(b, a, s) differ only in the payload of a NaN, which is made canonical.
bool transposed(size_t m, size_t n) {
  return n <= 4 && m > n;
}

size_t kernel_scratch_bytes(size_t word, size_t rows, size_t k, bool f16_result) {
  const size_t packed = (mma_impl::kMc * mma_impl::kRowWords + mma_impl::kKc * mma_impl::kNc) * word;
  return packed + (f16_result && k > mma_impl::kKc ? rows * mma_impl::kNc * sizeof(float) : 0);
}

size_t scratch_bytes(ElementType type, ElementType acc, size_t m, size_t n, size_t k) {
  // The kernel's rows are m, or n where the transpose is computed (then n <= 4).
  return kAlign + kernel_scratch_bytes(type == ElementType::F64 ? 8 : 4, std::max(m, std::min<size_t>(n, 4)), k,
                                       acc == ElementType::F16);
}

unsigned char* align_up(void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  return static_cast<unsigned char*>(p) + ((at + kAlign - 1) / kAlign * kAlign - at);
}

void transpose_job(MmaJob& job) {
  std::swap(job.a, job.b);
  std::swap(job.m, job.n);
  std::swap(job.a_signed, job.b_signed);
  std::swap(job.a_rs, job.b_cs);
  std::swap(job.a_cs, job.b_rs);
  std::swap(job.c_rs, job.c_cs);
  std::swap(job.a_scale, job.b_scale);
  std::swap(job.a_scale_rs, job.b_scale_cs);
  std::swap(job.a_scale_ks, job.b_scale_ks);
}

// Runs the rows [begin, end) of batch*m; `whole` describes batch entry 0, the other arguments are distances in bytes of
// a, b and in elements of the scales between batch entries.
void run_rows(const MmaJob& whole, size_t begin, size_t end, size_t a_elem, size_t a_bs, size_t b_bs, size_t c_elem,
              size_t a_scale_bs, size_t b_scale_bs) {
  const MmaFn run = kernel();
  while (begin < end) {
    const size_t entry = begin / whole.m, row = begin % whole.m;
    MmaJob job = whole;
    job.m = std::min(end - begin, whole.m - row);
    job.a += entry * a_bs + row * whole.a_rs * a_elem;
    job.b += entry * b_bs;
    const size_t c_at = (entry * whole.m + row) * whole.n * c_elem;
    job.c += c_at;
    job.out += c_at;
    if (job.a_scale) job.a_scale += entry * a_scale_bs + row * whole.a_scale_rs;
    if (job.b_scale) job.b_scale += entry * b_scale_bs;
    begin += job.m;
    if (transposed(job.m, job.n)) transpose_job(job);
    run(job);
  }
}

const mma_impl::FloatTable& scale_table(ElementType type) {
  switch (type) {
    case ElementType::F8E4M3FN:
      return mma_impl::kE4M3;
    case ElementType::NV8E5M3FNU:
      return mma_impl::kNvE5M3;
    default:
      return mma_impl::kE8M0;
  }
}

size_t scale_count(const MmaScaledDesc& d) {
  return d.batch * (d.k / d.block) * (d.m + d.n);
}

}  // namespace

bool mma_supported(ElementType lhs_rhs, ElementType acc) {
  switch (lhs_rhs) {
    case ElementType::F8E4M3FN:
    case ElementType::F8E5M2:
    case ElementType::F16:
      return acc == ElementType::F16 || acc == ElementType::F32;
    case ElementType::BF16:
    case ElementType::TF32:
    case ElementType::F32:
      return acc == ElementType::F32;
    case ElementType::F64:
      return acc == ElementType::F64;
    case ElementType::I8:
      return acc == ElementType::I32;
    default:
      return false;
  }
}

bool mma_scaled_supported(ElementType lhs_rhs, ElementType scale) {
  switch (lhs_rhs) {
    case ElementType::F8E4M3FN:
    case ElementType::F8E5M2:
      return scale == ElementType::F8E8M0FNU;
    case ElementType::F4E2M1FN:
      return scale == ElementType::F8E8M0FNU || scale == ElementType::F8E4M3FN || scale == ElementType::NV8E5M3FNU;
    default:
      return false;
  }
}

size_t mma_scratch_bytes(const MmaDesc& d) {
  return scratch_bytes(d.lhs_rhs, d.acc, d.m, d.n, d.k);
}

size_t mma_scaled_scratch_bytes(const MmaScaledDesc& d) {
  return scratch_bytes(d.lhs_rhs, ElementType::F32, d.m, d.n, d.k) + scale_count(d) * sizeof(float);
}

void mma_rows(const MmaDesc& d, size_t row_begin, size_t row_end, void* out, const void* lhs, const void* rhs,
              const void* acc, void* scratch) {
  TILE_CHECK(mma_supported(d.lhs_rhs, d.acc));
  const size_t elem = info(d.lhs_rhs).storage, acc_elem = info(d.acc).storage;
  const bool lhs_dense = d.lhs_rs == 0 && d.lhs_cs == 0, rhs_dense = d.rhs_rs == 0 && d.rhs_cs == 0;
  MmaJob job{};
  job.type = d.lhs_rhs;
  job.c_is_f16 = d.acc == ElementType::F16;
  job.a_signed = d.lhs_signed;
  job.b_signed = d.rhs_signed;
  job.m = d.m;
  job.n = d.n;
  job.k = d.k;
  job.a = static_cast<const unsigned char*>(lhs);
  job.b = static_cast<const unsigned char*>(rhs);
  job.c = static_cast<const unsigned char*>(acc);
  job.out = static_cast<unsigned char*>(out);
  job.a_rs = lhs_dense ? d.k : d.lhs_rs;
  job.a_cs = lhs_dense ? 1 : d.lhs_cs;
  job.b_rs = rhs_dense ? d.n : d.rhs_rs;
  job.b_cs = rhs_dense ? 1 : d.rhs_cs;
  job.c_rs = d.n;
  job.c_cs = 1;
  job.scratch = align_up(scratch);
  run_rows(job, row_begin, row_end, elem, (d.lhs_bs ? d.lhs_bs : d.m * d.k) * elem,
           (d.rhs_bs ? d.rhs_bs : d.k * d.n) * elem, acc_elem, 0, 0);
}

void mma(const MmaDesc& d, void* out, const void* lhs, const void* rhs, const void* acc, void* scratch) {
  mma_rows(d, 0, d.batch * d.m, out, lhs, rhs, acc, scratch);
}

void mma_scaled_rows(const MmaScaledDesc& d, size_t row_begin, size_t row_end, void* out, const void* lhs,
                     const void* rhs, const void* acc, const void* lhs_scale, const void* rhs_scale, void* scratch) {
  TILE_CHECK(mma_scaled_supported(d.lhs_rhs, d.scale) && (d.block == 16 || d.block == 32) && d.k % d.block == 0);
  const size_t elem = info(d.lhs_rhs).storage, blocks = d.k / d.block;
  MmaJob job{};
  job.type = d.lhs_rhs;
  job.m = d.m;
  job.n = d.n;
  job.k = d.k;
  job.a = static_cast<const unsigned char*>(lhs);
  job.b = static_cast<const unsigned char*>(rhs);
  job.c = static_cast<const unsigned char*>(acc);
  job.out = static_cast<unsigned char*>(out);
  job.a_rs = d.k;
  job.a_cs = 1;
  job.b_rs = d.n;
  job.b_cs = 1;
  job.c_rs = d.n;
  job.c_cs = 1;
  job.scratch = align_up(scratch);
  // The scales, decoded, lie behind the kernel's part of the scratch.
  auto* const a_scale =
      reinterpret_cast<float*>(job.scratch + scratch_bytes(d.lhs_rhs, ElementType::F32, d.m, d.n, d.k) - kAlign);
  float* const b_scale = a_scale + d.batch * d.m * blocks;
  const mma_impl::FloatTable& table = scale_table(d.scale);
  const auto* from = static_cast<const unsigned char*>(lhs_scale);
  for (size_t i = row_begin * blocks; i < row_end * blocks; ++i) a_scale[i] = table.v[from[i]];
  from = static_cast<const unsigned char*>(rhs_scale);
  for (size_t i = row_begin / d.m * blocks * d.n; i < (row_end + d.m - 1) / d.m * blocks * d.n; ++i)
    b_scale[i] = table.v[from[i]];
  job.a_scale = a_scale;
  job.a_scale_rs = blocks;
  job.a_scale_ks = 1;
  job.b_scale = b_scale;
  job.b_scale_cs = 1;
  job.b_scale_ks = d.n;
  job.block = d.block;
  run_rows(job, row_begin, row_end, elem, d.m * d.k * elem, d.k * d.n * elem, sizeof(float), d.m * blocks,
           blocks * d.n);
}

void mma_scaled(const MmaScaledDesc& d, void* out, const void* lhs, const void* rhs, const void* acc,
                const void* lhs_scale, const void* rhs_scale, void* scratch) {
  mma_scaled_rows(d, 0, d.batch * d.m, out, lhs, rhs, acc, lhs_scale, rhs_scale, scratch);
}

}  // namespace tile
