#include "base/sqlite_copy.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace playfs {

Result<DatabaseCopy> DatabaseCopy::make(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code problem;
  std::string directory = (fs::temp_directory_path(problem) / "playfs-look-XXXXXX").string();
  if (problem) return fail(error_from_errno(problem.value(), "find the directory for temporary files"));
  if (!mkdtemp(directory.data())) return fail(error_from_errno(errno, "create " + directory));
  DatabaseCopy copy(std::move(directory), fs::path(path).filename().string());
  for (const char* part : {"", "-wal"}) {
    if (*part != 0 && !fs::exists(path + part, problem)) continue;
    fs::copy_file(path + part, copy.path() + part, problem);
    if (problem) return fail(error_from_errno(problem.value(), "copy " + path + part));
  }
  return copy;
}

DatabaseCopy::~DatabaseCopy() {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

}  // namespace playfs
