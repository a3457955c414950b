// A private copy of a database, to be examined: the original is read as plain files and never opened by SQLite, which
// would bring its log into it, and perhaps make a damage larger.
//
// For one thread. The copy goes with the object.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace playfs {

class DatabaseCopy {
 public:
  /// Copies `path` and its write-ahead log, if there is one, to the directory for temporary files (0700, 0600).
  /// REQUIRES: nobody writes to it meanwhile.
  static Result<DatabaseCopy> make(const std::string& path);
  DatabaseCopy(DatabaseCopy&& other) noexcept : directory_(std::exchange(other.directory_, {})), name_(other.name_) {}
  DatabaseCopy& operator=(DatabaseCopy&&) = delete;
  ~DatabaseCopy();

  /// Holds nothing but the copy, under the original's name.
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string path() const { return directory_ + "/" + name_; }

 private:
  DatabaseCopy(std::string directory, std::string name) : directory_(std::move(directory)), name_(std::move(name)) {}
  std::string directory_;
  std::string name_;
};

}  // namespace playfs
