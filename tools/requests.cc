// Prompts to requests; see requests.h.
#include "tools/requests.h"

#include "engine/error.h"

namespace octavo::tools {

std::optional<double> ShareDone(const Origin& origin) {
  const PromptRecord& prompt = *origin.prompt;
  if (!prompt.share_before || !prompt.share_behind) return std::nullopt;
  const double part = static_cast<double>(origin.sample + 1) / static_cast<double>(prompt.samples);
  return *prompt.share_before + part * (*prompt.share_behind - *prompt.share_before);
}

std::optional<GenerateRequest> RequestSource::Next() {
  if (!prompt_ || sample_ == num_samples_) {
    if (!StartNextPrompt()) return std::nullopt;
  }
  GenerateRequest request;
  request.prompt = tokens_;
  request.options = prompt_->options;
  request.seed = prompt_->seed.value_or(seed_);
  request.sequence = prompt_->seed ? sample_ : base_ + sample_;
  request.error = error_;
  request.context = std::make_shared<Origin>(Origin{prompt_, sample_});
  ++sample_;
  return request;
}

bool RequestSource::StartNextPrompt() {
  std::optional<PromptRecord> record = reader_.Next();
  if (!record) return false;
  prompt_ = std::make_shared<const PromptRecord>(std::move(*record));
  tokens_.clear();
  error_ = prompt_->error;
  if (error_.empty()) {
    try {
      tokens_ = model_.vocabulary().Encode(*prompt_->text, unknown_);
    } catch (const Error& error) {
      error_ = error.what();
    }
  }
  // A bad line takes one number; a prompt takes as many as it asks for, also when it fails.
  base_ = sequence_;
  const bool none_left = numbers_used_up_;
  numbers_used_up_ |= __builtin_add_overflow(sequence_, prompt_->error.empty() ? prompt_->samples : 1, &sequence_);
  // The very last number may be taken.
  if (error_.empty() && !prompt_->seed && (none_left || (numbers_used_up_ && sequence_ > 0))) {
    error_ = "its completions' numbers go beyond 2^64 - 1; expected a smaller --first, or a seed of its own";
  }
  num_samples_ = error_.empty() ? prompt_->samples : 1;
  sample_ = 0;
  return true;
}

}  // namespace octavo::tools
