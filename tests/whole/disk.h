// The disks of a simulated run: in-memory files below /simulated, as the whole executable and its libraries see them.
//
// disk_calls.cpp replaces libc's calls for paths there and for their descriptors. A disk that forgets remembers which
// of a file's bytes were synced: a power cut may take any part of the rest, and any suffix of the unsynced name changes
// in a directory, as with journaling file systems. For one thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.h"

namespace playfs::sim {

struct DiskFile;
using DiskFilePtr = std::shared_ptr<DiskFile>;

struct DiskFile {
  struct Change {
    bool is_size;
    std::size_t at;  ///< or the size
    std::string bytes;
  };
  struct Renaming {
    std::string removed, made;  ///< either may be empty
    DiskFilePtr file;
  };
  bool is_directory = false, forgets = false;
  mode_t mode = 0600;
  ino_t number = 0;
  timespec modified{}, accessed{};
  std::size_t size = 0;
  std::string bytes;  ///< followed by zeros up to `size`
  std::map<std::string, DiskFilePtr> names;
  std::unordered_map<off_t, std::unique_ptr<char[]>> mapped;  ///< SQLite's shared memory

  // For a disk that forgets.
  std::string safe_bytes;
  std::vector<Change> changes;  ///< not synced
  std::map<std::string, DiskFilePtr> safe_names;
  std::vector<Renaming> renamings;

  void write(std::size_t at, std::string_view data);
  void resize(std::size_t to);
  void put(const std::string& name, DiskFilePtr file);
  void remove(const std::string& name);
  void sync();
  /// Simulates a disk that fails to write: the data can be read until the power goes, and no later sync saves it.
  void fail_to_sync() { changes.clear(); }
};

class Disks {
 public:
  static constexpr std::string_view kRoot = "/simulated";
  static Disks& all();

  /// nullptr if there is none.
  [[nodiscard]] DiskFilePtr find(std::string_view path) const;
  /// Creates an empty directory and its parents.
  DiskFilePtr make_directory(const std::string& path, bool forgets = false);
  void remove(const std::string& path);
  /// Removes everything.
  void clear();
  /// Copies the directory as a process leaves it that is killed now, without files of use only to that process.
  void copy(const std::string& from, const std::string& to) const;
  /// All of the copy counts as synced.
  void copy(const DiskFilePtr& from, const std::string& to, bool forgets) const;
  /// Copies the directory as a power cut leaves it.
  void copy_after_power_cut(const std::string& from, const std::string& to, Random& random) const;
  /// Contents of all files below a directory.
  [[nodiscard]] std::vector<std::string> contents_below(const std::string& path) const;

 private:
  Disks();
  DiskFilePtr root_;
};

DiskFilePtr make_disk_file(bool is_directory, mode_t mode, bool forgets);

}  // namespace playfs::sim
