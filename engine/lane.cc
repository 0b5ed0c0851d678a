// The life of one completion; see lane.h.
#include "engine/lane.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "engine/fail.h"
#include "engine/float_control.h"
#include "engine/utf8.h"

namespace octavo {
Lane::Lane(const Model& model, GenerateRequest request, const TextSink* on_text)
    : model_(model), request_(std::move(request)), on_text_(on_text), matcher_(request_.options.stops) {
  const size_t context = model.config().context_length;
  const std::vector<TokenId>& prompt = request_.prompt;
  size_t longest_stop = 0;
  for (const std::string& stop : request_.options.stops) longest_stop = std::max(longest_stop, DecodeUtf8(stop).size());
  totals_.resize(std::bit_ceil(longest_stop + 1));
  const size_t skip = prompt.size() - std::min(prompt.size(), context);
  seats_.reserve(context + 1);
  seats_.assign(prompt.begin() + static_cast<std::ptrdiff_t>(skip), prompt.end());
  if (seats_.empty()) seats_.push_back(model.start_token());
  if (request_.error.empty()) request_.error = model.vocabulary().ComplaintAbout(prompt);
  if (!request_.error.empty()) {
    Fail(request_.error);
  } else if (request_.options.max_chars == 0) {
    Finish(octavo::Finish::kLength);
  } else if (skip > 0 && request_.options.overflow == Overflow::kStop) {
    Finish(octavo::Finish::kContext);
  }
}

void Lane::Accept(TokenId token, float log_probability) {
  if (std::isnan(log_probability))
    return Fail(fmt::format("the model's logits are not finite at new character {}", step_ + 1));
  if (model_.vocabulary().is_end(token) || Print(token, log_probability)) return Finish(octavo::Finish::kStop);
  if (++step_ == request_.options.max_chars) return Finish(octavo::Finish::kLength);
  if (!Seat(token)) return Finish(octavo::Finish::kContext);
}

bool Lane::Seat(TokenId token) {
  const size_t context = model_.config().context_length;
  const bool full = seats_.size() == context;
  if (full && request_.options.overflow == Overflow::kStop) return false;
  seats_.push_back(token);
  if (!full) return true;
  windowed_ = request_.options.overflow == Overflow::kSlide;
  const size_t keep = windowed_ ? context : std::max<size_t>(1, context / 2);
  seats_.erase(seats_.begin(), seats_.end() - static_cast<std::ptrdiff_t>(keep));
  num_read = 0;
  return true;
}

bool Lane::Print(TokenId token, float log_probability) {
  const std::string_view character = model_.vocabulary().text(token);
  if (character.empty()) return false;
  std::string& text = completion_.text;
  text += character;
  const double before = total();
  ++completion_.num_chars;
  total() = before + static_cast<double>(log_probability);
  if (const size_t cut = matcher_.CutBytes(text)) {
    const size_t characters = DecodeUtf8(std::string_view(text).substr(text.size() - cut)).size();
    text.resize(text.size() - cut);
    completion_.num_chars -= characters;
    return true;
  }
  if (on_text_) Show(text.size() - matcher_.HeldBackBytes(text));
  return false;
}

void Lane::Show(size_t end) {
  if (end > shown_) {
    const DefaultFloatControl control;
    (*on_text_)(std::string_view(completion_.text).substr(shown_, end - shown_));
  }
  shown_ = std::max(shown_, end);
}

void Lane::Finish(octavo::Finish finish) {
  done_ = true;
  completion_.finish = finish;
  completion_.log_probability = total();
  if (on_text_) Show(completion_.text.size());
}

void Lane::Fail(std::string error) {
  completion_.error = std::move(error);
  Finish(octavo::Finish::kError);
}

}  // namespace octavo
