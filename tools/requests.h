// Prompts turned into requests: characters to ids, one request a sample, each with its sequence number.
#ifndef OCTAVO_TOOLS_REQUESTS_H_
#define OCTAVO_TOOLS_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "tools/prompts.h"

namespace octavo::tools {

// What a request carries through the engine.
struct Origin {
  std::shared_ptr<const PromptRecord> prompt;
  uint64_t sample;
};

inline const Origin& OriginOf(const GenerateRequest& request) {
  return *static_cast<const Origin*>(request.context.get());
}

// How much of all prompts is done once this sample is, where that is known.
std::optional<double> ShareDone(const Origin& origin);

class RequestSource {
 public:
  // `first`: the sequence number where counting starts. The others must outlive the source.
  RequestSource(const Model& model, PromptReader& reader, const UnknownPolicy& unknown, uint64_t seed, uint64_t first)
      : model_(model), reader_(reader), unknown_(unknown), seed_(seed), sequence_(first) {}

  std::optional<GenerateRequest> Next();

 private:
  bool StartNextPrompt();

  const Model& model_;
  PromptReader& reader_;
  const UnknownPolicy unknown_;
  const uint64_t seed_;
  uint64_t sequence_, base_ = 0;
  bool numbers_used_up_ = false;
  std::shared_ptr<const PromptRecord> prompt_;
  std::vector<TokenId> tokens_;
  std::string error_;
  uint64_t sample_ = 0, num_samples_ = 0;
};

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_REQUESTS_H_
