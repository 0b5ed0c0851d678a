// Files that are on the disk and whole, or as they were before, whatever breaks in between: syncing, and writing under another name first.
// Out of scope: whether a file may be overwritten; see io.h and run_file.h.
#ifndef OCTAVO_TOOLS_DURABLE_H_
#define OCTAVO_TOOLS_DURABLE_H_

#include <string>
#include <string_view>

namespace octavo::tools {

// Waits until all that was written is on the disk. What cannot be synced (a pipe, a terminal) has nothing to wait for. Throws Error that
// names `path`.
void SyncFile(int fd, const std::string& path);

// The same for names: what was made, renamed or removed in the folder that holds `path`.
void SyncFolderOf(const std::string& path);

// Where `path` leads through symbolic links, also when there is nothing yet.
std::string FollowLinks(const std::string& path);

// Makes a file that must not be there, not even as a symbolic link, and syncs it. When that fails it is removed again. Throws Error.
void WriteNewFile(const std::string& path, std::string_view bytes);

// Puts `bytes` in the place of a file, or where none was, in one step: into a file beside it under a name that nobody has, which is synced and
// renamed. A symbolic link stays and what it leads to is replaced; the permissions stay. Throws Error, and then the old file stands.
void ReplaceFile(const std::string& path, std::string_view bytes);

}  // namespace octavo::tools

#endif  // OCTAVO_TOOLS_DURABLE_H_
