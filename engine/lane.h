// One completion being written: what it reads next, what becomes of a drawn character, when it ends. Knows nothing of the forward pass.
#ifndef OCTAVO_ENGINE_LANE_H_
#define OCTAVO_ENGINE_LANE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/generate.h"
#include "engine/stop_matcher.h"

namespace octavo {

using TextSink = std::function<void(std::string_view)>;

class Lane {
 public:
  // `model` must outlive the lane. `on_text` may be null.
  Lane(const Model& model, GenerateRequest request, const TextSink* on_text);

  bool done() const { return done_; }
  const GenerateRequest& request() const { return request_; }
  GenerateRequest TakeRequest() { return std::move(request_); }
  Completion TakeCompletion() { return std::move(completion_); }

  // The characters in the seats, oldest first: at most context_length. All of them have to be read before the next draw.
  std::span<const TokenId> seats() const { return seats_; }

  // Seats that the cache holds already, counted by whoever reads them.
  size_t num_read = 0;

  // Whether every draw needs the seats read anew from position 0 (beyond the context with kSlide).
  bool reads_windows() const { return windowed_; }

  // Index of the character that is drawn next.
  uint64_t step() const { return step_; }

  // Takes the drawn character and its log-probability (NaN: the logits were not finite) and moves on.
  void Accept(TokenId token, float log_probability);

 private:
  void Finish(octavo::Finish finish);
  void Fail(std::string error);
  // Adds a character to the text; true when that completes a stop string, which is cut off again.
  bool Print(TokenId token, float log_probability);
  // Gives the character a seat by the window rule; false when there is none.
  bool Seat(TokenId token);
  void Show(size_t end);
  double& total() { return totals_[completion_.num_chars & (totals_.size() - 1)]; }

  const Model& model_;
  GenerateRequest request_;
  const TextSink* on_text_;
  StopMatcher matcher_;
  Completion completion_;
  std::vector<TokenId> seats_;
  // Running Σ ln p after n characters at n modulo its size, a power of two: as far back as a stop string can cut.
  std::vector<double> totals_;
  size_t shown_ = 0;
  uint64_t step_ = 0;
  bool windowed_ = false, done_ = false;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_LANE_H_
