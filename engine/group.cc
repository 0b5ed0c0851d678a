// Lanes stepped together; see group.h.
#include "engine/group.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/philox.h"
#include "kernels/sample.h"
#include "kernels/softmax.h"

namespace octavo {
namespace {

// From this many characters on, reading them as a text beats reading them one a step: a panel of positions costs what a step of 16 lanes
// costs, of which a prompt read step by step takes 1/16 each.
constexpr size_t kPrefillFrom = 16;

// What the draw of 16 lanes needs, idle lanes with harmless values.
struct PanelRequest {
  float temperature[kPanelRows], top_p[kPanelRows], uniform[kPanelRows];
  int32_t top_k[kPanelRows];

  void Set(size_t r, const Lane* lane) {
    temperature[r] = 1;
    top_p[r] = 1;
    uniform[r] = 0;
    top_k[r] = 0;
    if (!lane) return;
    const GenerateRequest& request = lane->request();
    const SamplingOptions& sampling = request.options.sampling;
    temperature[r] = static_cast<float>(sampling.temperature);
    // A double in (0, 1] may round to a float of 0.
    top_p[r] = std::max(static_cast<float>(sampling.top_p), std::numeric_limits<float>::min());
    uniform[r] = UniformDraw(request.seed, request.sequence, lane->step());
    top_k[r] = static_cast<int32_t>(std::min<uint64_t>(sampling.top_k, std::numeric_limits<int32_t>::max()));
  }
};

}  // namespace

Group::Group(const Model& model, const Team& team, size_t num_panels, KvPrecision kv, Queue queue,
             const TextSink* on_text)
    : model_(model),
      queue_(std::move(queue)),
      on_text_(on_text),
      step_pass_(model, num_panels, &team, kv),
      text_pass_(model, &team, kv),
      slots_(step_pass_.num_lanes()),
      tokens_(slots_.size()),
      positions_(slots_.size()),
      draws_(slots_.size()),
      logits_(slots_.size() * model.config().vocabulary_size),
      scratch_(SampleScratchFloats(model.config().vocabulary_size)) {}

LaneUse Group::Run() {
  size_t num_live;
  while (!queue_.abandoned() && (num_live = Refill()) > 0) {
    StepLanes(num_live);
    for (size_t i = 0; i < num_live; ++i) {
      if (!slots_[i].lane || !slots_[i].lane->reads_windows()) continue;
      if (queue_.abandoned()) return use_;
      ReadWindow(i, *slots_[i].lane);
    }
    DrawLanes(num_live);
    for (size_t i = 0; i < num_live; ++i) {
      if (slots_[i].lane && slots_[i].lane->done()) Retire(slots_[i]);
    }
  }
  return use_;
}

size_t Group::Refill() {
  size_t num_live = 0, num_busy = 0;
  for (const Slot& slot : slots_) num_busy += slot.lane != nullptr;
  bool more = true;
  for (size_t i = 0; i < slots_.size(); ++i) {
    while (more && !slots_[i].lane) {
      std::optional<Queue::Item> item = queue_.next(num_busy);
      if (!(more = item.has_value())) break;
      slots_[i] = {item->number, std::make_unique<Lane>(model_, std::move(item->request), on_text_)};
      if (slots_[i].lane->done()) {
        Retire(slots_[i]);
      } else {
        ++num_busy;
      }
    }
    if (!slots_[i].lane) continue;
    num_live = i + 1;
    Prefill(i, *slots_[i].lane);
  }
  return num_live;
}

void Group::Retire(Slot& slot) {
  queue_.emit(slot.number, slot.lane->TakeRequest(), slot.lane->TakeCompletion());
  slot.lane.reset();
}

void Group::Prefill(size_t index, Lane& lane) {
  if (lane.num_read > 0 || lane.reads_windows() || lane.seats().size() < 2) return;
  if (queue_.abandoned()) return;  // nobody will draw from it
  // All but the last character, which the next step reads.
  const std::span<const TokenId> text = lane.seats().first(lane.seats().size() - 1);
  // The samples of one prompt follow each other: what was read last serves them all, and a prompt that begins it.
  const bool is_read = text.size() <= last_read_.size() && std::equal(text.begin(), text.end(), last_read_.begin());
  const bool comes_again = std::equal(text.begin(), text.end(), last_prompt_.begin(), last_prompt_.end());
  if (!comes_again) last_prompt_.assign(text.begin(), text.end());
  if (!is_read && !comes_again && text.size() < kPrefillFrom) return;
  if (!is_read) ReadText(text);
  step_pass_.Load(index, text_pass_, text.size());
  lane.num_read = text.size();
}

void Group::ReadText(std::span<const TokenId> text) {
  last_read_.clear();  // should reading throw
  text_pass_.Read(text, text.size() - 1);
  last_read_.assign(text.begin(), text.end());
}

void Group::StepLanes(size_t num_live) {
  bool any = false;
  for (size_t i = 0; i < num_live; ++i) {
    Lane* lane = slots_[i].lane.get();
    const bool steps = lane && !lane->reads_windows();
    tokens_[i] = steps ? lane->seats()[lane->num_read] : 0;
    positions_[i] = steps ? static_cast<int32_t>(lane->num_read++) : 0;
    draws_[i] = steps && lane->num_read == lane->seats().size();
    any |= steps;
  }
  for (size_t i = num_live; i < tokens_.size(); ++i) tokens_[i] = positions_[i] = 0;
  if (!any) return;
  use_.steps += NumPanels(num_live) * kPanelRows;
  for (size_t i = 0; i < num_live; ++i) use_.busy += slots_[i].lane && !slots_[i].lane->reads_windows();
  const float* logits = step_pass_.Step(tokens_.data(), positions_.data(), num_live);
  std::copy(logits, logits + PanelFloats(num_live, model_.config().vocabulary_size), logits_.begin());
}

void Group::ReadWindow(size_t index, Lane& lane) {
  const std::span<const TokenId> seats = lane.seats();
  const size_t last = seats.size() - 1, vocabulary = model_.config().vocabulary_size;
  ReadText(seats);
  const float* from = text_pass_.Logits(last / kPanelRows) + last % kPanelRows;
  float* to = logits_.data() + index / kPanelRows * kPanelRows * vocabulary + index % kPanelRows;
  for (size_t v = 0; v < vocabulary; ++v) to[v * kPanelRows] = from[v * kPanelRows];
  draws_[index] = true;
}

void Group::DrawLanes(size_t num_live) {
  const size_t vocabulary = model_.config().vocabulary_size;
  for (size_t begin = 0; begin < num_live; begin += kPanelRows) {
    PanelRequest request;
    bool any = false;
    for (size_t r = 0; r < kPanelRows; ++r) {
      request.Set(r, draws_[begin + r] ? slots_[begin + r].lane.get() : nullptr);
      any |= draws_[begin + r] != 0;
    }
    if (!any) continue;
    int32_t ids[kPanelRows];
    float log_probabilities[kPanelRows];
    const float* logits = logits_.data() + begin * vocabulary;
    Sample(logits, vocabulary, {request.temperature, request.top_k, request.top_p, request.uniform}, scratch_.data(),
           ids);
    LogProbabilityOf(logits, kPanelRows, vocabulary, ids, log_probabilities);
    for (size_t r = 0; r < kPanelRows; ++r) {
      if (!draws_[begin + r]) continue;
      draws_[begin + r] = false;
      slots_[begin + r].lane->Accept(ids[r], log_probabilities[r]);
    }
  }
}

}  // namespace octavo
