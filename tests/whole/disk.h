// The disks of a simulated run: files in memory, below /simulated, as the whole executable and its libraries see them.
//
// disk_calls.cpp stands in for libc's calls on paths there and on their descriptors. A disk that forgets keeps, beside
// what is in a file, what of it was synced: a power cut may take any part of the rest, and of the names in a directory
// that were not synced any last part, as journaling file systems do. For one thread.
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

/// A file or a directory.
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
  std::string bytes;  ///< behind its end there are zeros up to `size`
  std::map<std::string, DiskFilePtr> names;
  std::unordered_map<off_t, std::unique_ptr<char[]>> mapped;  ///< SQLite's shared memory

  // Of one that forgets.
  std::string safe_bytes;
  std::vector<Change> changes;  ///< that were not synced
  std::map<std::string, DiskFilePtr> safe_names;
  std::vector<Renaming> renamings;

  void write(std::size_t at, std::string_view data);
  void resize(std::size_t to);
  void put(const std::string& name, DiskFilePtr file);
  void remove(const std::string& name);
  void sync();
  /// As a disk that cannot write: what was put there is read until the power goes, and no later sync brings it there.
  void fail_to_sync() { changes.clear(); }
};

/// All of them.
class Disks {
 public:
  static constexpr std::string_view kRoot = "/simulated";
  static Disks& all();

  /// nullptr where there is none.
  [[nodiscard]] DiskFilePtr find(std::string_view path) const;
  /// An empty directory, whose parents are made.
  DiskFilePtr make_directory(const std::string& path, bool forgets = false);
  void remove(const std::string& path);
  /// Everything goes.
  void clear();
  /// The directory as a process leaves it that is killed now; what is of use to nobody but that process is left out.
  void copy(const std::string& from, const std::string& to) const;
  /// All of it is safe.
  void copy(const DiskFilePtr& from, const std::string& to, bool forgets) const;
  /// As a power cut leaves it.
  void copy_after_power_cut(const std::string& from, const std::string& to, Random& random) const;
  /// Contents of all files below a directory.
  [[nodiscard]] std::vector<std::string> contents_below(const std::string& path) const;

 private:
  Disks();
  DiskFilePtr root_;
};

DiskFilePtr make_disk_file(bool is_directory, mode_t mode, bool forgets);

}  // namespace playfs::sim
