// Tensor elements as float: every 16-bit pattern, rounding of doubles, other types refused, data at any alignment.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/safetensors.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/model_file.h"
#include "tests/testing/random.h"

namespace octavo::test {
namespace {

template <typename Stored>
std::vector<float> Read(const std::string& type, const std::vector<Stored>& values) {
  const std::vector<std::byte> data = BytesOf(values);
  return ToFloats({"the tensor", type, {values.size()}, data}, "the file");
}

template <typename Stored>
::testing::AssertionResult Refused(const std::string& type, const std::vector<Stored>& values,
                                   std::initializer_list<std::string_view> parts) {
  if (const auto named = Fails([&] { Read(type, values); }, {"the file: tensor 'the tensor'"}); !named) return named;
  return Fails([&] { Read(type, values); }, parts);
}

// Moving exponent and fraction to float's places leaves an exponent that is 112 too small, which one exact product mends, also for
// subnormal numbers.
float FromF16(uint16_t half) {
  const float magnitude = std::bit_cast<float>(static_cast<uint32_t>(half & 0x7FFF) << 13) * 0x1p112f;
  return half & 0x8000 ? -magnitude : magnitude;
}

// Sign · fraction · 2^exponent from the fields.
float FromBf16(uint16_t bits) {
  const int exponent = bits >> 7 & 0xFF, fraction = bits & 0x7F;
  const double magnitude = exponent ? std::ldexp(128 + fraction, exponent - 134) : std::ldexp(fraction, -133);
  return static_cast<float>(bits & 0x8000 ? -magnitude : magnitude);
}

TEST(ToFloats, EveryF16Pattern) {
  std::vector<uint16_t> finite;
  std::vector<float> expected;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7C00) == 0x7C00) {
      ASSERT_TRUE(Refused<uint16_t>("F16", {0, half}, {"at element 1", "expected finite numbers"})) << bits;
    } else {
      finite.push_back(half);
      expected.push_back(FromF16(half));
    }
  }
  EXPECT_EQ(finite.size(), 63488u);
  EXPECT_TRUE(SameBits(Read("F16", finite), expected));
  EXPECT_TRUE(SameBits(Read<uint16_t>("F16", {0x7BFF, 0xFBFF, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0x8000}),
                       std::vector<float>{65504, -65504, 0x1p-24f, -0x1p-24f, 1023 * 0x1p-24f, 0x1p-14f, 1, -0.0f}));
}

TEST(ToFloats, EveryBf16Pattern) {
  std::vector<uint16_t> finite;
  std::vector<float> expected;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto brain = static_cast<uint16_t>(bits);
    if ((brain & 0x7F80) == 0x7F80) {
      ASSERT_TRUE(Refused<uint16_t>("BF16", {0, 0, brain}, {"at element 2", "expected finite numbers"})) << bits;
    } else {
      finite.push_back(brain);
      expected.push_back(FromBf16(brain));
    }
  }
  EXPECT_EQ(finite.size(), 65280u);
  EXPECT_TRUE(SameBits(Read("BF16", finite), expected));
}

TEST(ToFloats, F32AsItIs) {
  std::vector<float> values = Random(1).Magnitudes(1000, -149, 127);
  values.insert(values.end(),
                {0.0f, -0.0f, std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()});
  EXPECT_TRUE(SameBits(Read("F32", values), values));
  EXPECT_TRUE(Refused<float>("F32", {1, INFINITY}, {"holds inf at element 1"}));
  EXPECT_TRUE(Refused<float>("F32", {-INFINITY}, {"holds -inf at element 0"}));
  EXPECT_TRUE(Refused<float>("F32", {1, 2, NAN}, {"nan at element 2"}));
}

TEST(ToFloats, F64RoundsToNearestEven) {
  const std::vector<double> values = {
      0.1,        1 + 0x1p-24, 1 + 3 * 0x1p-24, 1 + 0x1p-24 + 0x1p-50, -1 - 0x1p-24,    -0.0,    0x1p-149, 0x1p-150,
      0x1.8p-150, 0x1p-1074,   0x1p-126,        0x1.fffffep127,        -0x1.fffffep127, 16777217};
  const std::vector<float> expected = {
      0.1f, 1,         1 + 0x1p-22f,    1 + 0x1p-23f,     -1,      -0.0f, 0x1p-149f, 0, 0x1p-149f,
      0,    0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f, 16777216};
  EXPECT_TRUE(SameBits(Read("F64", values), expected));
  for (const double beyond :
       {0x1p128, -0x1p128, 1e300, -1e300, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    EXPECT_TRUE(Refused<double>("F64", {0, beyond}, {"at element 1", "expected finite numbers"})) << beyond;
  }
}

TEST(ToFloats, RefusesOtherTypesByName) {
  for (const char* type : {"I64", "U64"})
    EXPECT_TRUE(Refused<uint64_t>(type, {1}, {"is " + std::string(type), "F32, F16, BF16 or F64"}));
  for (const char* type : {"I32", "U32"})
    EXPECT_TRUE(Refused<uint32_t>(type, {1}, {"is " + std::string(type), "F32, F16, BF16 or F64"}));
  for (const char* type : {"I16", "U16"})
    EXPECT_TRUE(Refused<uint16_t>(type, {1}, {"is " + std::string(type), "F32, F16, BF16 or F64"}));
  for (const char* type : {"I8", "U8", "BOOL", "F8_E4M3"}) {
    EXPECT_TRUE(Refused<uint8_t>(type, {1}, {"is " + std::string(type), "F32, F16, BF16 or F64"}));
  }
}

TEST(ToFloats, EmptyTensors) {
  for (const char* type : {"F32", "F16", "BF16", "F64"}) EXPECT_TRUE(Read<uint8_t>(type, {}).empty());
}

// Tensor data may start anywhere modulo 64; the undefined-behaviour sanitizer watches the loads.
TEST(ToFloats, AnyAlignment) {
  const std::vector<float> values = Random(2).Floats(37);
  const std::vector<double> doubles(values.begin(), values.end());
  std::vector<uint16_t> halves, brains;
  std::vector<float> half_values, brain_values;
  for (const float x : values) {
    brains.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
    brain_values.push_back(FromBf16(brains.back()));
    halves.push_back(brains.back() & 0xBFFF);  // finite
    half_values.push_back(FromF16(halves.back()));
  }
  const auto read_at = [](size_t offset, const std::string& type, const std::vector<std::byte>& bytes) {
    std::vector<std::byte> buffer(bytes.size() + 192);
    const size_t misaligned = reinterpret_cast<uintptr_t>(buffer.data()) % 64;
    std::byte* data = buffer.data() + (64 - misaligned) % 64 + offset;
    std::copy(bytes.begin(), bytes.end(), data);
    return ToFloats({"t", type, {37}, {data, bytes.size()}}, "the file");
  };
  for (size_t offset = 0; offset < 64; ++offset) {
    EXPECT_TRUE(SameBits(read_at(offset, "F32", BytesOf(values)), values));
    EXPECT_TRUE(SameBits(read_at(offset, "F64", BytesOf(doubles)), values));
    EXPECT_TRUE(SameBits(read_at(offset, "F16", BytesOf(halves)), half_values));
    EXPECT_TRUE(SameBits(read_at(offset, "BF16", BytesOf(brains)), brain_values));
  }
}

}  // namespace
}  // namespace octavo::test
