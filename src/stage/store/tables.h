// The stage's database: its schema, and one function per statement, no decisions.
//
// It holds what was checkpointed from the operations log, and is read only when a stage is opened. Single-threaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sqlite.h"
#include "stage/store/row_changes.h"

namespace playfs::stage {

class Tables {
 public:
  /// What the database knows about the operations log.
  struct LogState {
    std::uint64_t stage_id = 0;      ///< random, drawn when the database was created
    std::uint64_t checkpointed = 0;  ///< number of the last record in the database
  };

  /// Creates the schema in a new database, and upgrades an older one. `not_supported` if a newer version wrote it;
  /// `corrupt` if it is new and `may_create` is false because there are files of an earlier database.
  static Result<Tables> open(const std::string& path, bool may_create);

  [[nodiscard]] Result<LogState> log_state();
  /// Runs `apply` in one transaction that also notes `checkpointed` as the last record in the database.
  template <class Apply>
  [[nodiscard]] Status checkpoint(std::uint64_t checkpointed, const Apply& apply) {
    PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
    PLAYFS_CHECK(apply());
    PLAYFS_CHECK(put_checkpointed_.bind(1, static_cast<std::int64_t>(checkpointed)).run());
    return transaction.commit();
  }
  [[nodiscard]] Status apply(const RowChange& change);
  /// Makes committed changes safe from a power loss.
  [[nodiscard]] Status sync() { return database_.sync(); }
  /// Brings SQLite's log into the database and frees its space.
  [[nodiscard]] Status empty_log() { return database_.execute("PRAGMA wal_checkpoint(TRUNCATE)"); }

  [[nodiscard]] Result<std::vector<InodeRow>> inodes();
  [[nodiscard]] Result<std::vector<EntryRow>> entries();
  [[nodiscard]] Result<std::vector<RescuedRow>> rescued();
  [[nodiscard]] Result<std::optional<std::string>> value(std::string_view key);
  [[nodiscard]] Result<std::vector<std::pair<std::string, WallTime>>> times();
  [[nodiscard]] Result<std::vector<FrozenFile>> pending();
  [[nodiscard]] Result<std::vector<std::string>> pending_deletions();
  /// Spool files that lost the row that named them and may still exist. Another row may reference one.
  [[nodiscard]] Result<std::vector<std::uint64_t>> given_up();
  [[nodiscard]] Result<std::vector<ReplacementRow>> replacements();
  /// Includes spool files that no row references any more.
  [[nodiscard]] Result<std::vector<SizeRow>> sizes();
  [[nodiscard]] Status forget_sizes(const std::vector<std::uint64_t>& numbers);
  /// These files were removed or are referenced again.
  [[nodiscard]] Status forget_given_up(const std::vector<std::uint64_t>& numbers);
  [[nodiscard]] Status check_integrity() { return database_.check_integrity(); }

 private:
  explicit Tables(Database database) : database_(std::move(database)) {}
  [[nodiscard]] Status create_schema();
  [[nodiscard]] Status upgrade(std::int64_t from);
  [[nodiscard]] Status prepare();

  // One per kind of change.
  [[nodiscard]] Status run(const PutInode& put);
  [[nodiscard]] Status run(const DropInode& drop);
  [[nodiscard]] Status run(const PutEntry& put);
  [[nodiscard]] Status run(const DropEntry& drop);
  [[nodiscard]] Status run(const DropWhiteouts& drop);
  [[nodiscard]] Status run(const Touch& touch);
  [[nodiscard]] Status run(const ClearOpaque& clear);
  [[nodiscard]] Status run(const PutRescued& put);
  [[nodiscard]] Status run(const DropUnusedRescued& drop);
  [[nodiscard]] Status run(const PutValue& put);
  [[nodiscard]] Status run(const DropValue& drop);
  [[nodiscard]] Status run(const PutTime& put);
  [[nodiscard]] Status run(const DropTime& drop);
  [[nodiscard]] Status run(const PutPending& put);
  [[nodiscard]] Status run(const PutPendingDeletion& put);
  [[nodiscard]] Status run(const DropPending& drop);
  [[nodiscard]] Status run(const PutReplacement& put);
  [[nodiscard]] Status run(const DropReplacement& drop);
  [[nodiscard]] Status run(const PutSize& put);

  Database database_;
  Statement put_checkpointed_;
  Statement give_up_, give_up_other_;
  Statement put_inode_, drop_inode_, put_entry_, drop_entry_, drop_whiteouts_, touch_, put_size_;
};

}  // namespace playfs::stage
