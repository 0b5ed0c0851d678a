// Unrolling of loops over registers. GCC keeps an array of vectors in registers only when every loop over it is unrolled.
#ifndef OCTAVO_KERNELS_UNROLL_H_
#define OCTAVO_KERNELS_UNROLL_H_

#if defined(__clang__)
#define OCTAVO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define OCTAVO_UNROLL _Pragma("GCC unroll 16")
#endif

#endif  // OCTAVO_KERNELS_UNROLL_H_
