// A getauxval that hides one capability: preloaded, it makes an AArch64 CPU seem to lack AES, as that of the Raspberry Pi 4 does. Only to those
// who ask by this function, as Highway does: the instructions still run.
#include <asm/hwcap.h>
#include <dlfcn.h>
#include <elf.h>

extern "C" unsigned long getauxval(unsigned long type) {
  static const auto of_libc = reinterpret_cast<unsigned long (*)(unsigned long)>(dlsym(RTLD_NEXT, "getauxval"));
  const unsigned long value = of_libc(type);
  return type == AT_HWCAP ? value & ~static_cast<unsigned long>(HWCAP_AES) : value;
}
