#include "publish/journal_rows.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace playfs::publish {

namespace {

std::string digest_of(std::initializer_list<std::string> columns) {
  ContentHasher hasher;
  for (const std::string& column : columns) {
    hasher.update(std::to_string(column.size()) + ":");
    hasher.update(column);
  }
  return hasher.finish().hex();
}

std::vector<std::string> paths_of(std::string_view column) {
  std::vector<std::string> paths;
  if (column.empty()) return paths;
  for (std::size_t at = 0; at <= column.size();) {
    const auto end = std::min(column.find('\0', at), column.size());
    paths.emplace_back(column.substr(at, end - at));
    at = end + 1;
  }
  return paths;
}

Error damaged(std::string_view table) {
  return {ErrorCode::corrupt, fmt::format("publish.db is damaged: a row in {} was altered", table),
          "unmount and mount again: this sets the journal aside and looks for unfinished commits at the service"};
}

Publication publication_of(const Statement& row) {
  Publication publication;
  publication.number = row.integer(0);
  publication.tx = row.text(1);
  publication.agent = row.text(2);
  publication.message = row.text(3);
  publication.step = static_cast<Step>(row.integer(4));
  publication.base = RevisionId(std::string(row.text(5)));
  publication.files_changed = static_cast<std::uint32_t>(row.integer(6));
  publication.key = row.text(7);
  publication.body = row.text(8);
  publication.revision = RevisionId(std::string(row.text(9)));
  publication.chunks = static_cast<std::uint32_t>(row.integer(10));
  publication.writes = static_cast<std::uint32_t>(row.integer(11));
  publication.ending = static_cast<Ending>(row.integer(12));
  publication.error_code = row.text(13);
  publication.error_message = row.text(14);
  publication.error_hint = row.text(15);
  publication.merged = RevisionId(std::string(row.text(16)));
  publication.conflicts = paths_of(row.text(17));
  publication.may_merge = row.integer(18) != 0;
  return publication;
}

Upload upload_of(const Statement& row) {
  Upload upload{row.integer(0),
                std::string(row.text(1)),
                std::string(row.text(2)),
                ContentHash::parse(row.text(3)).value_or(ContentHash()),
                static_cast<std::uint64_t>(row.integer(4)),
                ChunkId(std::string(row.text(5)))};
  if (auto body_hash = ContentHash::parse(row.text(11)))
    upload.recipe = {std::string(row.text(6)),
                     RevisionId(std::string(row.text(7))),
                     static_cast<std::uint64_t>(row.integer(8)),
                     row.integer(9) != 0 ? ContentEncoding::base64 : ContentEncoding::text,
                     static_cast<std::uint64_t>(row.integer(10)),
                     *body_hash};
  return upload;
}

}  // namespace

/// Separated by NUL, which no shown path contains.
std::string joined(const std::vector<std::string>& paths) {
  return fmt::format("{}", fmt::join(paths, std::string_view("\0", 1)));
}

std::string digest_of(const Publication& row) {
  return digest_of({row.tx, row.agent, row.message, std::to_string(static_cast<int>(row.step)), row.base.text(),
                    std::to_string(row.files_changed), row.key, row.body, row.revision.text(),
                    std::to_string(row.chunks), std::to_string(row.writes),
                    std::to_string(static_cast<int>(row.ending)), row.error_code, row.error_message, row.error_hint,
                    row.merged.text(), joined(row.conflicts), std::to_string(static_cast<int>(row.may_merge))});
}

std::string digest_of(std::int64_t publication, const Upload& upload) {
  const Recipe recipe = upload.recipe.value_or(Recipe());
  return digest_of({std::to_string(publication), std::to_string(upload.number), upload.key,
                    upload.recipe ? std::string() : upload.body, upload.text_hash.hex(),
                    std::to_string(upload.text_size), recipe.path, recipe.revision.text(),
                    std::to_string(recipe.sequence), std::to_string(static_cast<int>(recipe.encoding)),
                    std::to_string(recipe.offset), upload.recipe ? recipe.body_hash.hex() : std::string()});
}

std::string digest_of_known(std::string_view text_hash, std::int64_t text_size, std::string_view chunk) {
  return digest_of({std::string(text_hash), std::to_string(text_size), std::string(chunk)});
}

std::string digest_of_fact(std::string_view name, std::string_view value) {
  return digest_of({std::string(name), std::string(value)});
}

Result<Publication> read_publication(const Statement& row) {
  Publication publication = publication_of(row);
  if (row.text(19) != digest_of(publication)) return fail(damaged("publications"));
  return publication;
}

Result<Upload> read_upload(const Statement& row) {
  Upload upload = upload_of(row);
  if (row.text(12) != digest_of(row.integer(13), upload)) return fail(damaged("uploads"));
  return upload;
}

Status check_fact(std::string_view name, std::string_view value, std::string_view digest) {
  if (digest != digest_of_fact(name, value)) return fail(damaged("facts"));
  return {};
}

Status write_digests(Database& database) {
  auto write = [&](const std::string& table, const std::string& columns, const std::string& row,
                   const std::function<std::string(const Statement&)>& digest,
                   std::initializer_list<int> key) -> Status {
    PLAYFS_TRY(auto select, database.prepare("SELECT " + columns + " FROM " + table));
    PLAYFS_TRY(auto update, database.prepare("UPDATE " + table + " SET digest = ? WHERE " + row));
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return {};
      update.bind(1, digest(select));
      int index = 1;
      for (int column : key) update.bind(++index, select.integer(column));
      PLAYFS_CHECK(update.run());
    }
  };
  PLAYFS_CHECK(write("publications", kColumns, "number = ?",
                     [](const Statement& row) { return digest_of(publication_of(row)); }, {0}));
  PLAYFS_CHECK(write("uploads", kUploadColumns, "publication = ? AND number = ?",
                     [](const Statement& row) { return digest_of(row.integer(13), upload_of(row)); }, {13, 0}));
  PLAYFS_CHECK(write("known_chunks", "number, text_hash, text_size, chunk", "number = ?",
                     [](const Statement& row) { return digest_of_known(row.text(1), row.integer(2), row.text(3)); },
                     {0}));
  return write("facts", "number, name, value", "number = ?",
               [](const Statement& row) { return digest_of_fact(row.text(1), row.text(2)); }, {0});
}

Status check_rows(Database& database) {
  auto check = [&](const std::string& table, const std::string& columns,
                   const std::function<Status(const Statement&)>& check_row) -> Status {
    PLAYFS_TRY(auto select, database.prepare("SELECT " + columns + " FROM " + table));
    for (;;) {
      PLAYFS_TRY(bool found, select.step());
      if (!found) return {};
      PLAYFS_CHECK(check_row(select));
    }
  };
  PLAYFS_CHECK(check("publications", kColumns, [](const Statement& row) -> Status {
    PLAYFS_TRY([[maybe_unused]] auto publication, read_publication(row));
    return {};
  }));
  PLAYFS_CHECK(check("uploads", kUploadColumns, [](const Statement& row) -> Status {
    PLAYFS_TRY([[maybe_unused]] auto upload, read_upload(row));
    return {};
  }));
  return check("facts", "name, value, digest",
               [](const Statement& row) { return check_fact(row.text(0), row.text(1), row.text(2)); });
}

}  // namespace playfs::publish
