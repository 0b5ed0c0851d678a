// Attention of one new position per sequence, 16 sequences in the lanes, each with its own keys, values and length.
#ifndef OCTAVO_KERNELS_DECODE_ATTENTION_H_
#define OCTAVO_KERNELS_DECODE_ATTENTION_H_

#include <cstddef>
#include <cstdint>

namespace octavo {

// The cache of 16 sequences: a ring of slots, one a step, shared by all lanes. The newest slot holds every lane's newest position; a lane
// of length n reads its last n slots. So a lane that begins anew needs no copy: it just starts with length 1. Slot s lies at places[s].
//
//   keys (values alike), head h, place p, number i, lane r:   h·head_stride + (p·head_size + i)·16 + r
//
//   place    0                          1                …   num_slots - 1
//            [i 0: 16 lanes][i 1: …] …  [i 0: …] …
template <typename T>
struct DecodeCacheOf {
  const T* keys = nullptr;  // aligned to 64 bytes, as are values
  const T* values = nullptr;
  size_t head_stride = 0;  // at least num_slots · size · 16, where size is head_size or, for pairs, NumPairs(head_size)
  size_t num_slots = 0;
  size_t newest_slot = 0;
  const uint32_t* places = nullptr;  // [2 · num_slots], as FillPlaces makes it: any order, twice
};
using DecodeCache = DecodeCacheOf<float>;

// The same in half the memory: numbers 2·i and 2·i + 1 of a head as one word of two bfloat16, the even one in the low half, and `size` words
// a slot and lane. The odd half of an odd head's last word is 0.
//
//   bit      31 … 16        15 … 0
//            number 2·i+1   number 2·i
using PairedDecodeCache = DecodeCacheOf<uint32_t>;

// Fills places[2 · num_slots]: 0, 1, … or, where `scattered`, a fixed irregular order. L2 of a Zen 5 gives a line every 2 cycles when addresses
// are regular, whatever the stride, and every 1.3 when they are not; `tiny` takes 26 cycles a slot and head instead of 30 (AVX-512).
// What streams from beyond L2 is better left in order, for the prefetchers. Bits do not depend on it.
void FillPlaces(size_t num_slots, bool scattered, uint32_t* places);

// Caches of up to so many bytes for 16 sequences, all layers, are taken to stay in L2, which has 1 MB or more on servers since 2017.
constexpr size_t kScatteredBytes = size_t{1} << 20;

constexpr size_t NumPairs(size_t head_size) { return (head_size + 1) / 2; }

// Per lane r and head h, with n = lengths[r], S = head_size, over the lane's last n slots s, oldest first:
//   weight[s] = exp(q · k[s] / sqrt(S) - largest) / Σ;  out[h·S + i] = Σ_s weight[s] · v[s, i]
//
//   q, out    one panel, num_heads · head_size features, aligned to 64 bytes; they must not overlap
//   lengths   [16], each from 1 to num_slots
//   scratch   [16 · max lengths], aligned to 64 bytes
//
// What a lane's slots hold beyond its length never reaches it, whatever it is (NaN). Lanes nobody needs take length 1.
// Order and bits: as CausalAttention, see attention-inl.h. Error: attention_bound.h.
// Cost: 4 · num_heads · head_size · length FLOP a lane; 128 · num_heads · head_size · max length bytes read, which is what bounds it.
void DecodeAttention(const float* q, const DecodeCache& cache, const int32_t* lengths, size_t num_heads,
                     size_t head_size, float* out, float* scratch);

// As above, over numbers that were rounded: the same bits as over a DecodeCache that holds them so. Half the bytes.
void DecodeAttention(const float* q, const PairedDecodeCache& cache, const int32_t* lengths, size_t num_heads,
                     size_t head_size, float* out, float* scratch);

// Rounds 16·count floats to bfloat16 in place, to nearest, ties to even; NaN stays NaN. `x` is aligned to 64 bytes.
void RoundToBfloat16(float* x, size_t count);

// Writes a slot: panel `from` of num_heads · head_size features, rounded, as pairs; word i of head h to `to` + h·head_stride + 16·i.
void StorePairs(const float* from, size_t num_heads, size_t head_size, uint32_t* to, size_t head_stride);

}  // namespace octavo

#endif  // OCTAVO_KERNELS_DECODE_ATTENTION_H_
