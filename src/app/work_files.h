// The files of a work tree, mounted or cloned, as commands and tools list, read and write them. Nothing outside is
// reached: not by
// "..", not through a link, whoever made it and whenever.
//
// Blocking; safe for several threads, of which one writes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/manifest.h"

namespace playfs::app {

class WorkFiles {
 public:
  /// Larger files are for other tools.
  static constexpr std::size_t kLargest = 16 << 20;

  static Result<WorkFiles> open(const std::string& root);

  struct Entry {
    std::string path;
    std::uint64_t size = 0;
    bool is_link = false;
    bool is_executable = false;
  };
  struct Listing {
    std::vector<Entry> entries;
    bool goes_on = false;
  };
  /// Files and links at and below `top` ("": all), in order, after the path `after`, `most` at a time.
  [[nodiscard]] Result<Listing> list(const std::string& top, const std::string& after, std::size_t most) const;
  /// Errors: not_found, file_too_big.
  [[nodiscard]] Result<std::string> read(const std::string& path) const;
  /// Creates the file and its directories, or replaces its content, at once. `executable`: nullopt leaves it as it is.
  /// Returns whether the file is new.
  [[nodiscard]] Result<bool> write(const std::string& path, const std::string& content,
                                   std::optional<bool> executable) const;
  /// Puts a file or a link (whose target is `content`) at `path`, in place of the file, link or empty directory that is
  /// there, if `check` succeeds right before.
  [[nodiscard]] Status replace(const std::string& path, FileMode mode, const std::string& content,
                               const std::function<Status()>& check) const;
  /// A file or a link.
  [[nodiscard]] Status remove(const std::string& path) const;
  /// Removes the directories above `path` that are empty.
  [[nodiscard]] Status remove_empty_directories_above(const std::string& path) const;

 private:
  struct Place {
    UniqueFd directory;
    std::string name;
  };
  explicit WorkFiles(UniqueFd root) : root_(std::move(root)) {}
  [[nodiscard]] Result<Place> place_of(const std::string& path, bool creates) const;
  /// One pass for a page of list().
  struct Walk;
  struct WalkItem;
  [[nodiscard]] Result<std::vector<WalkItem>> items_in(const Walk& walk, const std::string& directory) const;
  [[nodiscard]] Status walk(Walk& walk, const std::string& directory) const;

  UniqueFd root_;
};

/// A path as tools are given it ("src/a.c", "./src/"), normalized; "" and "/" are the root. Errors: invalid_argument,
/// with the reason. Other absolute paths are refused: they are meant to be the machine's.
Result<std::string> path_in_project(const std::string& given);

}  // namespace playfs::app
