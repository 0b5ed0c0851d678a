// The octavo command: reads the command line, runs one subcommand, turns errors into one line and an exit code.
#include <algorithm>
#include <exception>

#include "engine/error.h"
#include "engine/version.h"
#include "tools/command.h"

namespace octavo::tools {
namespace {

constexpr int kFailure = 1, kWrongUsage = 2;

int Main(int argc, char** argv) {
  CLI::App app("Runs small character-level GPTs: write text, score it, look inside.", "octavo");
  app.set_version_flag("--version", fmt::format("octavo {} (numerics {})", Version(), kNumericsVersion));
  app.require_subcommand(1);
  app.fallthrough(false);
  Action action;
  AddGenerateCommand(app, action);
  AddScoreCommand(app, action);
  AddInfoCommand(app, action);
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    const auto used = app.get_subcommands();
    const std::string command = used.empty() ? "octavo" : "octavo " + used.front()->get_name();
    Complain("{} (see {} --help)", message, command);
    return kWrongUsage;
  } catch (const UsageError& error) {
    Complain("{}", error.what());
    return kWrongUsage;
  } catch (const std::bad_alloc&) {
    Complain("out of memory");
    return kFailure;
  } catch (const std::exception& error) {
    Complain("{}", error.what());
    return kFailure;
  }
}

}  // namespace
}  // namespace octavo::tools

int main(int argc, char** argv) { return octavo::tools::Main(argc, argv); }
