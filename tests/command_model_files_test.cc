// Damaged and hostile model files on the command line: one line that names the file, exit 1, no crash, no large allocation.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A safetensors file: length, header, data.
std::string File(uint64_t header_bytes, const std::string& header, const std::string& data = "") {
  std::string length(8, '\0');
  std::memcpy(length.data(), &header_bytes, 8);
  return length + header + data;
}
std::string File(const std::string& header, const std::string& data = "") { return File(header.size(), header, data); }

const std::string kGood = ReadFile(Golden("m8.safetensors"));

std::string GoodHeader() {
  uint64_t length = 0;
  std::memcpy(&length, kGood.data(), 8);
  return kGood.substr(8, length);
}

// The good file with another header, and `more` data behind its own.
std::string WithHeader(const std::function<void(Json&)>& change, const std::string& more = "") {
  const std::string before = GoodHeader();
  Json header = Json::parse(before);
  change(header);
  return File(header.dump(), kGood.substr(8 + before.size()) + more);
}

std::string WithConfig(const std::string& key, const Json& value) {
  return WithHeader([&](Json& header) {
    Json config = Json::parse(header["__metadata__"]["config"].get<std::string>());
    config[key] = value;
    header["__metadata__"]["config"] = config.dump();
  });
}

std::string WithMetadata(const std::string& key, const std::string& value) {
  return WithHeader([&](Json& header) { header["__metadata__"][key] = value; });
}

size_t DataBytes() { return kGood.size() - 8 - GoodHeader().size(); }

// A header with one tensor.
std::string Tensor(const std::string& shape, const std::string& offsets, const std::string& type = "F32") {
  return R"({"x":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

struct BadFile {
  std::string bytes, part;  // the message holds `part`
};

void ExpectRefused(const std::vector<BadFile>& files) {
  const TemporaryFolder folder;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string path = folder.Write("bad" + std::to_string(i) + ".safetensors", files[i].bytes);
    SCOPED_TRACE(std::to_string(i) + " " + files[i].part);
    const RunResult result = RunOctavo({"info", "--model", path});
    ExpectOneMessage(result, 1, files[i].part);
    EXPECT_NE(result.err.find(path), std::string::npos) << result.err;
    EXPECT_LT(result.peak_memory_bytes, 200u << 20);
  }
}

TEST(Container, RefusesBadLengths) {
  const size_t size = kGood.size();
  ExpectRefused({
      {"", "0 bytes"},
      {kGood.substr(0, 7), "7 bytes"},
      {kGood.substr(0, 8), "the header would take"},
      {File(0, GoodHeader()), "does not begin with '{'"},
      {File(uint64_t{1} << 63, kGood.substr(8)), "9223372036854775808 bytes"},
      {File(~uint64_t{0}, kGood.substr(8)), "18446744073709551615 bytes"},
      {File(size - 7, kGood.substr(8)), "the header would take"},
      {File(size - 8, kGood.substr(8)), "not valid JSON"},
      {kGood.substr(0, size - 4), "the bytes of data in the file"},
      {kGood + std::string(4, '\0'), "the file has"},
      {kGood.substr(0, 200), "the header would take"},
      {std::string(5000, '\xFF'), "18446744073709551615 bytes"},
  });
}

TEST(Container, RefusesBadHeaders) {
  ExpectRefused({
      {File("{\"\xFF\xFE\":1}"), "not valid JSON in UTF-8"},
      {File("{\"a\":"), "not valid JSON in UTF-8"},
      {File("not JSON"), "does not begin with '{'"},
      {File("[]"), "does not begin with '{'"},
      {File("{}"), "__metadata__ has no 'format'"},
      {File(R"({"x":5})"), "tensor 'x'"},
      {File(R"({"__metadata__":[]})"), "__metadata__ is array"},
      {File(R"({"__metadata__":{"a":1}})"), "__metadata__ 'a' is number"},
      {File("{\"a\":" + std::string(100000, '[')), "nested more than"},
      {File("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}"), "nested more than"},
      {File(R"({"a\nb\u001b[31m":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "12"), "'a\\nb\\u001B[31m'"},
      {File(Tensor("[4294967296,4294967296]", "[0,0]")), "2^64"},
      {File(Tensor("[32,8]", "[0,65536]"), std::string(65536, '\0')), "1024 bytes"},
      {File(Tensor("[1]", "[4,0]"), "1234"), "[4, 0]"},
      {File(Tensor("[1]", "[-4,0]"), "1234"), "-4"},
      {File(Tensor("[1]", "[0,4.5]"), "1234"), "4.5"},
      {File(Tensor("[1]", "[0,1e300]"), "1234"), "1e+300"},
      {File(Tensor("[1]", "[0,1e999]"), "1234"), "does not fit"},
      {File(Tensor("[1]", "[0,18446744073709551615]"), "1234"), "18446744073709551615"},
      {File(Tensor("[1]", "[0]"), "1234"), "data_offsets"},
      {File(Tensor("[-1]", "[0,4]"), "1234"), "-1"},
      {File(Tensor("{}", "[0,4]"), "1234"), "not a list"},
      {File(Tensor("[1]", "[0,4]", "F99"), "1234"), "'F99'"},
  });
}

TEST(Model, RefusesWhatDoesNotFitTogether) {
  const size_t end = DataBytes();
  const auto tensor = [&](const char* name, const Json& shape, const char* type, size_t bytes) {
    return WithHeader(
        [&](Json& header) {
          header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
        },
        std::string(bytes, '\0'));
  };
  const auto renamed = [](const char* from, const char* to) {
    return WithHeader([&](Json& header) {
      header[to] = header[from];
      header.erase(from);
    });
  };
  std::string infinite = kGood;
  infinite.replace(infinite.size() - 4, 4, std::string("\0\0\x80\x7F", 4));
  ExpectRefused({
      {tensor("extra.weight", {2}, "F32", 8), "'extra.weight'"},
      {tensor("h.2.ln_1.weight", {16}, "F32", 64), "'h.2.ln_1.weight'"},
      {tensor("transformer.wte.weight", {5, 16}, "F32", 320), "are both"},
      {renamed("h.1.ln_2.weight", "h.1.ln_3.weight"), "'h.1.ln_2.weight'"},
      {renamed("h.0.attn.c_attn.bias", "h.9.bias"), "'h.0.attn.c_attn.bias'"},
      {WithHeader([](Json& header) { header["wpe.weight"]["dtype"] = "I32"; }), "'wpe.weight' is I32"},
      {WithHeader([](Json& header) {
         header["wpe.weight"]["shape"] = {16, 8};
       }),
       "'wpe.weight' has shape [16, 8]"},
      {infinite, "inf"},
      {WithMetadata("format", "pt"), "'pt'"},
      {WithMetadata("config", "{"), "not valid JSON"},
      {WithMetadata("config", "[]"), "expected an object"},
      {WithMetadata("vocabulary", R"(["\n"," ","a","b"])"), "the vocabulary has 4 entries; vocab_size is 5"},
      {WithMetadata("vocabulary", R"(["\n"," ","a","b","c","d"])"), "the vocabulary has 6 entries; vocab_size is 5"},
      {WithMetadata("vocabulary", R"(["\n"," ","a","b","b"])"), "'b' twice"},
      {WithMetadata("vocabulary", R"(["\n"," ","a","b","cd"])"), "'cd'"},
      {WithMetadata("vocabulary", R"(["\n"," ","a","b",5])"), "number"},
      {WithMetadata("vocabulary", "{}"), "expected a list"},
      {WithMetadata("start", "x"), "'x'"},
  });
}

TEST(Model, RefusesAbsurdConfigurations) {
  ExpectRefused({
      {WithConfig("n_embd", uint64_t{1} << 31), "n_embd is 2147483648"},
      {WithConfig("n_embd", (uint64_t{1} << 31) - 2), "bytes; the file holds"},
      {WithConfig("n_layer", (uint64_t{1} << 31) - 1), "bytes; the file holds"},
      {WithConfig("n_inner", (uint64_t{1} << 31) - 1), "bytes; the file holds"},
      {WithConfig("n_head", 0), "n_head is 0"},
      {WithConfig("n_head", 3), "n_head 3 does not divide n_embd 16"},
      {WithConfig("n_positions", 0), "n_positions is 0"},
      {WithConfig("n_positions", (uint64_t{1} << 31) - 1), "bytes; the file holds"},
      {WithConfig("n_positions", "8"), "n_positions is '8'"},
      {WithConfig("n_layer", -1), "n_layer is -1"},
      {WithConfig("n_layer", 1.5), "n_layer is 1.5"},
      {WithConfig("vocab_size", 6), "the vocabulary has 5 entries; vocab_size is 6"},
      {WithConfig("vocab_size", 4), "the vocabulary has 5 entries; vocab_size is 4"},
      {WithConfig("activation_function", "silu"), "'silu'"},
      {WithConfig("layer_norm_epsilon", -1), "layer_norm_epsilon is -1"},
      {WithConfig("tie_word_embeddings", true), "lm_head.weight"},
      {WithConfig("bias", false), "the configuration says bias false"},
      {WithConfig("scale_attn_by_inverse_layer_idx", true), "scale_attn_by_inverse_layer_idx"},
  });
}

TEST(Folder, RefusesMissingAndBrokenParts) {
  const std::string from = Golden("modd") + "/";
  const std::vector<std::string> names = {"model.safetensors", "config.json", "vocab.json"};
  const auto refused = [&](const std::string& name, const std::string* bytes, const std::string& part) {
    const TemporaryFolder folder;
    for (const std::string& other : names) {
      if (other != name) folder.Write(other, ReadFile(from + other));
    }
    if (bytes) folder.Write(name, *bytes);
    SCOPED_TRACE(name + " " + part);
    const RunResult result = RunOctavo({"generate", "--quiet", "--model", folder.path().string()});
    ExpectOneMessage(result, 1, part);
    EXPECT_NE(result.err.find((folder.path() / name).string()), std::string::npos) << result.err;
  };
  for (const std::string& name : names) {
    const std::string half = ReadFile(from + name).substr(0, ReadFile(from + name).size() / 2), nothing;
    refused(name, nullptr, "there is no such file");
    refused(name, &nothing, "");
    refused(name, &half, "");
  }
  const std::string gap = R"({"a":0,"b":2})", text_id = R"({"a":"0"})";
  refused("vocab.json", &gap, "expected each of 0 to 1 once");
  refused("vocab.json", &text_id, "expected each of 0 to 0 once");
  Json longer = Json::parse(ReadFile(from + "vocab.json")), shorter;
  for (const auto& [character, id] : longer.items()) {
    if (id < 60) shorter[character] = id;
  }
  longer["ж"] = 61;
  const std::string more = longer.dump(), fewer = shorter.dump();
  refused("vocab.json", &more, "the vocabulary has 62 entries; vocab_size is 61");
  refused("vocab.json", &fewer, "the vocabulary has 60 entries; vocab_size is 61");
}

TEST(EveryCommand, RefusesABadModel) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("half.safetensors", kGood.substr(0, kGood.size() / 2));
  ExpectOneMessage(RunOctavo({"generate", "--model", path, "--seed", "1"}), 1, path);
  ExpectOneMessage(RunOctavo({"score", "-", "--model", path}), 1, path);
  ExpectOneMessage(RunOctavo({"info", "--model", path}), 1, path);
}

}  // namespace
}  // namespace octavo::test
