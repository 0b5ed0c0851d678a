// The container: hostile files fail with one line and little memory, good ones are read at any alignment, and what is written comes back.
#include "engine/safetensors.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/testing/allocations.h"
#include "tests/testing/compare.h"
#include "tests/testing/errors.h"
#include "tests/testing/model_file.h"
#include "tests/testing/models.h"

namespace octavo::test {
namespace {

using std::string_literals::operator""s;

// Parses; the error must name "the file" and hold all parts, and no more memory than some copies of the file may have been taken.
::testing::AssertionResult Refused(const std::vector<std::byte>& file, std::initializer_list<std::string_view> parts) {
  if (const auto named = Fails([&] { ParseSafetensors(file, "the file"); }, {"the file"}); !named) return named;
  const AllocationMeter meter;
  const auto result = Fails([&] { ParseSafetensors(file, "the file"); }, parts);
  const size_t bound = 16 * file.size() + 65'536;
  if (meter.total_bytes() > bound) {
    return ::testing::AssertionFailure() << "took " << meter.total_bytes() << " bytes for a file of " << file.size();
  }
  return result;
}

::testing::AssertionResult RefusedHeader(const std::string& header, std::initializer_list<std::string_view> parts,
                                         size_t data_bytes = 16) {
  return Refused(RawContainer(header, data_bytes), parts);
}

// A container with one tensor 't' described by `entry`.
std::string One(const std::string& entry) { return "{\"t\":" + entry + "}"; }

std::vector<std::byte> WithLength(std::vector<std::byte> file, uint64_t length) {
  std::memcpy(file.data(), &length, 8);
  return file;
}

const std::string kGood = One(R"({"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})");

TEST(ParseSafetensors, ReadsAGoodFile) {
  const std::vector<std::byte> file = RawContainer(kGood, 16);
  const Safetensors parsed = ParseSafetensors(file, "the file");
  ASSERT_EQ(parsed.tensors.size(), 1u);
  EXPECT_EQ(parsed.tensors[0].name, "t");
  EXPECT_EQ(parsed.tensors[0].type, "F32");
  EXPECT_EQ(parsed.tensors[0].ShapeText(), "[2, 2]");
  EXPECT_EQ(parsed.tensors[0].num_elements(), 4u);
  EXPECT_EQ(parsed.tensors[0].data.data(), file.data() + 8 + kGood.size());
  EXPECT_TRUE(ParseSafetensors(RawContainer("{}", 0), "the file").tensors.empty());
}

TEST(HostileFile, TooShortForALength) {
  for (size_t size = 0; size < 8; ++size) {
    EXPECT_TRUE(Refused(std::vector<std::byte>(size), {"has " + std::to_string(size) + " bytes", "at least 8"}));
  }
  EXPECT_TRUE(Refused(std::vector<std::byte>(8), {"the header"}));  // eight bytes, length 0
}

TEST(HostileFile, HeaderLength) {
  const std::vector<std::byte> good = RawContainer(kGood, 16);
  EXPECT_TRUE(Refused(WithLength(good, 0), {"header"}));
  EXPECT_TRUE(Refused(WithLength(good, uint64_t{1} << 63), {"9223372036854775808 bytes"}));
  EXPECT_TRUE(Refused(WithLength(good, ~uint64_t{0}), {"18446744073709551615 bytes"}));
  EXPECT_TRUE(Refused(WithLength(good, good.size() - 7), {"the file has " + std::to_string(good.size() - 8)}));
  EXPECT_TRUE(Refused(WithLength(good, good.size()), {"header"}));
  EXPECT_TRUE(Refused(WithLength(good, good.size() - 8), {"header", "JSON"}));  // the data as header
  for (uint64_t length = 1; length < kGood.size(); ++length) {
    EXPECT_TRUE(Refused(WithLength(good, length), {"header", "JSON"}));
  }
}

// So large a file costs nothing here as long as nobody reads it.
TEST(HostileFile, HeaderBeyondWhatTensorsNeed) {
  constexpr uint64_t kLength = (1 << 24) + 1, kSize = kLength + 8;
  void* map = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  std::memcpy(map, &kLength, 8);
  const std::span file(static_cast<const std::byte*>(map), kSize);
  const AllocationMeter meter;
  EXPECT_TRUE(Fails([&] { ParseSafetensors(file, "the file"); },
                    {"the file", "16777217 bytes", "at most 16777216", "131072 tensors"}));
  EXPECT_LT(meter.total_bytes(), 65'536u);
  munmap(map, kSize);
}

TEST(HostileFile, HeaderThatIsNoObject) {
  for (const std::string header : {"[]", "3", "\"x\"", "null", " {}", "\n{}", "\xEF\xBB\xBF{}", "PK\x03\x04"}) {
    EXPECT_TRUE(RefusedHeader(header, {"does not begin with '{'"})) << header;
  }
}

TEST(HostileFile, HeaderThatIsNoJson) {
  for (const std::string& header :
       {"{"s, "{]"s, "{\"t\":}"s, "{}{}"s, "{} x"s, "{\"t\xFF\":{}}"s, "{\"\\ud800\":{}}"s, "{\"t\":1e999}"s,
        "{}\0garbage"s, "{\"t\":{\"dtype\":\"F32\",\"shape\":[1,],\"data_offsets\":[0,4]}}"s}) {
    EXPECT_TRUE(RefusedHeader(header, {"the file: the header"})) << header;
  }
}

TEST(HostileFile, NestingOfAHundredThousand) {
  const std::string open(100'000, '['), close(100'000, ']');
  EXPECT_TRUE(RefusedHeader("{\"t\":" + open + close + "}", {"nested more than 4 deep"}));
  EXPECT_TRUE(RefusedHeader("{\"t\":" + open, {"nested more than 4 deep"}));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(RefusedHeader(objects, {"nested more than 4 deep"}));
  EXPECT_TRUE(RefusedHeader(One(R"({"dtype":"F32","shape":[[2]],"data_offsets":[0,8]})"), {"tensor 't': shape holds"}));
}

TEST(HostileFile, EntriesOfTheWrongKind) {
  for (const std::string entry : {"3", "[]", "\"x\"", "null"}) {
    EXPECT_TRUE(RefusedHeader(One(entry), {"tensor 't'", "expected an object"}));
  }
  EXPECT_TRUE(RefusedHeader(One("{}"), {"tensor 't' has no dtype"}));
  EXPECT_TRUE(RefusedHeader(One(R"({"dtype":"F32"})"), {"tensor 't' has no shape"}));
  EXPECT_TRUE(RefusedHeader(One(R"({"dtype":"F32","shape":[4]})"), {"tensor 't' has no data_offsets"}));
  EXPECT_TRUE(RefusedHeader(One(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16],"x":0})"),
                            {"tensor 't' has entries besides"}));
  for (const std::string list : {"{}", "3", "\"4\"", "null"}) {
    EXPECT_TRUE(RefusedHeader(One(R"({"dtype":"F32","shape":)" + list + R"(,"data_offsets":[0,16]})"),
                              {"tensor 't': shape is not a list"}));
    EXPECT_TRUE(RefusedHeader(One(R"({"dtype":"F32","shape":[4],"data_offsets":)" + list + "}"),
                              {"tensor 't': data_offsets is not a list"}));
  }
}

TEST(HostileFile, UnknownTypes) {
  for (const std::string type :
       {"\"F31\"", "\"\"", "\"f32\"", "\"F32 \"", "\"COMPLEX128\"", "32", "null", "[\"F32\"]"}) {
    EXPECT_TRUE(RefusedHeader(One("{\"dtype\":" + type + R"(,"shape":[4],"data_offsets":[0,16]})"),
                              {"tensor 't'", "unknown dtype"}))
        << type;
  }
}

TEST(HostileFile, Shapes) {
  const auto shape = [](const std::string& sizes, const std::string& offsets) {
    return One("{\"dtype\":\"F32\",\"shape\":" + sizes + ",\"data_offsets\":" + offsets + "}");
  };
  EXPECT_TRUE(
      RefusedHeader(shape("[4294967296,4294967296]", "[0,0]"), {"tensor 't'", "[4294967296, 4294967296]", "2^64"}));
  EXPECT_TRUE(RefusedHeader(shape("[18446744073709551615,2]", "[0,16]"), {"tensor 't'", "2^64"}));
  EXPECT_TRUE(RefusedHeader(shape("[4611686018427387904]", "[0,0]"), {"tensor 't'", "2^64"}));
  EXPECT_TRUE(RefusedHeader(shape("[4611686018427387905]", "[0,4]"), {"tensor 't'", "2^64"}));
  EXPECT_TRUE(
      RefusedHeader(shape("[2,2,2]", "[0,16]"), {"tensor 't' is F32 [2, 2, 2], which takes 32 bytes", "span 16"}));
  EXPECT_TRUE(RefusedHeader(shape("[0]", "[0,16]"), {"takes 0 bytes", "span 16"}));
  EXPECT_TRUE(RefusedHeader(shape("[]", "[0,16]"), {"takes 4 bytes", "span 16"}));
  for (const std::string size : {"-1", "-4", "1.5", "4.0", "1e300", "18446744073709551616", "\"4\"", "true", "null"}) {
    EXPECT_TRUE(RefusedHeader(shape("[" + size + "]", "[0,16]"), {"tensor 't': shape holds", "expected whole numbers"}))
        << size;
  }
  // As many dimensions as fit, and their product is 0 only at the end.
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += "4294967296,";
  EXPECT_TRUE(RefusedHeader(shape(many + "0]", "[0,0]"), {"tensor 't'", "…]"}));
}

TEST(HostileFile, Offsets) {
  const auto offsets = [](const std::string& list) {
    return One("{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":" + list + "}");
  };
  EXPECT_TRUE(RefusedHeader(One(R"({"dtype":"F32","shape":[32,8],"data_offsets":[0,65536]})"),
                            {"tensor 't'", "[0, 65536]", "≤ 1024"}, 1024));
  EXPECT_TRUE(RefusedHeader(offsets("[16,0]"), {"tensor 't'", "[16, 0]", "begin ≤ end"}));
  EXPECT_TRUE(RefusedHeader(offsets("[17,33]"), {"tensor 't'", "[17, 33]"}));
  EXPECT_TRUE(
      RefusedHeader(offsets("[18446744073709551600,18446744073709551615]"), {"tensor 't'", "18446744073709551600"}));
  EXPECT_TRUE(RefusedHeader(offsets("[8,18446744073709551615]"), {"tensor 't'"}));
  for (const std::string bad : {"[-1,15]", "[0,-16]", "[0.5,16.5]", "[0,16.0]", "[0,1e300]", "[1e300,0]", "[\"0\",16]",
                                "[null,16]", "[[],16]"}) {
    EXPECT_TRUE(RefusedHeader(offsets(bad), {"tensor 't': data_offsets holds"})) << bad;
  }
  for (const std::string bad : {"[]", "[0]", "[0,16,32]"}) {
    EXPECT_TRUE(RefusedHeader(offsets(bad), {"tensor 't' has", "data_offsets; expected [begin, end]"})) << bad;
  }
}

TEST(HostileFile, CutAnywhere) {
  const std::vector<std::byte> good = RandomModel(M8Shape()).Serialize();
  ParseSafetensors(good, "the file");
  for (const size_t cut : {1, 4, 100}) {
    EXPECT_TRUE(Refused({good.begin(), good.end() - static_cast<std::ptrdiff_t>(cut)}, {"data"}));
  }
  std::vector<std::byte> longer = good;
  longer.resize(good.size() + 4);
  EXPECT_TRUE(Refused(longer, {"the tensors end at byte", "bytes of it"}));
  for (size_t size = 0; size < good.size(); size += 997) {
    EXPECT_TRUE(Refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, {})) << size;
  }
}

TEST(HostileFile, GapsAndOverlaps) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[8],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[8],"data_offsets":)" + b + "}}";
  };
  ParseSafetensors(RawContainer(two("[0,8]", "[8,16]"), 16), "the file");
  ParseSafetensors(RawContainer(two("[8,16]", "[0,8]"), 16), "the file");
  EXPECT_TRUE(RefusedHeader(two("[0,8]", "[9,17]"), {"tensor 'b' begins at byte 9", "expected 8"}, 17));
  EXPECT_TRUE(RefusedHeader(two("[1,9]", "[9,17]"), {"tensor 'a' begins at byte 1", "expected 0"}, 17));
  EXPECT_TRUE(RefusedHeader(two("[0,8]", "[7,15]"), {"tensor 'b' begins at byte 7", "expected 8"}, 15));
  EXPECT_TRUE(RefusedHeader(two("[0,8]", "[0,8]"), {"begins at byte 0", "expected 8"}, 8));
  EXPECT_TRUE(RefusedHeader(two("[0,8]", "[8,16]"), {"end at byte 16", "has 17 bytes"}, 17));
  // Empty tensors lie between others or not at all.
  const auto empty = [](const std::string& offsets) {
    return R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0,3],"data_offsets":)" +
           offsets + "}}";
  };
  for (const std::string good : {"[0,0]", "[8,8]"}) ParseSafetensors(RawContainer(empty(good), 8), "the file");
  EXPECT_TRUE(RefusedHeader(empty("[4,4]"), {"tensor 'e' begins at byte 4"}, 8));
}

TEST(HostileFile, NamesTwice) {
  EXPECT_TRUE(RefusedHeader(
      R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})",
      {"the header has the key 'a' twice"}));
  EXPECT_TRUE(RefusedHeader(R"({"__metadata__":{"k":"1"},"__metadata__":{}})", {"'__metadata__' twice"}, 0));
  EXPECT_TRUE(RefusedHeader(R"({"__metadata__":{"k":"1","k":"2"}})", {"'k' twice"}, 0));
  EXPECT_TRUE(
      RefusedHeader(One(R"({"dtype":"F32","dtype":"F32","shape":[4],"data_offsets":[0,16]})"), {"'dtype' twice"}));
}

TEST(HostileFile, Metadata) {
  for (const std::string value : {"3", "[]", "\"x\"", "null", "[[[[]]]]"}) {
    EXPECT_TRUE(RefusedHeader("{\"__metadata__\":" + value + "}", {"the file"}, 0));
  }
  for (const std::string value : {"3", "[]", "{}", "null", "true"}) {
    EXPECT_TRUE(
        RefusedHeader("{\"__metadata__\":{\"key\":" + value + "}}", {"__metadata__ 'key'", "expected a string"}, 0))
        << value;
  }
  EXPECT_TRUE(ParseSafetensors(RawContainer("{\"__metadata__\":{}}", 0), "the file").metadata.empty());
}

TEST(HostileFile, NamesAreShownSafely) {
  const std::string name = "\\u001b[31m\\n" + std::string(100'000, 'x');
  EXPECT_TRUE(RefusedHeader("{\"" + name + "\":3}", {"tensor '\\u001B[31m\\nxxx", "…'"}));
}

// One byte at a time, anywhere: an Error or a container whose tensors lie inside the file, never anything else.
TEST(HostileFile, EveryByteChanged) {
  const std::vector<std::byte> good = RandomModel({Characters("ab"), 2, 1, 1, 1}).Serialize();
  Random random(1);
  size_t refused = 0;
  for (size_t place = 0; place < good.size(); ++place) {
    for (int i = 0; i < 4; ++i) {
      std::vector<std::byte> file = good;
      file[place] = i == 0 ? std::byte{0} : i == 1 ? ~file[place] : static_cast<std::byte>(random.Bits());
      try {
        for (const Tensor& tensor : ParseSafetensors(file, "the file").tensors) {
          ASSERT_TRUE(tensor.data.data() >= file.data() &&
                      tensor.data.data() + tensor.data.size() <= file.data() + file.size());
        }
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, good.size());
}

TEST(WriteSafetensors, ComesBackInOrder) {
  const std::vector<std::byte> a = BytesOf(std::vector<float>{1, 2, 3, 4, 5, 6}), b = BytesOf(std::vector<uint16_t>{7});
  const std::map<std::string, std::string> metadata = {{"k", "\"v\"\n\\"}, {"é", "😀"}};
  const std::vector<Tensor> tensors = {
      {"z", "F32", {2, 3}, a}, {"scalar", "F16", {}, b}, {"empty", "F32", {0, 9}, {}}, {"a\n\"b", "F32", {6}, a}};
  const std::vector<std::byte> bytes = WriteSafetensors(tensors, metadata);
  const Safetensors read = ParseSafetensors(bytes, "the file");
  EXPECT_EQ(read.metadata, metadata);
  ASSERT_EQ(read.tensors.size(), 4u);
  for (const Tensor& tensor : read.tensors) {
    const auto same =
        std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == tensor.name; });
    ASSERT_NE(same, tensors.end());
    EXPECT_EQ(tensor.type, same->type);
    EXPECT_EQ(tensor.shape, same->shape);
    EXPECT_TRUE(std::equal(tensor.data.begin(), tensor.data.end(), same->data.begin(), same->data.end()));
  }
  EXPECT_EQ(read.tensors[0].name, "z");
  EXPECT_EQ(ParseSafetensors(WriteSafetensors({}, {}), "the file").tensors.size(), 0u);
  // The data starts at a multiple of 8.
  EXPECT_EQ((read.tensors[0].data.data() - bytes.data()) % 8, 0);
}

// While it lives, files are opened with nobody's rights where the tests run as root, whom no permission stops.
class WithoutPrivileges {
 public:
  WithoutPrivileges() { EXPECT_TRUE(geteuid() != 0 || seteuid(65534) == 0); }
  ~WithoutPrivileges() { EXPECT_EQ(seteuid(getuid()), 0); }
};

TEST(ReadFileBytes, SaysWhyAFileCannotBeReached) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("octavo_safetensors_closed_{}", getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "file") << "a";
  std::filesystem::create_symlink("loop", folder / "loop");
  std::filesystem::create_symlink("nowhere", folder / "dangling");
  EXPECT_TRUE(Fails([&] { ReadFileBytes(folder / "loop"); }, {"loop' cannot be opened: Too many levels of symbolic"}));
  EXPECT_TRUE(Fails([&] { ReadFileBytes(folder / "dangling"); }, {"dangling': there is no such file"}));
  EXPECT_TRUE(Fails([&] { ReadFileBytes(folder / "file" / "x"); }, {"x': there is no such file"}));
  std::filesystem::permissions(folder, std::filesystem::perms::none);
  {
    const WithoutPrivileges nobody;
    const std::string path = folder / "file";
    EXPECT_TRUE(Fails([&] { ReadFileBytes(path); }, {"file' cannot be opened: Permission denied"}));
    EXPECT_TRUE(Fails([&] { Model::Open(path); }, {"file' cannot be opened: Permission denied"}));
    EXPECT_TRUE(
        Fails([&] { Model::Open(folder.string()); }, {"model.safetensors' cannot be opened: Permission denied"}));
  }
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  std::filesystem::remove_all(folder);
}

TEST(ReadFileBytes, ReadsFilesAndNamesWhatIsNone) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("octavo_safetensors_test_{}", getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "file", std::ios::binary) << "a\0b\n"s;
  EXPECT_EQ(ReadFileBytes(folder / "file"), BytesOf(std::vector<char>{'a', 0, 'b', '\n'}));
  std::ofstream(folder / "empty");
  EXPECT_TRUE(ReadFileBytes(folder / "empty").empty());
  EXPECT_TRUE(Fails([&] { ReadFileBytes(folder / "none"); }, {"none'", "no such file"}));
  EXPECT_TRUE(Fails([&] { ReadFileBytes(folder); }, {"octavo_safetensors_test", "not a regular file"}));
  EXPECT_TRUE(Fails([] { ReadFileBytes("/dev/zero"); }, {"'/dev/zero' is not a regular file"}));
  std::filesystem::remove_all(folder);
}

// Sparse on the disk: only its size is large.
TEST(ReadSafetensorsBytes, LooksAtTheStartBeforeItTakesMemory) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("octavo_large_file_test_{}", getpid());
  std::filesystem::create_directory(folder);
  const auto path = folder / "zeros.safetensors";
  std::ofstream(path, std::ios::binary) << "x";
  std::filesystem::resize_file(path, uint64_t{10} << 30);
  const size_t before = allocated_bytes;
  EXPECT_TRUE(Fails([&] { ReadSafetensorsBytes(path); }, {"zeros.safetensors'", "does not begin with '{'"}));
  EXPECT_LE(allocated_bytes - before, size_t{1} << 20);
  EXPECT_TRUE(Fails([&] { Model::Load(path); }, {"does not begin with '{'"}));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace octavo::test
