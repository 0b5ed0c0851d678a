// The octavo command: reads the command line, runs one subcommand, turns errors into one line and an exit code.
#include <algorithm>
#include <exception>
#include <new>

#include "engine/error.h"
#include "engine/suggest.h"
#include "engine/utf8.h"
#include "engine/version.h"
#include "tools/command.h"
#include "tools/command_line.h"
#include "tools/descriptors.h"
#include "tools/failure.h"
#include "tools/io.h"
#include "tools/memory.h"
#include "tools/writing.h"

namespace octavo::tools {
namespace {

constexpr int kFailure = 1, kWrongUsage = 2, kClosedPipe = 128 + 13;  // the last as if SIGPIPE had ended it

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// `octavo help`, `octavo help SUBCOMMAND` and `octavo version`, as many programs have them, are flags here.
std::vector<std::string> WithFlagsForWords(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments == std::vector<std::string>{"version"}) return {"--version"};
  if (arguments.empty() || arguments[0] != "help") return arguments;
  std::vector<std::string> flags(arguments.begin() + 1, arguments.end());
  const std::vector<std::string> names = SubcommandNames(app);
  const bool known = flags.empty() || std::find(names.begin(), names.end(), flags[0]) != names.end();
  if (known) flags.push_back("--help");  // else the word is complained of
  return flags;
}

// The subcommand that is meant, or the command itself.
const CLI::App& Meant(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const auto named = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == argument; });
    if (!named.empty()) return *named.front();
  }
  return app;
}

// Gives each value an argument of its own: for `--flag=` with nothing behind it, CLI11 would take the next argument instead.
std::vector<std::string> SeparateValues(const CLI::App& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      out.insert(out.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const CLI::Option* flag = name.starts_with("--") ? command.get_option_no_throw(name) : nullptr;
    const bool takes_value = flag && flag->get_expected_max() > 0;
    if (flag && !takes_value && equals != std::string::npos) throw UsageError(name + " takes no value");
    if (!takes_value) {
      out.push_back(argument);
      continue;
    }
    if (equals == std::string::npos && i + 1 == arguments.size()) throw UsageError(name + ": the value is missing");
    out.push_back(name);
    out.push_back(equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1));
  }
  return out;
}

// In our own words.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  for (const std::string& extra : app.remaining(true)) {
    if (extra == "--") continue;
    if (extra.starts_with('-')) {
      const auto commands = app.get_subcommands();
      return fmt::format(
          "unknown flag {}{}", Quote(extra),
          DidYouMean(extra.substr(0, extra.find('=')), FlagNames(commands.empty() ? app : *commands[0])));
    }
    if (!app.get_subcommands().empty()) return fmt::format("unexpected argument {}", Quote(extra));
    return fmt::format("unknown subcommand {}; expected {}{}", Quote(extra), Either(SubcommandNames(app)),
                       DidYouMean(extra, SubcommandNames(app)));
  }
  // Its own words are plain where something is missing.
  if (dynamic_cast<const CLI::RequiredError*>(&error)) return error.what();
  return "the command line cannot be understood";
}

int Run(CLI::App& app, const Action& action, const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> separated = SeparateValues(Meant(app, arguments), arguments);
    std::reverse(separated.begin(), separated.end());  // as CLI11 wants them
    app.parse(separated);
  } catch (const CLI::CallForVersion&) {
    WriteOut(fmt::format("octavo {} (numerics {})\n", Version(), kNumericsVersion));
    return 0;
  } catch (const CLI::CallForHelp&) {
    WriteOut(CLI::detail::find_and_replace(app.help(), "\n\n\n", "\n\n"));
    return 0;
  } catch (const CLI::ParseError& error) {
    throw UsageError(Explain(app, error));
  }
  if (!action) throw UsageError(fmt::format("expected a subcommand: {}", Either(SubcommandNames(app))));
  return action();
}

int Main(const std::vector<std::string>& given) {
  CLI::App app(
      "Small character-level GPTs on this CPU: write text, score it, show attention, describe models,\ncheck kernels.",
      "octavo");
  app.set_help_flag("-h,--help", "show this text");
  app.set_version_flag("--version", "", "show the version");
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(32);
  app.get_formatter()->label("REQUIRED", "");
  app.footer(
      "Example:\n"
      "  octavo generate --prompt 'ROMEO:'\n"
      "octavo SUBCOMMAND --help says more. Results go to standard output, all else to standard error.\n"
      "Exit code: 0 done, 1 failed (some or all), 2 wrong usage.");
  Action action;
  AddGenerateCommand(app, action);
  AddScoreCommand(app, action);
  AddAttendCommand(app, action);
  AddCheckCommand(app, action);
  AddInfoCommand(app, action);
  const std::vector<std::string> arguments = WithFlagsForWords(app, given);
  try {
    return Run(app, action, arguments);
  } catch (const UsageError& error) {
    const CLI::App& command = Meant(app, arguments);
    Complain("{} (see octavo {}--help)", error.what(), &command == &app ? "" : command.get_name() + " ");
    return kWrongUsage;
  } catch (const ClosedPipe&) {
    return kClosedPipe;
  } catch (const std::bad_alloc&) {
    SayOutOfMemory();
    return kFailure;
  } catch (const Error& error) {
    Complain("{}", error.what());
    return kFailure;
  } catch (const std::exception& error) {
    Complain("{}", ExplainForeign(error));
    return kFailure;
  }
}

}  // namespace
}  // namespace octavo::tools

int main(int argc, char** argv) {
  octavo::tools::OpenAbsentDescriptors();
  octavo::tools::PrepareForLowMemory();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  octavo::tools::RememberCommandLine(argc > 0 ? argv[0] : "octavo", arguments);
  return octavo::tools::Main(arguments);
}
