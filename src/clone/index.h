// What a clone's directory held when it was last looked at or written, name by name, and which content of the stage
// that is. So a command looks only at what has changed since, and replaces nothing that it did not write.
//
// A row says three things: what stat(2) said (Signature), the content (hash and mode), and the stage's content that is
// the same (`staged`). If the directory's file is not what the row says, it was changed here; if the stage's is not, it
// has to be written out.
//
// Held in memory; commit() writes the changed rows to an SQLite database, all or nothing. A lost index loses no
// content: files are then compared with the stage. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sqlite.h"
#include "clone/signature.h"
#include "model/content_hash.h"
#include "model/manifest.h"

namespace playfs::clone {

enum class RowKind {
  file,
  symlink,
  directory,
  local_only,  ///< ignored, or not a valid name: its content is never looked at; the stage has only its name
  refused,     ///< published, but never written here: its content does not match its claim, or would be dangerous
};

struct Row {
  RowKind kind = RowKind::file;
  Signature seen;  ///< of files and links
  ContentHash hash;
  FileMode mode = FileMode::regular;
  std::string
      staged;  ///< StagedFile::key; of a local-only directory: the name in the stage that stands for its content
  /// A take-in was begun and not completed, so what the stage has there is unknown. For a directory, `staged` is then
  /// the name that was made in it, as for a local-only one.
  bool is_begun = false;

  bool operator==(const Row&) const = default;
  [[nodiscard]] bool has_content() const { return kind == RowKind::file || kind == RowKind::symlink; }
  /// It has never been taken in.
  [[nodiscard]] bool is_new() const { return is_begun && hash == ContentHash(); }
  /// False if the executable bit did not stick when the file was written (some file systems, a strict umask); the mode
  /// of the file then means nothing.
  [[nodiscard]] bool has_bits_of_mode() const {
    return kind != RowKind::file || (mode == FileMode::executable) == ((seen.mode & 0111) != 0);
  }
};

class Index {
 public:
  using Rows = std::map<std::string, Row, std::less<>>;

  /// Opens or creates the database at `path`. `corrupt`: remove it.
  static Result<Index> open(const std::string& path);

  [[nodiscard]] const Rows& rows() const { return rows_; }
  /// nullptr: none.
  [[nodiscard]] const Row* find(std::string_view path) const;
  void put(const std::string& path, Row row);
  void erase(const std::string& path);

  /// Rows whose times are no older than this may have changed unseen; see Signature::is_racy.
  [[nodiscard]] std::int64_t looked() const { return looked_; }
  /// REQUIRES: every row was looked at or written since then.
  void set_looked(std::int64_t time);
  /// Whether the stage may have content that the directory lacks.
  [[nodiscard]] bool is_behind() const { return is_behind_; }
  void set_behind(bool behind);

  /// Why the directory lacks content that the stage has, or has an older version of it.
  using LeftOut = std::map<std::string, std::string, std::less<>>;
  [[nodiscard]] const LeftOut& left_out() const { return left_out_; }
  /// "": it is not left out.
  void note_left_out(const std::string& path, const std::string& why);

  /// Says which stage (stage::identity_of_stage) the rows speak of. If that is another one, they say nothing: they are
  /// dropped, and every file is compared again. Returns whether they were kept.
  bool belongs_to(std::uint64_t stage);

  [[nodiscard]] Status commit();
  /// Makes what was committed safe from a power loss.
  [[nodiscard]] Status sync() { return database_.sync(); }

 private:
  explicit Index(Database database) : database_(std::move(database)) {}
  [[nodiscard]] Status load();
  [[nodiscard]] Status commit_left_out();
  [[nodiscard]] Status put_value(Statement& put, std::string_view key, std::int64_t value);

  Database database_;
  Rows rows_;
  std::set<std::string> changed_;  ///< paths whose rows are to be written or removed
  LeftOut left_out_;
  std::int64_t looked_ = 0;
  std::int64_t stage_ = 0;
  bool is_behind_ = true;
  bool values_changed_ = false;
  bool left_out_changed_ = false;
};

}  // namespace playfs::clone
