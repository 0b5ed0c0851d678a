// The error bound that both attention kernels state and their tests use: one copy.
#ifndef OCTAVO_KERNELS_ATTENTION_BOUND_H_
#define OCTAVO_KERNELS_ATTENTION_BOUND_H_

#include <cstddef>

namespace octavo {

// With δ = (head_size + kScoreBound) · 2^-24 · max_s Σ_i |q_i · k_{s,i}| / sqrt(head_size), the error of a weight relative to itself is at most
// 2δ + (length + kWeightBound) · 2^-24, and that of an output Σ_s weight_s · |v_s| times it. Twice that without fused multiply-add. Weights below
// kExpUnderflow (math_bounds.h) come out as 0.
constexpr float kScoreBound = 4;
constexpr float kWeightBound = 16;

}  // namespace octavo

#endif  // OCTAVO_KERNELS_ATTENTION_BOUND_H_
