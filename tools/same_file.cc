// Outputs that are inputs; see same_file.h.
#include "tools/same_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "engine/model.h"
#include "engine/utf8.h"
#include "tools/command.h"

namespace octavo::tools {
namespace {

std::optional<FileIdentity> IdentityOf(bool found, const struct stat& status) {
  if (!found || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino};
}

}  // namespace

std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat status;
  return IdentityOf(stat(path.c_str(), &status) == 0, status);
}

std::optional<FileIdentity> IdentityOf(int fd) {
  struct stat status;
  return IdentityOf(fstat(fd, &status) == 0, status);
}

void InputFiles::Add(const std::string& path, const std::string& reader) {
  if (path != "-") return AddFile(path, reader);
  if (const auto identity = IdentityOf(STDIN_FILENO)) inputs_.push_back({*identity, "standard input", reader});
}

void InputFiles::AddFile(const std::string& path, const std::string& reader) {
  if (const auto identity = IdentityOf(path)) inputs_.push_back({*identity, QuotePath(path), reader});
}

void InputFiles::AddModel(const std::string& name) {
  const std::vector<std::string> built_in = Model::BuiltInNames();
  if (std::find(built_in.begin(), built_in.end(), name) != built_in.end()) return;
  std::error_code error;
  if (!std::filesystem::is_directory(name, error)) return AddFile(name, "--model");
  for (auto it = std::filesystem::directory_iterator(name, error); it != std::filesystem::directory_iterator();
       it.increment(error)) {
    const std::string kind = it->path().extension().string();
    if (kind == ".json" || kind == ".safetensors") AddFile(it->path().string(), "--model");
  }
}

const InputFiles::Input* InputFiles::Find(const std::optional<FileIdentity>& identity) const {
  const auto found =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& x) { return x.identity == identity; });
  return found == inputs_.end() ? nullptr : &*found;
}

void InputFiles::RefuseAsOutput(const std::string& path, const std::string& writer) const {
  if (const Input* input = Find(IdentityOf(path))) {
    throw UsageError(fmt::format("{}: {} is the file {} that {} reads; expected another name", writer, QuotePath(path),
                                 input->path, input->reader));
  }
}

void InputFiles::RefuseStream(int fd, const char* name) const {
  if (const Input* input = Find(IdentityOf(fd))) {
    throw UsageError(
        fmt::format("{} goes to the file {} that {} reads; expected another file", name, input->path, input->reader));
  }
}

void InputFiles::RefuseStandardOutput() const { RefuseStream(STDOUT_FILENO, "standard output"); }

void InputFiles::RefuseStandardError() const { RefuseStream(STDERR_FILENO, "standard error"); }

}  // namespace octavo::tools
