// Writing texts: checks, one completion, and many through groups of lanes; see generate.h.
#include "engine/generate.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "engine/fail.h"
#include "engine/float_control.h"
#include "engine/group.h"
#include "engine/ordered_queue.h"
#include "engine/parallel.h"
#include "engine/utf8.h"

namespace octavo {
namespace {

// Panels of sequences that one group steps together. Two keep keys and values of small models in L2 and fill the register tiles; where the
// weights stream from farther away, four share each of them.
constexpr size_t kMostPanels = 4, kFewPanels = 2, kManyWeights = 1000000;

// Keys and values of all groups of a run take at most this; beyond it, groups get fewer panels, then there are fewer groups, whose
// threads share the work of a step.
constexpr size_t kCacheBytes = size_t{2} << 30;

struct Layout {
  size_t num_groups, num_panels;
};

Layout ChooseLayout(const Model& model, const RunOptions& options) {
  const size_t threads = static_cast<size_t>(options.num_threads);
  const ModelConfig& config = model.config();
  const size_t weights = 12 * config.num_layers * config.width * config.width;
  const size_t most = weights < kManyWeights ? kFewPanels : kMostPanels;
  const size_t panels = std::max<size_t>(1, kCacheBytes / KvCache::Bytes(config, 1, options.kv));
  const size_t per_group = std::clamp<size_t>(panels / threads, 1, most);
  return {std::clamp<size_t>(panels / per_group, 1, threads), per_group};
}

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
                    const std::function<void(std::string_view)>& on_text, const RunOptions& options) {
  if (request.error.empty()) CheckOptions(request.options);  // an error may be about the options
  Completion result;
  bool given = false;
  const Group::Queue queue{
      [&](size_t) -> std::optional<Group::Queue::Item> {
        if (std::exchange(given, true)) return std::nullopt;
        return Group::Queue::Item{0, request};
      },
      [&](uint64_t, GenerateRequest&&, Completion&& completion) { result = std::move(completion); },
      [] { return false; }};
  const Team team(options);
  team.Execute([&] { Group(model, team, 1, options.kv, queue, on_text ? &on_text : nullptr).Run(); });
  return result;
}

LaneUse GenerateAll(const Model& model, const RunOptions& options,
                    const std::function<std::optional<GenerateRequest>()>& next,
                    const std::function<void(const GenerateRequest&, Completion&&)>& emit) {
  using Queue = OrderedQueue<GenerateRequest, Completion>;
  const Layout layout = ChooseLayout(model, options);
  const size_t lanes = layout.num_groups * layout.num_panels * kPanelRows;
  const Queue::Next next_checked = [&] {
    std::optional<GenerateRequest> request = next();
    if (request && request->error.empty()) CheckOptions(request->options);
    return request;
  };
  // Completions of different lengths finish out of order: a few groups' worth may wait.
  Queue queue(next_checked, emit, options, layout.num_groups, 8 * lanes);
  const bool alone = !queue.has_reader();
  const Team team(options, alone);
  std::vector<LaneUse> uses(layout.num_groups);
  std::atomic<bool> grown = false;
  std::atomic<size_t> num_running = 1, num_without_memory = 0;
  team.Grow(alone ? 1 : layout.num_groups, [&](size_t i, const std::function<size_t()>& grow) {
    std::optional<Group> group;
    try {
      const Group::Queue view{[&](size_t held) {
                                auto item = queue.Take(held);
                                if (queue.has_ready() && !grown.exchange(true)) queue.SetWorkers(num_running = grow());
                                return item;
                              },
                              [&](uint64_t number, GenerateRequest&& request, Completion&& completion) {
                                queue.Put(number, std::move(request), std::move(completion));
                              },
                              [&] { return queue.failed(); }};
      group.emplace(model, team, layout.num_panels, options.kv, view, nullptr);
    } catch (...) {
      if (i == 0) return queue.Abort(std::current_exception());
      // Stacks of threads took the memory: the others do the work.
      ++num_without_memory;
      return queue.DropWorker();
    }
    try {
      uses[i] = group->Run();
    } catch (...) {
      queue.Abort(std::current_exception());
    }
  });
  if (num_without_memory > 0 && options.on_fewer_threads) {
    const DefaultFloatControl control;
    const size_t rest = num_running - num_without_memory;
    options.on_fewer_threads(static_cast<int>(rest),
                             fmt::format("memory sufficed for {} of {} threads", rest, num_running.load()));
  }
  queue.Finish();
  LaneUse use;
  for (const LaneUse& one : uses) use = {use.steps + one.steps, use.busy + one.busy};
  return use;
}

}  // namespace octavo
