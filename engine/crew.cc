// Threads inside an arena; see crew.h.
#include "engine/crew.h"

#include <new>
#include <system_error>
#include <utility>

#include "engine/float_control.h"

namespace octavo {

Gate::Gate() : group_(std::make_unique<tbb::task_group>()) {
  try {
    hold_ = group_->defer([] {});
  } catch (...) {
    // Without memory for its task the group counts it all the same, and would wait for it for ever when it goes.
    [[maybe_unused]] const tbb::task_group* lost = group_.release();
    throw;
  }
}

void Gate::Open() {
  if (open_.exchange(true)) return;
  open_.notify_all();
  hold_ = tbb::task_handle();
}

void Gate::WaitAndShare() {
  group_->wait();
  Wait();
}

Crew::Crew(tbb::task_arena& arena, size_t wanted) : arena_(arena) {
  try {
    members_.reserve(wanted);
    while (members_.size() < wanted) {
      auto member = std::make_unique<Member>();
      member->number = members_.size() + 1;
      member->thread = std::thread([this, &member = *member] { Live(member); });
      members_.push_back(std::move(member));
    }
  } catch (const std::system_error&) {  // a limit of threads, or no memory for their stacks
  } catch (const std::bad_alloc&) {
  }
}

Crew::~Crew() {
  for (const auto& member : members_) member->begin.Open();
  for (const auto& member : members_) member->end.Open();
  for (const auto& member : members_) member->thread.join();
}

void Crew::Begin(size_t count, const std::function<void(size_t)>& work) {
  for (size_t i = 0; i < count; ++i) {
    members_[i]->work = &work;
    members_[i]->begin.Open();
  }
}

void Crew::Live(Member& member) const {
  const DefaultFloatControl control;
  const auto run = [&] {
    if (const auto* work = std::exchange(member.work, nullptr)) (*work)(member.number);
  };
  try {
    arena_.execute([&] {
      member.begin.WaitAndShare();
      run();
      member.end.WaitAndShare();
    });
  } catch (...) {  // no memory to enter the arena with: the work is done all the same, parts of others' are not taken
    member.begin.Wait();
    run();
  }
}

}  // namespace octavo
