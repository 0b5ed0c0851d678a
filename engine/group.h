// A group of lanes that live on one thread: sequences that are written side by side, a step at a time, each finished one replaced at once.
#ifndef OCTAVO_ENGINE_GROUP_H_
#define OCTAVO_ENGINE_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/forward.h"
#include "engine/lane.h"
#include "engine/ordered_queue.h"
#include "engine/parallel.h"

namespace octavo {

class Group {
 public:
  // Gives the next request to a group that holds `held`, and takes its completion under the same number. nullopt means none for it now, or,
  // for a group that holds none, none any more. When `abandoned`, the group leaves its lanes as they
  // are: before a step, a prompt or a window, so within what one of these takes.
  struct Queue {
    using Item = OrderedQueue<GenerateRequest, Completion>::Item;
    std::function<std::optional<Item>(size_t held)> next;
    std::function<void(uint64_t number, GenerateRequest&& request, Completion&& completion)> emit;
    std::function<bool()> abandoned = {};
  };

  // Throws Error when memory does not suffice. `model` and `team` must outlive the group.
  Group(const Model& model, const Team& team, size_t num_panels, KvPrecision kv, Queue queue, const TextSink* on_text);

  // Until the queue gives nothing more and every lane is done.
  LaneUse Run();

 private:
  struct Slot {
    uint64_t number = 0;
    std::unique_ptr<Lane> lane;  // null: idle
  };

  // Fills idle lanes; returns one more than the index of the last busy one.
  size_t Refill();
  void Retire(Slot& slot);
  // Reads what a lane has to read before its next draw and cannot be read step by step.
  void Prefill(size_t index, Lane& lane);
  // One step of all cached lanes; fills logits_ and marks the lanes that can draw.
  void StepLanes(size_t num_live);
  void ReadWindow(size_t index, Lane& lane);
  void ReadText(std::span<const TokenId> text);
  void DrawLanes(size_t num_live);

  const Model& model_;
  Queue queue_;
  const TextSink* on_text_;
  StepPass step_pass_;
  TextPass text_pass_;
  std::vector<TokenId> last_read_;    // what text_pass_ holds
  std::vector<TokenId> last_prompt_;  // the last that Prefill saw
  std::vector<Slot> slots_;
  std::vector<int32_t> tokens_, positions_;
  std::vector<char> draws_;  // by lane: its logits are ready
  AlignedFloats logits_;     // [panels][vocabulary_size][16]
  AlignedFloats scratch_;
  LaneUse use_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_GROUP_H_
