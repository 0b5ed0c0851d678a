// The instruction sets ("targets") that kernels are compiled for: which there are, which this CPU runs, which one is used.
#ifndef OCTAVO_KERNELS_TARGETS_H_
#define OCTAVO_KERNELS_TARGETS_H_

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// Names, best first: AVX3, AVX2, SSE4, SSSE3 on x86-64, NEON (newer versions of Highway: and NEON_WITHOUT_AES) on AArch64, and "scalar", the
// portable one, where it is compiled in.
std::vector<std::string> CompiledTargets();

// Those that this CPU runs; never empty where the baseline of the build runs.
std::vector<std::string> RunnableTargets();

// The one that kernels use now.
std::string CurrentTarget();

// Makes all kernels use this target from now on, on all threads; any case, AVX512 is taken for AVX3. False, and nothing changes, when it
// is not compiled in or this CPU does not run it. Not while kernels run.
bool UseTarget(std::string_view name);

// Back to the best one.
void UseBestTarget();

// Whether the target has fused multiply-add: all that have give the same bits, and so do all that have not.
bool HasFusedMultiplyAdd(std::string_view name);

}  // namespace octavo

#endif  // OCTAVO_KERNELS_TARGETS_H_
