// octavo info: each golden model as the manifest describes it, and this machine, as a table and as JSON.
#include <gtest/gtest.h>

#include <map>

#include "engine/threads.h"
#include "engine/version.h"
#include "tests/testing/command_checks.h"

namespace octavo::test {
namespace {

Json Info(const Arguments& arguments) {
  return Json::parse(RunWell(Arguments{"info", "--format", "json"} + arguments).out);
}

// The table as section -> key -> value, all text.
std::map<std::string, std::map<std::string, std::string>> Table(const Arguments& arguments) {
  std::map<std::string, std::map<std::string, std::string>> table;
  std::string section;
  for (const std::string& line : Lines(RunWell(Arguments{"info"} + arguments).out)) {
    if (line.empty()) continue;
    if (!line.starts_with("  ")) {
      section = line;
      continue;
    }
    const size_t key_end = line.find(' ', 2), value = line.find_first_not_of(' ', key_end);
    table[section][line.substr(2, key_end - 2)] = line.substr(value);
  }
  return table;
}

// The table's form of a value of the JSON form.
std::string Plain(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

TEST(Model, IsDescribedAsTheManifestHasIt) {
  const std::vector<Json> manifest = GoldenManifest();
  ASSERT_GE(manifest.size(), 8u);
  for (const Json& entry : manifest) {
    SCOPED_TRACE(entry.at("name"));
    const std::string path = Golden(entry.at("model"));
    const Json model = Info({"--model", path}).at("model");
    auto table = Table({"--model", path}).at("model");
    for (const char* key : {"parameters", "layers", "heads", "width", "context", "vocabulary", "padding", "activation",
                            "tied", "biases", "type", "orientation"}) {
      Json found = model.at(key);
      // The file's mixture is spelled out behind the word.
      if (entry[key] == "mixed" && found.get<std::string>().starts_with("mixed (")) found = "mixed";
      EXPECT_EQ(found, entry[key]) << key;
      EXPECT_EQ(table.at(key), Plain(model.at(key))) << key;
    }
    EXPECT_EQ(model.at("name"), path);
    EXPECT_EQ(model.at("head_size").get<size_t>() * model.at("heads").get<size_t>(), model.at("width"));
    EXPECT_EQ(model.at("inner_width"), entry.value("inner_width", 4 * model.at("width").get<size_t>()));
  }
}

TEST(Model, VariantsThatTheManifestDoesNotName) {
  const auto model = [](const std::string& name) { return Info({"--model", Golden(name)}).at("model"); };
  EXPECT_EQ(model("eos.safetensors").at("special_tokens"), (Json{"<pad>", "<eos>"}));
  EXPECT_EQ(model("m8.safetensors").at("special_tokens"), Json::array());
  EXPECT_EQ(model("eos.safetensors").at("start"), "C");
  EXPECT_EQ(model("modd").at("start"), "\n");
  EXPECT_EQ(Table({"--model", Golden("modd")}).at("model").at("start"), "\\n");
  EXPECT_EQ(model("headonly").at("type"), "mixed (BF16, F16, F32, F64)");
  EXPECT_EQ(model("w33.safetensors").at("layer_norm_epsilon"), 1e-6);
  EXPECT_EQ(model("pad.safetensors").at("layer_norm_epsilon"), 1e-12);
  EXPECT_EQ(model("m8.safetensors").at("layer_norm_epsilon"), 1e-5);
}

TEST(Model, DefaultIsTiny) {
  const Json model = Info({}).at("model");
  EXPECT_EQ(model.at("name"), "tiny");
  EXPECT_EQ(model.at("vocabulary"), 65);
  EXPECT_EQ(model.at("context"), 64);
  EXPECT_EQ(model.at("parameters"), 31680);
  EXPECT_EQ(Info({"--model", "tiny"}).at("model"), model);
}

TEST(Model, SmallIsBuiltInToo) {
  const Json model = Info({"--model", "small"}).at("model");
  EXPECT_EQ(model.at("name"), "small");
  EXPECT_EQ(model.at("vocabulary"), 65);
  EXPECT_EQ(model.at("context"), 128);
  EXPECT_EQ(model.at("parameters"), 826368);
}

TEST(Machine, IsDescribed) {
  const Json info = Info({});
  EXPECT_EQ(info.at("octavo").at("version"), std::string(Version()));
  EXPECT_EQ(info.at("octavo").at("numerics_version"), kNumericsVersion);
  const Json cpu = info.at("cpu");
  EXPECT_FALSE(cpu.at("name").get<std::string>().empty());
  const std::vector<std::string> compiled = cpu.at("targets_compiled"), runnable = cpu.at("targets_runnable");
  const auto holds = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  ASSERT_FALSE(runnable.empty());
  for (const std::string& target : runnable) EXPECT_TRUE(holds(compiled, target)) << target;
  EXPECT_TRUE(holds(runnable, cpu.at("target")));
  EXPECT_EQ(cpu.at("threads"), DefaultThreads().count);
  EXPECT_EQ(cpu.at("threads_reason"), DefaultThreads().reason);
  for (const Json& cache : cpu.at("caches")) {
    EXPECT_GE(cache.at("level").get<int>(), 1);
    EXPECT_GE(cache.at("size_bytes").get<uint64_t>(), 1024u) << cache;
    EXPECT_TRUE(cache.at("type") == "Data" || cache.at("type") == "Instruction" || cache.at("type") == "Unified")
        << cache;
  }
#ifdef __x86_64__
  EXPECT_GE(cpu.at("caches").size(), 2u) << "the C library can ask the processor where the system does not tell";
#endif
  auto table = Table({}).at("cpu");
  EXPECT_EQ(table["name"], cpu.at("name").get<std::string>());
  EXPECT_EQ(table["threads"], Plain(cpu.at("threads")));
  EXPECT_EQ(table["target"], cpu.at("target").get<std::string>());
}

TEST(Machine, ThreadsAreThoseAskedFor) {
  const Json cpu = Info({"--threads", "3"}).at("cpu");
  EXPECT_EQ(cpu.at("threads"), 3);
  EXPECT_EQ(cpu.at("threads_reason"), "--threads");
}

}  // namespace
}  // namespace octavo::test
