// Default floating-point control while a thread computes: the caller may have set another rounding, or flush denormals to zero, and the
// promise of the same bits everywhere holds for the default alone. Not installed.
#ifndef OCTAVO_ENGINE_FLOAT_CONTROL_H_
#define OCTAVO_ENGINE_FLOAT_CONTROL_H_

#include <cfenv>

#include "kernels/strict_math.h"

namespace octavo {

// Sets the default control of this thread; gives back what was found, the raised exceptions included, when it goes. <cfenv> is enough:
// both C libraries of Linux keep the bits that flush to zero (MXCSR on x86-64, FPCR on AArch64) in its environment and clear them for
// FE_DFL_ENV.
class DefaultFloatControl {
 public:
  DefaultFloatControl() {
    std::fegetenv(&found_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatControl() { std::fesetenv(&found_); }
  DefaultFloatControl(const DefaultFloatControl&) = delete;
  DefaultFloatControl& operator=(const DefaultFloatControl&) = delete;

 private:
  std::fenv_t found_;
};

}  // namespace octavo

#endif  // OCTAVO_ENGINE_FLOAT_CONTROL_H_
