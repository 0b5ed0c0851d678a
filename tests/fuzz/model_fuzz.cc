// Fuzz target (libFuzzer) for all that reads models: the safetensors container, configurations, vocabularies, weights; in both forms.
// A finding is a crash, a sanitizer's report, an exception other than Error, a message unfit to be shown, a large allocation, or a model
// that loads but does not survive being written and read again, or being used. inputs.h says what an input is.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/error.h"
#include "engine/generate.h"
#include "engine/model.h"
#include "engine/score.h"
#include "engine/utf8.h"
#include "tests/fuzz/change_model.h"
#include "tests/fuzz/inputs.h"
#include "tests/testing/work.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace octavo {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

Model Read(std::string_view bytes) {
  const Input input = SplitInput(bytes);
  const std::span<const std::byte> tensors = std::as_bytes(std::span(input.tensors));
  if (!input.is_directory) return Model::Parse(tensors, "input");
  return Model::ParseDirectory(tensors, input.config, input.vocabulary, "input");
}

void Use(const Model& model) {
  const std::vector<std::byte> bytes = model.Serialize();
  Require(Model::Parse(bytes, "rewritten input").Serialize() == bytes,
          "a model written, read and written again is the same");

  GenerateRequest request;
  request.options.max_chars = 3;
  request.seed = 1;
  const Completion completion = Generate(model, request);
  Require(completion.num_chars <= 3, "generation ends");
  Require(ReplaceInvalidUtf8(completion.text) == completion.text, "generated text is UTF-8");

  const TokenId last = static_cast<TokenId>(model.vocabulary().size() - 1);
  const Score score = ScoreText(model, {{model.start_token(), last, 0}, 0, "", nullptr});
  Require(score.log_probabilities.size() == (score.error.empty() ? 2 : 0), "each successor is scored");
}

// Reading takes time in proportion to the input: some 100 to 1000 instructions a byte, with sanitizers.
Model ReadInTime(std::string_view input) {
  static const test::WorkMeter meter;
  struct Check {
    size_t bytes;
    double before = meter.Now();
    ~Check() {
      const auto size = static_cast<double>(bytes);
      const double most = meter.counts_instructions() ? 2e8 + 2e4 * size : 2 + 1e-5 * size;
      Require(meter.Now() - before <= most, "reading takes time in proportion to the input");
    }
  } const check{input.size()};
  return Read(input);
}

void TryInput(std::string_view input) {
  try {
    Use(ReadInTime(input));
  } catch (const Error& error) {
    const std::string_view message = error.what();
    Require(!message.empty() && message.size() < 2000, "a message has a sensible length");
    Require(message.find('\n') == std::string_view::npos, "a message is one line");
    Require(ReplaceInvalidUtf8(message) == message, "a message is UTF-8");
  }
}

void Mutate(std::string& part, size_t largest) {
  const size_t size = part.size();
  part.resize(std::max<size_t>({size, largest, 1}));
  part.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(part.data()), size, part.size()));
}

// Changes the bytes of one part; the length field stays right, which blind changes of the header would break at once.
void MutatePart(Parts& parts, size_t room, unsigned seed) {
  const std::array<std::string*, 4> list = {&parts.header, &parts.data, &parts.config, &parts.vocabulary};
  std::string& part = *list[seed % (parts.is_directory ? 4 : 2)];
  Mutate(part, part.size() + room);
}

}  // namespace
}  // namespace octavo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octavo::TryInput({reinterpret_cast<const char*>(data), size});
  return 0;
}

// A quarter of the changes go to any byte, a quarter to the bytes of one part, half to what the file says.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::optional<octavo::Parts> parts = octavo::Parts::Of({reinterpret_cast<const char*>(data), size});
  const unsigned kind = seed % 4;
  seed /= 4;
  if (kind == 0 || !parts) return LLVMFuzzerMutate(data, size, max_size);
  if (kind == 1 || !octavo::ChangeModel(*parts, seed))
    octavo::MutatePart(*parts, max_size - std::min(max_size, size), seed);
  const std::string changed = parts->Join();
  if (changed.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
