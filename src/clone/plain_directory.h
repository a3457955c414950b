// The directory of a clone: names in it are reached without following a link, and replaced only if they are what the
// caller expects.
//
// Anybody may change the directory at any time, and a hostile revision chooses names. So every path is resolved below
// the root with links refused, and a file is put in place by exchanging it for what is there: if that turns out not to
// be what was expected, it is exchanged back. Blocking; for one thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "clone/signature.h"

namespace playfs::clone {

/// Where a clone keeps its state, in its root. Never published.
inline constexpr const char* kStateFolder = ".playfs";
/// Where files of the user go that could not be put back.
inline constexpr const char* kKeptIn = ".playfs/lost+found";

struct Name {
  std::string text;
  bool is_directory = false;
  bool is_other = false;  ///< neither file, link nor directory
};

class PlainDirectory {
 public:
  /// REQUIRES: the state folder exists.
  static Result<PlainDirectory> open(const std::string& path);

  /// The time that the file system would give to a file changed now, in nanoseconds.
  [[nodiscard]] Result<std::int64_t> now() const;
  /// Makes everything written so far safe from a power loss.
  [[nodiscard]] Status sync() const;

  // Reading. A path is "" for the root. Whatever is reached through a link is not there.
  /// nullopt if there is no directory.
  [[nodiscard]] Result<std::optional<UniqueFd>> directory(const std::string& path) const;
  /// The names in an open directory, sorted; `path` is for messages.
  [[nodiscard]] static Result<std::vector<Name>> names(int directory, const std::string& path);
  [[nodiscard]] Result<std::optional<struct stat>> look(const std::string& path) const;
  /// nullopt if there is no regular file.
  [[nodiscard]] Result<std::optional<UniqueFd>> open_file(const std::string& path) const;
  /// nullopt if there is no link.
  [[nodiscard]] Result<std::optional<std::string>> read_link(const std::string& path) const;

  // Writing.
  /// What is to be put somewhere: made in the state folder, and removed with this unless it was put.
  class Prepared {
   public:
    Prepared(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}
    Prepared(Prepared&& other) noexcept : folder_(std::exchange(other.folder_, -1)), name_(std::move(other.name_)) {}
    Prepared& operator=(Prepared&&) = delete;
    ~Prepared();

   private:
    friend class PlainDirectory;
    int folder_;
    std::string name_;
  };
  /// A file that `fill` writes. The umask applies.
  [[nodiscard]] Result<Prepared> prepare_file(bool is_executable, const std::function<Status(int)>& fill) const;
  [[nodiscard]] Result<Prepared> prepare_link(const std::string& target) const;
  /// Decides whether what is at a path now (nullopt: nothing) may be replaced. `file` is open if it is a regular file.
  using MayGo = std::function<Result<bool>(const std::optional<struct stat>&, int file)>;
  /// Puts it at `path`, if what is there may go. Returns what is there now; nullopt: nothing was changed.
  [[nodiscard]] Result<std::optional<Signature>> put(const Prepared& prepared, const std::string& path,
                                                     const MayGo& may_go) const;
  /// Removes a file or link if it may go; returns whether it is gone.
  [[nodiscard]] Result<bool> remove(const std::string& path, const MayGo& may_go) const;
  /// False if something else is there.
  [[nodiscard]] Result<bool> make_directory(const std::string& path) const;
  /// A directory with something in it stays.
  [[nodiscard]] Status remove_directory(const std::string& path) const;

  /// Paths of what was moved to `lost+found` since the last call.
  [[nodiscard]] std::vector<std::string> newly_kept() { return std::exchange(kept_, {}); }
  /// All that is there.
  [[nodiscard]] Result<std::vector<std::string>> lost_and_found() const;

 private:
  PlainDirectory(std::string path, UniqueFd root, UniqueFd folder)
      : path_(std::move(path)), root_(std::move(root)), folder_(std::move(folder)) {}
  struct Place {
    UniqueFd directory;
    std::string name;
  };
  /// nullopt if its directory does not exist.
  [[nodiscard]] Result<std::optional<Place>> place_of(const std::string& path) const;
  [[nodiscard]] Result<std::string> fresh_name() const;
  /// Moves to `lost+found` what a killed command took out of the directory before it could decide whether that may go.
  [[nodiscard]] Status keep_what_was_left() const;
  /// Moves it to `lost+found`.
  [[nodiscard]] Status keep(const std::string& taken_out) const;
  [[nodiscard]] Result<bool> exchange(const Prepared& prepared, const Place& place, const std::string& path,
                                      const MayGo& may_go) const;
  [[nodiscard]] Status put_back(const std::string& out, const Place& place, const Signature& put) const;
  [[nodiscard]] Error error(int number, const char* what, const std::string& path) const;

  std::string path_;
  UniqueFd root_;
  UniqueFd folder_;  ///< where files are prepared
  mutable unsigned last_ = 0;
  mutable std::vector<std::string> kept_;
};

}  // namespace playfs::clone
