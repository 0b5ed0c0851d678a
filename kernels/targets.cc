// Lists and forces Highway's targets; see targets.h.
#include "kernels/targets.h"

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/strict_math.h"

namespace octavo {
namespace {

// Which of the two a compiler has differs; to users they are one.
constexpr int64_t kPortable = HWY_SCALAR | HWY_EMU128;

std::string Name(int64_t target) { return target & kPortable ? "scalar" : hwy::TargetName(target); }

// The single bits of a set, best first.
std::vector<int64_t> Bits(int64_t targets) {
  std::vector<int64_t> bits;
  for (; targets != 0; targets &= targets - 1) bits.push_back(targets & -targets);
  return bits;
}

std::vector<std::string> Names(int64_t targets) {
  std::vector<std::string> names;
  for (const int64_t target : Bits(targets)) names.push_back(Name(target));
  return names;
}

// What the CPU runs of what is compiled. The baseline always counts: Highway 1.0.3 wants AES for NEON, which the Raspberry Pi 4 lacks
// and these kernels do not use. Where there is nothing else Highway is not asked, for it would print a warning on such a CPU. Asked once:
// SupportedTargets also makes the dispatch tables choose the best target again.
int64_t Runnable() {
  static const int64_t runnable = HWY_TARGETS == HWY_STATIC_TARGET
                                      ? HWY_STATIC_TARGET
                                      : (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
  return runnable;
}

// Makes every dispatch table choose among `targets`.
void Choose(int64_t targets) { hwy::GetChosenTarget().Update(targets); }

int64_t chosen = 0;

std::string Upper(std::string_view name) {
  std::string upper;
  for (const char c : name) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper == "AVX512" ? "AVX3" : upper;
}

}  // namespace

std::vector<std::string> CompiledTargets() { return Names(HWY_TARGETS); }

std::vector<std::string> RunnableTargets() { return Names(Runnable()); }

std::string CurrentTarget() { return Name(chosen ? chosen : Bits(Runnable()).front()); }

bool UseTarget(std::string_view name) {
  for (const int64_t target : Bits(Runnable())) {
    if (Upper(Name(target)) != Upper(name)) continue;
    chosen = target;
    Choose(target);
    return true;
  }
  return false;
}

void UseBestTarget() { UseTarget(Name(Bits(Runnable()).front())); }

bool HasFusedMultiplyAdd(std::string_view name) {
  const std::string upper = Upper(name);
  return upper == "AVX2" || upper == "AVX3" || upper == "NEON" || upper == "NEON_WITHOUT_AES";
}

}  // namespace octavo
