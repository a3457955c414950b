#include "app/commands/serve_copy.h"

#include <chrono>
#include <memory>
#include <utility>

#include "app/shown_progress.h"
#include "base/fd.h"
#include "service/postgres_rows.h"
#include "service/sqlite_rows.h"
#include "service/store_copy.h"

namespace playfs::app {

namespace {

constexpr std::chrono::milliseconds kShowCopiedEvery{200};

Result<std::unique_ptr<service::StoredRows>> open_rows(const StorePlace& place) {
  return place.is_database() ? service::open_postgres_rows(place.database) : service::open_sqlite_rows(place.file());
}

/// Creates what is missing, as an unfinished copy of that site.
Result<std::unique_ptr<service::StoredRows>> open_copy(const StorePlace& place, const std::string& site_id) {
  if (place.is_database()) return service::open_postgres_copy(place.database, site_id);
  const std::string file = place.file();
  if (file != place.directory) PLAYFS_CHECK(make_private_directory(place.directory));
  return service::open_sqlite_copy(file, site_id);
}

std::string words_for_copy(const service::CopyProgress& progress) {
  const std::string part = std::to_string(progress.position) + " of " + std::to_string(progress.newest);
  return progress.is_closed ? "Comparing all of it, closed for writing: " + part : "Copying records: " + part;
}

JsonObject document_of(const service::CopiedStore& copied, const StorePlace& from, const StorePlace& to) {
  JsonObject document{{"from", from.name()}, {"to", to.name()}, {"already_copied", !copied.is_new}};
  if (!copied.is_new) return document;
  for (const auto& [name, count] : {std::pair("records", copied.records), std::pair("other_rows", copied.others),
                                    std::pair("rows_changed", copied.changed)})
    document.append(name, static_cast<std::int64_t>(count));
  document.append("sha256", copied.hash);
  return document;
}

}  // namespace

Result<ExitCode> copy_playground(CommandContext& context, const std::string& from, const std::string& to) {
  PLAYFS_TRY(const StorePlace source, store_place(context, from));
  PLAYFS_TRY(const StorePlace target, store_place(context, to));
  PLAYFS_TRY(auto from_rows, open_rows(source));
  PLAYFS_TRY(const service::StoredSite site, from_rows->site());
  PLAYFS_TRY(auto to_rows, open_copy(target, site.id));
  service::CopyProgress progress;
  Result<service::CopiedStore> copied;
  {
    ShownProgress shown(context.out, kShowCopiedEvery, [&progress] { return words_for_copy(progress); });
    copied = service::copy_store(*from_rows, *to_rows, progress);
  }
  if (!copied) return fail(std::move(copied).error());
  if (copied->is_new)
    context.out.note("Copied " + std::to_string(copied->records) + " records from " + source.name() + " to " +
                     target.name() + " and compared all of them; SHA-256 " + copied->hash + ".");
  else context.out.note(target.name() + " has been copied already.");
  context.out.note("Serve " + target.name() + " now. " + source.name() + " can only be read.");
  context.out.document(document_of(*copied, source, target));
  return ExitCode::done;
}

Result<ExitCode> reopen_playground(CommandContext& context, const StorePlace& place) {
  PLAYFS_TRY(auto rows, open_rows(place));
  PLAYFS_CHECK(service::reopen_store(*rows));
  context.out.note(place.name() + " can be written again. A copy of it goes on without what is written here.");
  context.out.document(JsonObject{{"store", place.name()}});
  return ExitCode::done;
}

}  // namespace playfs::app
