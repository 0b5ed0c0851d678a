// The prompts of `octavo generate`: flags first, then a file of lines or of JSON objects, turned into numbered records.
#ifndef OCTAVO_TOOLS_PROMPTS_H_
#define OCTAVO_TOOLS_PROMPTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "tools/command.h"
#include "tools/io.h"

namespace octavo::tools {

// One prompt as its line asks for it; what it leaves open has the defaults of the command line.
struct PromptRecord {
  uint64_t index = 0;               // from 0 over all prompts
  std::optional<uint64_t> line;     // from 1, where it came from a file
  nlohmann::json id;                // a string, number or boolean, as it was; null where there is none
  std::optional<std::string> text;  // absent where the line could not be read
  uint64_t samples = 1;
  GenerateOptions options;
  std::optional<uint64_t> seed;                      // its own
  std::string error;                                 // not empty: the line is bad
  std::optional<double> share_before, share_behind;  // how much of all prompts, 0 to 1, where that is known
};

struct PromptDefaults {
  uint64_t samples = 1;
  GenerateOptions options;
  bool escape = false;  // lines of text are read with their escapes (\n \t \\ \uXXXX); JSON has its own
};

class PromptReader {
 public:
  // `texts` come first, then `input` if there is one; neither: one empty prompt.
  PromptReader(std::vector<std::string> texts, std::optional<Input> input, bool json_lines, PromptDefaults defaults,
               bool quiet);

  std::optional<PromptRecord> Next();

  // For messages: "prompt 3" or "in.jsonl line 3".
  std::string Describe(const PromptRecord& record) const;

 private:
  // Prompts of flags are counted, a file is measured by its bytes.
  std::optional<double> ShareTaken() const;
  bool TakeNext(PromptRecord& record);
  void ReadJson(const std::string& line, PromptRecord& record);
  static void ReadLineEscapes(PromptRecord& record);

  std::vector<std::string> texts_;
  std::optional<Input> input_;
  bool json_lines_;
  PromptDefaults defaults_;
  uint64_t next_index_ = 0, line_ = 0;
  UnknownKeys unknown_keys_;
};

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_PROMPTS_H_
