// Outputs that are inputs of the same command. Regular files are compared by device and inode, so also through links and redirections, before
// anything is written; devices, terminals and pipes may well be both.
#ifndef OCTAVO_TOOLS_SAME_FILE_H_
#define OCTAVO_TOOLS_SAME_FILE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace octavo::tools {

// A regular file, whatever its name.
struct FileIdentity {
  dev_t device;
  ino_t inode;
  bool operator==(const FileIdentity&) const = default;
};

// Of the file that a path leads to or a descriptor stands for; nullopt when it is no regular file, or not there.
std::optional<FileIdentity> IdentityOf(const std::string& path);
std::optional<FileIdentity> IdentityOf(int fd);

class InputFiles {
 public:
  // `reader` says in messages who reads it: "--prompts". "-" is standard input.
  void Add(const std::string& path, const std::string& reader);

  // What --model names: a file, or those of a directory that can belong to a model (.json, .safetensors).
  void AddModel(const std::string& name);

  // Throw UsageError when the output is one of the inputs; `writer` says in messages who writes it: "--output".
  void RefuseAsOutput(const std::string& path, const std::string& writer) const;
  void RefuseStandardOutput() const;
  // Messages would stand among the data.
  void RefuseStandardError() const;
  void RefuseStandardStreams() const {
    RefuseStandardOutput();
    RefuseStandardError();
  }

 private:
  struct Input {
    FileIdentity identity;
    std::string path, reader;
  };

  void AddFile(const std::string& path, const std::string& reader);
  const Input* Find(const std::optional<FileIdentity>& identity) const;
  void RefuseStream(int fd, const char* name) const;

  std::vector<Input> inputs_;
};

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_SAME_FILE_H_
