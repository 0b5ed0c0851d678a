// Writing text character by character; see generate.h.
#include "engine/generate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "engine/fail.h"
#include "engine/parallel.h"
#include "engine/reference_pass.h"
#include "engine/stop_matcher.h"
#include "engine/utf8.h"
#include "kernels/reference/softmax.h"

namespace octavo {
namespace {

// The end of a text as the model sees it: its last characters in seats 0…T-1, by one of the window rules.
class Window {
 public:
  Window(const Model& model, Overflow overflow)
      : pass_(model), seats_(model.config().context_length), overflow_(overflow) {}

  // Reads a prompt. False when it is longer than the context and the rule is kStop.
  bool Start(std::span<const TokenId> prompt) {
    if (overflow_ == Overflow::kStop && prompt.size() > seats_) return false;
    KeepLast(prompt, seats_);
    logits_ = pass_.ReadLast(tail_);
    return true;
  }

  // Reads one more character. False when it has no seat and the rule is kStop.
  bool Append(TokenId token) {
    tail_.push_back(token);
    if (pass_.length() < seats_) {
      logits_ = pass_.ReadLast({&token, 1});
      return true;
    }
    if (overflow_ == Overflow::kStop) return false;
    const size_t keep = overflow_ == Overflow::kSlide ? seats_ : std::max<size_t>(1, seats_ / 2);
    tail_.erase(tail_.begin(), tail_.end() - static_cast<std::ptrdiff_t>(keep));
    pass_.Reset();
    logits_ = pass_.ReadLast(tail_);
    return true;
  }

  // Of the character behind the last one read.
  std::span<const double> logits() const { return logits_; }

 private:
  void KeepLast(std::span<const TokenId> text, size_t count) {
    text = text.last(std::min(text.size(), count));
    tail_.assign(text.begin(), text.end());
  }

  ReferencePass<double> pass_;
  const size_t seats_;
  const Overflow overflow_;
  std::vector<TokenId> tail_;  // the characters in the seats
  std::span<const double> logits_;
};

// Running totals of Σ ln p, as far back as a stop string can cut.
class LogProbability {
 public:
  explicit LogProbability(const std::vector<std::string>& stops) : totals_{0.0} {
    for (const std::string& stop : stops) longest_ = std::max(longest_, DecodeUtf8(stop).size());
  }
  void Add(double log_probability) {
    totals_.push_back(totals_.back() + log_probability);
    if (totals_.size() > longest_ + 1) totals_.pop_front();
  }
  void DropLast(size_t count) { totals_.resize(totals_.size() - count); }
  double total() const { return totals_.back(); }

 private:
  size_t longest_ = 0;
  std::deque<double> totals_;
};

class Writer {
 public:
  Writer(const Model& model, const GenerateRequest& request, const std::function<void(std::string_view)>& on_text)
      : model_(model),
        request_(request),
        on_text_(on_text),
        window_(model, request.options.overflow),
        matcher_(request.options.stops),
        log_probability_(request.options.stops) {}

  Completion Run() {
    completion_.finish = Write();
    completion_.log_probability = log_probability_.total();
    Show(completion_.text.size());
    return std::move(completion_);
  }

 private:
  Finish Write() {
    const uint64_t max_chars = request_.options.max_chars;
    if (max_chars == 0) return Finish::kLength;
    const TokenId start = model_.start_token();
    const std::span<const TokenId> prompt = request_.prompt;
    if (!window_.Start(prompt.empty() ? std::span(&start, 1) : prompt)) return Finish::kContext;
    for (uint64_t step = 0;; ++step) {
      const std::optional<TokenId> token = Draw(step);
      if (!token) return Finish::kError;
      if (model_.vocabulary().is_end(*token) || Print(*token)) return Finish::kStop;
      if (step + 1 == max_chars) return Finish::kLength;
      if (!window_.Append(*token)) return Finish::kContext;
    }
  }

  std::optional<TokenId> Draw(uint64_t step) {
    const std::span<const double> logits = window_.logits();
    logits_.assign(logits.begin(), logits.end());
    if (!std::all_of(logits_.begin(), logits_.end(), [](float x) { return std::isfinite(x); })) {
      completion_.error = fmt::format("the model's logits are not finite at new character {}", step + 1);
      return std::nullopt;
    }
    const TokenId token = sampler_.Draw(logits_, request_.options.sampling, request_.seed, request_.sequence, step);
    log_softmax_.resize(logits.size());
    reference::LogSoftmax(logits.data(), 1, logits.size(), log_softmax_.data());
    return token;
  }

  // Adds a character to the text. True when that completes a stop string, which is cut off again.
  bool Print(TokenId token) {
    const std::string_view character = model_.vocabulary().text(token);
    if (character.empty()) return false;
    std::string& text = completion_.text;
    text += character;
    ++completion_.num_chars;
    log_probability_.Add(log_softmax_[static_cast<size_t>(token)]);
    if (const size_t cut = matcher_.CutBytes(text)) {
      const size_t characters = DecodeUtf8(std::string_view(text).substr(text.size() - cut)).size();
      text.resize(text.size() - cut);
      completion_.num_chars -= characters;
      log_probability_.DropLast(characters);
      return true;
    }
    if (on_text_) Show(text.size() - matcher_.HeldBackBytes(text));
    return false;
  }

  void Show(size_t end) {
    if (on_text_ && end > shown_) on_text_(std::string_view(completion_.text).substr(shown_, end - shown_));
    shown_ = std::max(shown_, end);
  }

  const Model& model_;
  const GenerateRequest& request_;
  const std::function<void(std::string_view)>& on_text_;
  Window window_;
  Sampler sampler_;
  StopMatcher matcher_;
  LogProbability log_probability_;
  Completion completion_;
  size_t shown_ = 0;
  std::vector<float> logits_;
  std::vector<double> log_softmax_;
};

}  // namespace

void CheckOptions(const GenerateOptions& options) {
  CheckSampling(options.sampling);
  for (const std::string& stop : options.stops) {
    if (stop.empty()) Fail("a stop string is empty; expected at least one character");
    try {
      DecodeUtf8(stop);
    } catch (const Error& error) {
      Fail("stop string {}: {}", Quote(stop), error.what());
    }
  }
}

Completion Generate(const Model& model, const GenerateRequest& request,
                    const std::function<void(std::string_view)>& on_text) {
  if (!request.error.empty()) {  // which may be about the options
    Completion failed;
    failed.finish = Finish::kError;
    failed.error = request.error;
    return failed;
  }
  CheckOptions(request.options);
  return Writer(model, request, on_text).Run();
}

void GenerateAll(const Model& model, int num_threads, const std::function<std::optional<GenerateRequest>()>& next,
                 const std::function<void(const GenerateRequest&, Completion&&)>& emit) {
  // Some requests ahead of the slowest keep every thread busy.
  const size_t in_flight = 16 * static_cast<size_t>(num_threads);
  WithThreads(num_threads, [&] {
    OrderedPipeline<GenerateRequest, Completion>(
        in_flight, next, [&](const GenerateRequest& request) { return Generate(model, request); }, emit);
  });
}

}  // namespace octavo
