// Error bounds of kernels/math-inl.h. Plain C++, one copy: tests, `octavo check` and the derived bounds of the kernels read them here.
#ifndef OCTAVO_KERNELS_MATH_BOUNDS_H_
#define OCTAVO_KERNELS_MATH_BOUNDS_H_

namespace octavo {

// In units in the last place of the exact result's binade, on every target.
inline constexpr double kExpUlp = 2.0;   // -87.3 ≤ x ≤ 88.7
inline constexpr double kLogUlp = 2.0;   // every normal x > 0
inline constexpr double kTanhUlp = 2.0;  // every x
inline constexpr double kErfUlp = 2.0;   // every x

// |GELU(x) - exact| ≤ kGeluBound · 2^-24 · |x| (+ 2^-149, where the result is denormal): GELU cancels for negative x.
inline constexpr double kGeluBound = 5.0;

// exp comes out as 0 below -87.3: what an exponential may be off there.
inline constexpr double kExpUnderflow = 1.23e-38;

}  // namespace octavo

#endif  // OCTAVO_KERNELS_MATH_BOUNDS_H_
