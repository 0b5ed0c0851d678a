// Refuses compiler flags under which sums are reordered, divisions replaced, or NaN and -0 ignored: the same text on every machine needs the
// operations as they are written. CMakeLists.txt refuses and undoes such flags where it sees them; this sees those of single files. Clang 14
// tells of -ffast-math and -ffinite-math-only only. For octavo's own sources: included by no installed header.
#ifndef OCTAVO_KERNELS_STRICT_MATH_H_
#define OCTAVO_KERNELS_STRICT_MATH_H_

#if defined(__FAST_MATH__)
#error "Remove -ffast-math or -Ofast: octavo promises the same text on every machine."
#elif defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0
#error "Remove -ffinite-math-only: octavo promises the same text on every machine."
#elif defined(__ASSOCIATIVE_MATH__)
#error "Remove -fassociative-math or -funsafe-math-optimizations: octavo promises the same text on every machine."
#elif defined(__RECIPROCAL_MATH__)
#error "Remove -freciprocal-math: octavo promises the same text on every machine."
#elif defined(__NO_SIGNED_ZEROS__)
#error "Remove -fno-signed-zeros: octavo promises the same text on every machine."
#endif

#endif  // OCTAVO_KERNELS_STRICT_MATH_H_
