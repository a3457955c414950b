// The journal as a SQLite database: a row per publication, and one per chunk that it uploads.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/sqlite.h"
#include "publish/damaged_journal.h"
#include "publish/journal.h"
#include "publish/journal_rows.h"
#include "publish/journal_schema.h"
#include "publish/sent_file.h"

namespace playfs::publish {

namespace {

class JournalDatabase final : public JournalStorage {
 public:
  JournalDatabase(Database database, std::string path, std::int64_t most_known)
      : most_known_(most_known), path_(std::move(path)), database_(std::move(database)) {}

  Status write(const JournalChange& change) override {
    PLAYFS_CHECK(write_rows(change));
    // After the rows and before the request: a crash in between leaves rows that are ahead of this file, never behind
    // it.
    const Publication* row = change.publication;
    const bool is_to_be_sent = row && row->step == Step::posting && !row->body.empty();
    return is_to_be_sent ? write_sent(path_, {row->number, row->tx}) : Status();
  }

  Result<std::optional<Sent>> sent() override { return read_sent(path_); }
  Status forget_sent() override { return remove_sent(path_); }

  Result<std::optional<Publication>> front() override {
    return find(fmt::format("WHERE step <> {} ORDER BY number", static_cast<int>(Step::ended)));
  }
  Result<std::vector<Publication>> waiting() override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare(fmt::format("SELECT {} FROM publications WHERE step <> {} ORDER BY number", kColumns,
                                             static_cast<int>(Step::ended))));
    std::vector<Publication> publications;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return publications;
      PLAYFS_TRY(auto publication, read_publication(select));
      publication.body.clear();
      publications.push_back(std::move(publication));
    }
  }
  Result<std::optional<Publication>> last() override {
    return find(fmt::format("WHERE step = {} ORDER BY number DESC", static_cast<int>(Step::ended)));
  }

  Result<std::vector<Upload>> unsent(const Publication& publication, std::int64_t from, std::size_t most) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare(fmt::format("SELECT {} FROM uploads WHERE publication = ? AND number >= ? AND "
                                             "chunk = '' ORDER BY number LIMIT ?",
                                             kUploadColumns)));
    select.bind(1, publication.number).bind(2, from).bind(3, static_cast<std::int64_t>(most));
    std::vector<Upload> uploads;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return uploads;
      PLAYFS_TRY(Upload upload, read_upload(select));
      uploads.push_back(std::move(upload));
    }
  }

  Result<UploadTotals> totals(const Publication& publication) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare("SELECT count(*), coalesce(sum(text_size), 0), coalesce(sum(chunk <> ''), 0), "
                                 "coalesce(sum(CASE WHEN chunk <> '' THEN text_size END), 0) FROM uploads "
                                 "WHERE publication = ?"));
    select.bind(1, publication.number);
    PLAYFS_CHECK(select.step());
    return UploadTotals{static_cast<std::uint32_t>(select.integer(0)), static_cast<std::uint32_t>(select.integer(2)),
                        static_cast<std::uint64_t>(select.integer(1)), static_cast<std::uint64_t>(select.integer(3))};
  }

  Result<std::optional<KnownChunk>> known_chunk(const ContentHash& text) override {
    MutexLock lock(mutex_);
    if (!find_known_) {
      PLAYFS_TRY(find_known_,
                 database_.prepare("SELECT chunk, text_size, digest FROM known_chunks WHERE text_hash = ?"));
    }
    find_known_->bind(1, text.hex());
    PLAYFS_TRY(bool found, find_known_->step());
    if (!found) return std::optional<KnownChunk>();
    KnownChunk known{ChunkId(std::string(find_known_->text(0))), static_cast<std::uint64_t>(find_known_->integer(1))};
    bool is_whole = find_known_->text(2) == digest_of_known(text.hex(), find_known_->integer(1), known.id.text());
    find_known_->reset();
    return is_whole ? std::optional(std::move(known)) : std::nullopt;
  }

  Result<std::optional<KnownText>> known_text(const ChunkId& chunk) override {
    MutexLock lock(mutex_);
    if (!find_text_) {
      PLAYFS_TRY(find_text_,
                 database_.prepare("SELECT text_hash, text_size, digest FROM known_chunks WHERE chunk = ?"));
    }
    find_text_->bind(1, chunk.text());
    PLAYFS_TRY(bool found, find_text_->step());
    if (!found) return std::optional<KnownText>();
    auto hash = ContentHash::parse(find_text_->text(0));
    auto size = static_cast<std::uint64_t>(find_text_->integer(1));
    bool is_whole = find_text_->text(2) == digest_of_known(find_text_->text(0), find_text_->integer(1), chunk.text());
    find_text_->reset();
    if (!hash || !is_whole) return std::optional<KnownText>();
    return std::optional(KnownText{*hash, size});
  }

  Result<std::set<std::size_t>> known_sizes() override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select, database_.prepare("SELECT size FROM known_sizes"));
    std::set<std::size_t> sizes;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return sizes;
      sizes.insert(static_cast<std::size_t>(select.integer(0)));
    }
  }

  Result<std::map<std::string, std::string>> facts(const std::string& prefix) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select, database_.prepare("SELECT name, value, digest FROM facts WHERE name >= ? AND name < ?"));
    std::string end = prefix;
    ++end.back();
    select.bind(1, prefix).bind(2, end);
    std::map<std::string, std::string> facts;
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return facts;
      PLAYFS_CHECK(check_fact(select.text(0), select.text(1), select.text(2)));
      facts.emplace(select.text(0).substr(prefix.size()), select.text(1));
    }
  }

  Result<std::string> fact(const std::string& name) override {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select, database_.prepare("SELECT value, digest FROM facts WHERE name = ?"));
    select.bind(1, name);
    PLAYFS_TRY(bool found, select.step());
    if (!found) return std::string();
    PLAYFS_CHECK(check_fact(name, select.text(0), select.text(1)));
    return std::string(select.text(0));
  }

 private:
  Status write_rows(const JournalChange& change) {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto transaction, Transaction::begin(database_));
    if (change.publication) PLAYFS_CHECK(write_row(*change.publication, change.is_new));
    std::int64_t number = change.publication ? change.publication->number : 0;
    PLAYFS_CHECK(write_uploads(number, change.added, change.acknowledged));
    if (change.rekeyed) PLAYFS_CHECK(write_rekeyed(number, *change.rekeyed));
    PLAYFS_CHECK(write_known(change.acknowledged));
    PLAYFS_CHECK(write_known(change.known));
    PLAYFS_CHECK(forget_chunks(number, change.lost));
    for (const auto& [name, value] : change.facts) PLAYFS_CHECK(write_fact(name, value));
    if (change.is_last) PLAYFS_CHECK(drop_before(number));
    for (std::int64_t waiting : change.dropped) PLAYFS_CHECK(drop(waiting));
    return transaction.commit();
  }

  Status write_row(const Publication& publication, bool is_new) PLAYFS_REQUIRES(mutex_) {
    if (is_new) {
      PLAYFS_TRY(auto insert,
                 database_.prepare(
                     "INSERT INTO publications(tx, agent, message, step, may_merge, base, files_changed, digest) "
                     "VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
      return insert.bind(1, publication.tx)
          .bind(2, publication.agent)
          .bind(3, publication.message)
          .bind(4, static_cast<std::int64_t>(publication.step))
          .bind(5, std::int64_t{publication.may_merge})
          .bind(6, publication.base.text())
          .bind(7, std::int64_t{publication.files_changed})
          .bind(8, digest_of(publication))
          .run();
    }
    PLAYFS_TRY(auto update,
               database_.prepare(
                   "UPDATE publications SET step = ?, base = ?, files_changed = ?, key = ?, "
                   "body = ?, revision = ?, chunks = ?, writes = ?, ending = ?, error_code = ?, "
                   "error_message = ?, error_hint = ?, merged = ?, conflicts = ?, agent = ?, message = ?, digest = ? "
                   "WHERE number = ?"));
    PLAYFS_CHECK(update.bind(1, static_cast<std::int64_t>(publication.step))
                     .bind(2, publication.base.text())
                     .bind(3, std::int64_t{publication.files_changed})
                     .bind(4, publication.key)
                     .bind(5, publication.body)
                     .bind(6, publication.revision.text())
                     .bind(7, std::int64_t{publication.chunks})
                     .bind(8, std::int64_t{publication.writes})
                     .bind(9, static_cast<std::int64_t>(publication.ending))
                     .bind(10, publication.error_code)
                     .bind(11, publication.error_message)
                     .bind(12, publication.error_hint)
                     .bind(13, publication.merged.text())
                     .bind(14, joined(publication.conflicts))
                     .bind(15, publication.agent)
                     .bind(16, publication.message)
                     .bind(17, digest_of(publication))
                     .bind(18, publication.number)
                     .run());
    if (database_.rows_changed() != 1) return fail(ErrorCode::internal, "the journal lost a publication");
    return {};
  }

  Status write_uploads(std::int64_t publication, const std::vector<Upload>& added,
                       const std::vector<Upload>& acknowledged) PLAYFS_REQUIRES(mutex_) {
    if (!added.empty()) {
      PLAYFS_TRY(auto insert,
                 database_.prepare("INSERT INTO uploads(publication, number, key, body, text_hash, text_size, path, "
                                   "revision, sequence, is_base64, text_offset, body_hash, digest) "
                                   "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
      for (const auto& upload : added) {
        const Recipe recipe = upload.recipe.value_or(Recipe());
        PLAYFS_CHECK(insert.bind(1, publication)
                         .bind(2, upload.number)
                         .bind(3, upload.key)
                         .bind(4, upload.recipe ? std::string_view() : std::string_view(upload.body))
                         .bind(5, upload.text_hash.hex())
                         .bind(6, static_cast<std::int64_t>(upload.text_size))
                         .bind(7, recipe.path)
                         .bind(8, recipe.revision.text())
                         .bind(9, static_cast<std::int64_t>(recipe.sequence))
                         .bind(10, std::int64_t{recipe.encoding == ContentEncoding::base64})
                         .bind(11, static_cast<std::int64_t>(recipe.offset))
                         .bind(12, upload.recipe ? recipe.body_hash.hex() : std::string())
                         .bind(13, digest_of(publication, upload))
                         .run());
      }
    }
    if (!acknowledged.empty()) {
      PLAYFS_TRY(auto update, database_.prepare("UPDATE uploads SET chunk = ? WHERE publication = ? AND number = ?"));
      for (const auto& upload : acknowledged)
        PLAYFS_CHECK(update.bind(1, upload.chunk.text()).bind(2, publication).bind(3, upload.number).run());
    }
    return {};
  }

  Status write_rekeyed(std::int64_t publication, const Upload& upload) PLAYFS_REQUIRES(mutex_) {
    PLAYFS_TRY(auto update, database_.prepare("UPDATE uploads SET key = ?, body_hash = ?, digest = ? "
                                              "WHERE publication = ? AND number = ?"));
    return update.bind(1, upload.key)
        .bind(2, upload.recipe ? upload.recipe->body_hash.hex() : std::string())
        .bind(3, digest_of(publication, upload))
        .bind(4, publication)
        .bind(5, upload.number)
        .run();
  }

  Status write_known(const std::vector<Upload>& uploads) PLAYFS_REQUIRES(mutex_) {
    if (uploads.empty()) return {};
    PLAYFS_TRY(auto size, database_.prepare("INSERT OR IGNORE INTO known_sizes(size) VALUES(?)"));
    for (const auto& upload : uploads) PLAYFS_CHECK(size.bind(1, static_cast<std::int64_t>(upload.text_size)).run());
    // A service that went back to an older state may reuse an id; its previous text is nowhere then.
    PLAYFS_TRY(auto before, database_.prepare("DELETE FROM known_chunks WHERE chunk = ? AND text_hash <> ?"));
    PLAYFS_TRY(auto known,
               database_.prepare(
                   "INSERT OR REPLACE INTO known_chunks(text_hash, text_size, chunk, digest) VALUES(?, ?, ?, ?)"));
    for (const auto& upload : uploads) {
      PLAYFS_CHECK(before.bind(1, upload.chunk.text()).bind(2, upload.text_hash.hex()).run());
      PLAYFS_CHECK(known.bind(1, upload.text_hash.hex())
                       .bind(2, static_cast<std::int64_t>(upload.text_size))
                       .bind(3, upload.chunk.text())
                       .bind(4, digest_of_known(upload.text_hash.hex(), static_cast<std::int64_t>(upload.text_size),
                                                upload.chunk.text()))
                       .run());
    }
    PLAYFS_TRY(auto oldest, database_.prepare("DELETE FROM known_chunks WHERE number <= "
                                              "(SELECT max(number) FROM known_chunks) - ?"));
    return oldest.bind(1, most_known_).run();
  }

  /// Forgets lost chunks. Those that this publication uploaded are sent again, with a new key.
  Status forget_chunks(std::int64_t publication, const std::vector<LostChunk>& lost) PLAYFS_REQUIRES(mutex_) {
    if (lost.empty()) return {};
    PLAYFS_TRY(auto known, database_.prepare("DELETE FROM known_chunks WHERE chunk = ?"));
    PLAYFS_TRY(auto uploads, database_.prepare(fmt::format("SELECT {} FROM uploads WHERE publication = ? AND chunk = ?",
                                                           kUploadColumns)));
    PLAYFS_TRY(auto update, database_.prepare("UPDATE uploads SET chunk = '', key = ?, digest = ? "
                                              "WHERE publication = ? AND number = ?"));
    for (const auto& [chunk, fresh_key] : lost) {
      PLAYFS_CHECK(known.bind(1, chunk.text()).run());
      uploads.bind(1, publication).bind(2, chunk.text());
      std::vector<Upload> again;
      for (;;) {
        PLAYFS_TRY(bool found, uploads.step());
        if (!found) break;
        PLAYFS_TRY(Upload upload, read_upload(uploads));
        again.push_back(std::move(upload));
      }
      for (Upload& upload : again) {
        upload.key = fresh_key;
        PLAYFS_CHECK(update.bind(1, upload.key)
                         .bind(2, digest_of(publication, upload))
                         .bind(3, publication)
                         .bind(4, upload.number)
                         .run());
      }
    }
    return {};
  }

  Status write_fact(const std::string& name, const std::string& value) PLAYFS_REQUIRES(mutex_) {
    if (value.empty()) {
      PLAYFS_TRY(auto remove, database_.prepare("DELETE FROM facts WHERE name = ?"));
      return remove.bind(1, name).run();
    }
    // A name keeps its number, so that updating one fact often does not make the others old.
    PLAYFS_TRY(auto statement,
               database_.prepare("INSERT INTO facts(name, value, digest) VALUES(?, ?, ?) ON CONFLICT(name) "
                                 "DO UPDATE SET value = excluded.value, digest = excluded.digest"));
    PLAYFS_CHECK(statement.bind(1, name).bind(2, value).bind(3, digest_of_fact(name, value)).run());
    PLAYFS_TRY(auto oldest, database_.prepare("DELETE FROM facts WHERE name LIKE 'announced/%' AND number <= "
                                              "(SELECT max(number) FROM facts) - ?"));
    return oldest.bind(1, kMostFacts).run();
  }

  Status drop_before(std::int64_t publication) PLAYFS_REQUIRES(mutex_) {
    PLAYFS_TRY(auto uploads, database_.prepare("DELETE FROM uploads WHERE publication = ?"));
    PLAYFS_CHECK(uploads.bind(1, publication).run());
    PLAYFS_TRY(auto earlier, database_.prepare("DELETE FROM publications WHERE number < ?"));
    return earlier.bind(1, publication).run();
  }

  /// For a publication that has not begun and so has no other rows.
  Status drop(std::int64_t publication) PLAYFS_REQUIRES(mutex_) {
    PLAYFS_TRY(auto row, database_.prepare("DELETE FROM publications WHERE number = ?"));
    return row.bind(1, publication).run();
  }

  Result<std::optional<Publication>> find(std::string_view condition) {
    MutexLock lock(mutex_);
    PLAYFS_TRY(auto select,
               database_.prepare(fmt::format("SELECT {} FROM publications {} LIMIT 1", kColumns, condition)));
    PLAYFS_TRY(bool found, select.step());
    if (!found) return std::optional<Publication>();
    PLAYFS_TRY(auto publication, read_publication(select));
    return std::optional(std::move(publication));
  }

  const std::int64_t most_known_;
  const std::string path_;
  Mutex mutex_;
  Database database_ PLAYFS_GUARDED_BY(mutex_);
  // A plan runs these thousands of times.
  std::optional<Statement> find_known_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Statement> find_text_ PLAYFS_GUARDED_BY(mutex_);
};

/// Checks all pages, and that the indices match the tables.
Status check_pages(Database& database) {
  for (const char* pragma : {"quick_check(1)", "integrity_check(publications)", "integrity_check(facts)"}) {
    PLAYFS_TRY(auto check, database.prepare(std::string("PRAGMA ") + pragma));
    PLAYFS_TRY(bool found, check.step());
    if (found && check.text(0) != "ok")
      return fail(ErrorCode::corrupt, "publish.db is damaged: " + std::string(check.text(0)));
  }
  return {};
}

/// A correct statement fails if a table is missing or has other columns. SQLite has no specific code for that, but it
/// is not an error of the disk.
Status as_damage(Status status) {
  bool is_of_schema = !status && status.error().code == ErrorCode::io &&
                      status.error().message.find("disk I/O error") == std::string::npos;
  if (!is_of_schema) return status;
  return fail(ErrorCode::corrupt, "publish.db is damaged: " + status.error().message);
}

}  // namespace

Result<std::unique_ptr<JournalStorage>> open_journal_database(const std::string& directory, std::int64_t most_known) {
  PLAYFS_CHECK(make_private_directory(directory));
  const std::string path = directory + "/publish.db";
  PLAYFS_TRY(auto database, Database::open(path, Database::Durability::full));
  PLAYFS_CHECK(as_damage(bring_up_to_date(database, path)));
  PLAYFS_CHECK(as_damage(check_pages(database)));
  PLAYFS_CHECK(as_damage(check_rows(database)));
  return std::make_unique<JournalDatabase>(std::move(database), path, most_known);
}

Result<std::string> set_journal_aside(const std::string& directory) {
  std::string folder;
  for (int number = 1; folder.empty(); ++number) {
    folder = fmt::format("{}/{}{}", directory, kDamagedJournal, number);
    if (mkdir(folder.c_str(), 0700) == 0) break;
    if (errno != EEXIST) return fail(error_from_errno(errno, "create " + folder));
    folder.clear();
  }
  // The database first: without its log it may be intact but older. A log that remains alone is detected as damage.
  for (const char* part : {"", "-wal", "-shm"}) {
    std::string name = std::string("/publish.db") + part;
    if (rename((directory + name).c_str(), (folder + name).c_str()) != 0 && errno != ENOENT)
      return fail(error_from_errno(errno, "move " + directory + name));
  }
  PLAYFS_CHECK(sync_directory(folder));
  PLAYFS_CHECK(sync_directory(directory));
  return folder;
}

}  // namespace playfs::publish
