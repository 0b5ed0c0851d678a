// Unrolling of loops over registers, and inlining of large bodies. GCC keeps an array of vectors in registers only when every loop over it
// is unrolled. Under the address sanitizer both are off: it checks the same accesses in a loop and in a function of its own, and compiles
// much faster (causal_attention.cc with Clang 14 and address,undefined on a Zen 5 core: 20 instead of 298 s).
#ifndef OCTAVO_KERNELS_UNROLL_H_
#define OCTAVO_KERNELS_UNROLL_H_

#include "hwy/base.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OCTAVO_UNROLL
#define OCTAVO_INLINE_BODY HWY_NOINLINE
#endif
#endif

#if !defined(OCTAVO_UNROLL)
#define OCTAVO_INLINE_BODY HWY_INLINE
#if defined(__clang__)
#define OCTAVO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define OCTAVO_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

#endif  // OCTAVO_KERNELS_UNROLL_H_
