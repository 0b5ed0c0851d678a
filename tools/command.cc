// Shared parts of the command line; see command.h.
#include "tools/command.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/error.h"
#include "engine/target.h"
#include "engine/threads.h"
#include "engine/utf8.h"
#include "kernels/targets.h"
#include "tools/stop.h"
#include "tools/writing.h"

namespace octavo::tools {
namespace {

// Of a decimal number that no double can hold: whether it is too close to 0 for that, and not too large.
bool IsTiny(std::string_view number) {
  const size_t mantissa_end = std::min(number.find_first_of("eE"), number.size());
  const std::string_view mantissa = number.substr(0, mantissa_end);
  std::string_view power = number.substr(std::min(mantissa_end + 1, number.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  int exponent = 0;
  const auto [end, code] = std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (code == std::errc::result_out_of_range) return power.starts_with('-');
  const auto point = static_cast<int64_t>(std::min(mantissa.find('.'), mantissa.size()));
  const auto first_digit = static_cast<int64_t>(mantissa.find_first_of("123456789"));
  return point - first_digit + exponent < 0;
}

}  // namespace

uint64_t ParseUnsigned(const std::string& text, uint64_t least) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::result_out_of_range) {
    throw UsageError(
        fmt::format("{} is too large; expected at most {}", Quote(text), std::numeric_limits<uint64_t>::max()));
  }
  if (code != std::errc() || end != text.data() + text.size() || value < least) {
    throw UsageError(fmt::format("{} is not a whole number of at least {}", Quote(text), least));
  }
  return value;
}

double ParseDouble(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  if (whole && code == std::errc::result_out_of_range && IsTiny(text)) return 0;
  if (code != std::errc() || !whole || !std::isfinite(value)) {
    throw UsageError(fmt::format("{} is not a finite decimal number (such as 0.8)", Quote(text)));
  }
  return value;
}

std::string Either(const std::vector<std::string>& choices) {
  if (choices.size() == 1) return choices[0];
  return fmt::format("{} or {}", fmt::join(choices.begin(), choices.end() - 1, ", "), choices.back());
}

void ComplainLine(std::string_view message) {
  WriteFully(STDERR_FILENO, fmt::format("octavo: {}\n", EscapeForMessage(message)));
}

void UnknownKeys::Warn(const std::string& key, std::string_view input_name, uint64_t line) {
  constexpr size_t kMostWarnings = 16;
  if (quiet_ || warned_.size() >= kMostWarnings || !warned_.insert(key).second) return;
  Complain("{} line {}: unknown key {} is ignored, here and further on", input_name, line, Quote(key));
}

void FlagAdder::AddSwitch(const std::string& name, bool& value, const std::string& help) {
  command_.add_flag(name, value, help)->group(group_);
}

CLI::Option* FlagAdder::AddParsed(const std::string& name, const std::string& value_name, const std::string& help,
                                  const std::function<void(const std::string&)>& parse) {
  const auto parse_each = [name, parse](const CLI::results_t& values) {
    for (const std::string& value : values) {
      try {
        parse(value);
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("{}: {}", name, error.what()));
      }
    }
    return true;
  };
  return command_.add_option(name, parse_each, help)
      ->option_text(value_name)
      ->group(group_)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void FlagAdder::AddUnsigned(const std::string& name, const std::string& value_name, uint64_t& value,
                            const std::string& help, uint64_t least) {
  AddParsed(name, value_name, fmt::format("{} (default {})", help, value),
            [&value, least](const std::string& text) { value = ParseUnsigned(text, least); });
}

void FlagAdder::AddDouble(const std::string& name, const std::string& value_name, double& value,
                          const std::string& help) {
  AddParsed(name, value_name, fmt::format("{} (default {})", help, value),
            [&value](const std::string& text) { value = ParseDouble(text); });
}

void FlagAdder::AddText(const std::string& name, const std::string& value_name, std::string& value,
                        const std::string& help) {
  AddParsed(name, value_name, value.empty() ? help : fmt::format("{} (default {})", help, value),
            [&value](const std::string& text) { value = text; });
}

void FlagAdder::AddChoice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                          const std::string& help) {
  AddParsed(name, fmt::format("{}", fmt::join(choices, "|")),
            value.empty() ? help : fmt::format("{} (default {})", help, value),
            [&value, choices](const std::string& text) {
              if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
                throw UsageError(fmt::format("{} is not {}", Quote(text), Either(choices)));
              }
              value = text;
            });
}

void FlagAdder::AddTexts(const std::string& name, const std::string& value_name, std::vector<std::string>& values,
                         const std::string& help) {
  AddParsed(name, value_name, help, [&values](const std::string& text) { values.push_back(text); });
}

void FlagAdder::AddKv(std::string& kv) {
  AddChoice("--kv", kv, {"f32", "bf16"},
            "precision of the keys and values that attention\nreads: bf16 is faster and changes the text");
}

void FlagAdder::AddCommon(CommonFlags& flags) {
  Group("Common");
  AddText("--model", "NAME|FILE|DIR", flags.model,
          "built-in model (tiny, small), .safetensors file, or\ndirectory in the Hugging Face layout");
  AddText("--target", "NAME", flags.target, "instruction set of the kernels (see octavo info);\nempty: the best");
  AddUnsigned("--threads", "N", flags.threads, "0: as many as this process may use");
  AddSwitch("--quiet", flags.quiet, "only errors on standard error");
  command_.set_help_flag("-h,--help", "show this text")->group(group_);
}

KvPrecision KvFrom(const std::string& name) { return name == "f32" ? KvPrecision::kF32 : KvPrecision::kBf16; }

int ThreadsFrom(const CommonFlags& flags) {
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  try {
    return ChooseThreads(static_cast<int>(std::min(flags.threads, kMost)));
  } catch (const Error& error) {
    throw UsageError(fmt::format("--threads: {}", error.what()));
  }
}

FewerThreads OnFewerThreads(int& num_threads, bool quiet) {
  return [&num_threads, quiet](int count, std::string_view what) {
    num_threads = count;
    if (!quiet) Complain("{}; the results are the same, only slower", what);
  };
}

RunOptions StoppableRun(int& num_threads, const std::string& kv, bool quiet) {
  return {.num_threads = num_threads,
          .kv = KvFrom(kv),
          .stop = &StopFlag(),
          .abandon = &AbandonFlag(),
          .wake_next = [] { RequestStop(); },
          .on_fewer_threads = OnFewerThreads(num_threads, quiet)};
}

void ApplyTarget(const std::string& name, bool quiet) {
  try {
    SelectTarget(name);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}{}", name.empty() ? "" : "--target: ", error.what()));
  }
  const bool portable = CurrentTarget() == "scalar" && RunnableTargets().size() == 1;
  if (portable && !quiet)
    Complain(
        "this CPU has none of the instruction sets that octavo is fast with, SSSE3 or better on x86-64 and NEON on "
        "AArch64; running portable code");
}

}  // namespace octavo::tools
