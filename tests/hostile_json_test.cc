// Hostile JSON: the work grows with the size of the text, memory too, in headers of model files, vocabularies and
// lines.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "engine/error.h"
#include "engine/json.h"
#include "engine/model.h"
#include "engine/safetensors.h"
#include "tests/testing/allocations.h"
#include "tests/testing/errors.h"
#include "tests/testing/model_file.h"
#include "tests/testing/work.h"

namespace octavo::test {
namespace {

// `count` members made by `member`, between brackets.
std::string Many(size_t count, const char* brackets, const std::function<std::string(size_t)>& member) {
  std::string text(1, brackets[0]);
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + member(i);
  return text + brackets[1];
}

std::string Line(size_t count, const std::string& member) {
  return Many(count, "[]", [&](size_t) { return member; });
}

std::string Keys(size_t count) {
  return Many(count, "{}",
              [](size_t i) { return "\"k" + std::to_string(i * 7919 % 1'000'003) + "\":" + std::to_string(i); });
}

std::string EmptyTensors(size_t count) {
  return Many(count, "{}", [](size_t i) {
    return "\"t" + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  });
}

// Whatever comes of it.
void Try(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

struct Reader {
  const char* name;
  std::function<std::string(size_t count)> text;
  std::function<void(const std::string& text)> read;
  double most_memory;  // at a time, times the text's size
};

const std::string kConfig = R"({"n_embd":4,"n_head":1,"n_layer":1,"n_positions":4})";

void ReadHeader(const std::string& header) {
  const auto file = RawContainer(header, 0);
  Try([&] { ParseSafetensors(file, "the file"); });
}

void ReadDirectory(const std::string& config, const std::string& vocabulary) {
  const auto tensors = RawContainer("{}", 0);
  Try([&] { Model::ParseDirectory(tensors, config, vocabulary, "the folder"); });
}

const Reader kReaders[] = {
    {"empty objects in a line", [](size_t n) { return Line(n, "{}"); },
     [](const auto& text) { Try([&] { ParseJson(text, "x"); }); }, 60},
    {"empty lists in a line", [](size_t n) { return Line(n, "[]"); },
     [](const auto& text) { Try([&] { ParseJson(text, "x"); }); }, 60},
    {"lists in lists", [](size_t n) { return Line(n, "[[[0]]]"); },
     [](const auto& text) { Try([&] { ParseJson(text, "x"); }); }, 60},
    {"keys in a line", Keys, [](const auto& text) { Try([&] { ParseJson(text, "x"); }); }, 20},
    {"empty tensors", EmptyTensors, ReadHeader, 16},
    {"empty objects in a header", [](size_t n) { return "{\"a\":" + Line(n, "{}") + "}"; }, ReadHeader, 60},
    {"a long shape",
     [](size_t n) { return R"({"a":{"dtype":"F32","data_offsets":[0,0],"shape":)" + Line(n, "1") + "}}"; }, ReadHeader,
     60},
    {"metadata",
     [](size_t n) {
       return R"({"__metadata__":)" + Many(n, "{}", [](size_t i) { return "\"k" + std::to_string(i) + "\":\"\""; }) +
              "}";
     },
     ReadHeader, 60},
    {"a vocabulary", Keys, [](const auto& text) { ReadDirectory(kConfig, text); }, 60},
    {"a configuration", Keys, [](const auto& text) { ReadDirectory(text, R"({"a":0})"); }, 60},
};

TEST(HostileJson, WorkGrowsWithTheSize) {
  const WorkMeter meter;
  for (const Reader& reader : kReaders) {
    const std::string small = reader.text(5'000), large = reader.text(20'000);
    const double work = meter.Of([&] { reader.read(small); }), more = meter.Of([&] { reader.read(large); });
    // Four times the text: four times the work, and a little for sorting; sixteen times where each is compared with
    // all.
    EXPECT_LT(more, 9 * work) << reader.name;
  }
}

TEST(HostileJson, MemoryGrowsWithTheSize) {
  for (const Reader& reader : kReaders) {
    const std::string text = reader.text(20'000);
    const AllocationMeter meter;
    reader.read(text);
    EXPECT_LE(static_cast<double>(meter.peak_bytes()), reader.most_memory * static_cast<double>(text.size()))
        << reader.name;
  }
}

// However large: what is too much is refused before it is read.
TEST(HostileJson, ValuesAreBounded) {
  const std::string line = Line(2'000'000, "{}");
  const AllocationMeter meter;
  EXPECT_TRUE(Fails([&] { ParseJson(line, "the line"); }, {"the line", "more than 262144 values"}));
  EXPECT_LT(meter.peak_bytes(), size_t{64} << 20);
}

TEST(HostileJson, TensorsAreBounded) {
  const auto file = RawContainer(EmptyTensors(131'073), 0);
  EXPECT_TRUE(Fails([&] { ParseSafetensors(file, "the file"); }, {"the file", "more than 131072 tensors"}));
  const auto most = RawContainer(EmptyTensors(131'072), 0);
  EXPECT_EQ(ParseSafetensors(most, "the file").tensors.size(), 131'072u);
}

TEST(HostileJson, EntriesAreBounded) {
  const std::string many = Many((1 << 21) + 1, "{}", [](size_t i) { return "\"" + std::to_string(i) + "\":0"; });
  const auto tensors = RawContainer("{}", 0);
  EXPECT_TRUE(Fails([&] { Model::ParseDirectory(tensors, kConfig, many, "the folder"); },
                    {"vocab.json", "more than 2097152 entries"}));
}

}  // namespace
}  // namespace octavo::test
