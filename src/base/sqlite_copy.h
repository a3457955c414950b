// A private copy of a database, for examination. The original is read as plain files: opening it with SQLite would
// checkpoint its WAL and might worsen any damage.
//
// Not thread-safe. The destructor deletes the copy.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace playfs {

class DatabaseCopy {
 public:
  /// Copies `path` and its WAL, if any, to the temporary directory (0700, 0600). REQUIRES: no concurrent writer.
  static Result<DatabaseCopy> make(const std::string& path);
  DatabaseCopy(DatabaseCopy&& other) noexcept
      : directory_(std::exchange(other.directory_, {})), name_(std::move(other.name_)) {}
  DatabaseCopy& operator=(DatabaseCopy&&) = delete;
  ~DatabaseCopy();

  /// Contains only the copy, under the original's name.
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string path() const { return directory_ + "/" + name_; }

 private:
  DatabaseCopy(std::string directory, std::string name) : directory_(std::move(directory)), name_(std::move(name)) {}
  std::string directory_;
  std::string name_;
};

}  // namespace playfs
