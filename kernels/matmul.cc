// Dispatch of the matrix product; see matmul.h.
#include "kernels/matmul.h"

#include "kernels/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "hwy/foreach_target.h"
// Behind foreach_target.
#include "kernels/matmul-inl.h"

#if HWY_ONCE
namespace octavo {

HWY_EXPORT(MatMul);

void MatMul(const float* x, size_t num_rows, const PackedMatrix& matrix, Epilogue epilogue, float* out,
            TileRange tiles) {
  HWY_DYNAMIC_DISPATCH(MatMul)(x, num_rows, matrix, epilogue, out, tiles);
}

}  // namespace octavo
#endif  // HWY_ONCE
