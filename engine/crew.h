// Threads of our own beside the caller's, inside an arena of oneTBB: each may get a long piece of work, and takes parts
// of what the others share before and after. oneTBB starts none: where the system refuses a thread, its start would end
// the process, ours is done without. Not installed.
#ifndef OCTAVO_ENGINE_CREW_H_
#define OCTAVO_ENGINE_CREW_H_

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace octavo {

// Closed until it is opened, once. One thread waits.
class Gate {
 public:
  Gate();
  // On any thread.
  void Open();
  // Inside the arena: takes parts of what others share there meanwhile.
  void WaitAndShare();
  // Anywhere; takes no parts.
  void Wait() const { open_.wait(false); }

 private:
  std::atomic<bool> open_ = false;
  std::unique_ptr<tbb::task_group> group_;
  tbb::task_handle hold_;  // a task that never runs: the group is waited for while it is there
};

class Crew {
 public:
  // `wanted` threads, or as many as the system starts. `arena` has a place reserved for each, and outlives the crew.
  Crew(tbb::task_arena& arena, size_t wanted);
  // Waits until all work is done; ends the threads.
  ~Crew();

  size_t size() const { return members_.size(); }

  // Runs work(1) … work(count), count ≤ size(), each on a thread of its own. Once. Does not throw, nor does `work`,
  // which outlives the crew.
  void Begin(size_t count, const std::function<void(size_t)>& work);

 private:
  struct Member {
    Gate begin, end;
    const std::function<void(size_t)>* work = nullptr;  // read once `begin` is open
    size_t number = 0;
    std::thread thread;  // last: it uses all of the above
  };

  void Live(Member& member) const;

  tbb::task_arena& arena_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_CREW_H_
