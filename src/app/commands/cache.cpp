// playfs cache: shows, verifies or clears the cache on disk. Needs no service.
#include <fmt/format.h>

#include "app/commands/commands.h"
#include "cache/object_eviction.h"
#include "cache/object_store.h"
#include "cache/record_index.h"
#include "runtime/cache_limits.h"

namespace playfs::app {

namespace {

std::string human(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

Result<ExitCode> stat(CommandContext& context) {
  const runtime::CacheLimits limits = runtime::cache_limits(context.settings);
  PLAYFS_TRY(const auto objects, cache::measure_objects(context.places.cache_objects()));
  PLAYFS_TRY(auto index, cache::RecordIndex::open(context.places.cache));
  const cache::RecordsUsage records = index->usage();

  std::uint64_t count = 0;
  Json::Array collections;
  for (const auto& item : records.records) {
    count += item.records;
    collections.push_back(JsonObject{{"site", item.site}, {"collection", item.collection}, {"records", item.records}});
  }
  context.out.line(context.places.cache);
  context.out.line(fmt::format("  {} of {}", human(objects.bytes + records.bytes), human(limits.total)));
  context.out.line(fmt::format("  contents  {:>9}  {}", human(objects.bytes), objects.objects));
  context.out.line(fmt::format("  records   {:>9}  {}", human(records.bytes), count));
  if (objects.damaged > 0) context.out.line(fmt::format("  damaged, set aside: {}", objects.damaged));
  context.out.document(JsonObject{{"directory", context.places.cache},
                                  {"limit_bytes", limits.total},
                                  {"bytes", objects.bytes + records.bytes},
                                  {"objects", JsonObject{{"count", objects.objects},
                                                         {"bytes", objects.bytes},
                                                         {"limit_bytes", limits.objects},
                                                         {"damaged", objects.damaged}}},
                                  {"records", JsonObject{{"count", count},
                                                         {"bytes", records.bytes},
                                                         {"limit_bytes", limits.records},
                                                         {"collections", std::move(collections)}}}});
  return ExitCode::done;
}

Result<ExitCode> verify(CommandContext& context) {
  PLAYFS_TRY(auto store, cache::ObjectStore::open(context.places.cache_objects()));
  std::uint64_t checked = 0, unreadable = 0;
  Json::Array damaged;
  PLAYFS_CHECK(cache::visit_objects(context.places.cache_objects(), [&](const ContentHash& hash) {
    ++checked;
    auto sound = store->verify(hash);
    if (!sound) ++unreadable;
    else if (!*sound) damaged.emplace_back(hash.hex());
    return true;
  }));
  PLAYFS_TRY(auto index, cache::RecordIndex::open(context.places.cache));
  const cache::RecordsVerified records = index->verify();

  const bool sound = damaged.empty() && unreadable == 0 && records.sound && records.damaged == 0;
  context.out.line(fmt::format("contents: {} checked, {} damaged, {} unreadable", checked, damaged.size(), unreadable));
  context.out.line(records.sound ? fmt::format("records: {} checked, {} damaged", records.checked, records.damaged)
                                 : "records: the database was damaged and has been removed");
  if (!sound) context.out.note("Damaged data was set aside, and is fetched again when needed.");
  context.out.document(JsonObject{
      {"sound", sound},
      {"objects", JsonObject{{"checked", checked}, {"damaged", damaged}, {"unreadable", unreadable}}},
      {"records",
       JsonObject{{"checked", records.checked}, {"damaged", records.damaged}, {"database_sound", records.sound}}}});
  return sound ? ExitCode::done : ExitCode::failed;
}

Result<ExitCode> clear(CommandContext& context) {
  PLAYFS_TRY(const auto objects, cache::measure_objects(context.places.cache_objects()));
  PLAYFS_CHECK(cache::clear_objects(context.places.cache_objects()));
  cache::RecordIndex::clear(context.places.cache);
  context.out.note("Removed " + human(objects.bytes) +
                   " of contents, and all records. Staged changes are not affected.");
  context.out.document(JsonObject{{"removed_objects", objects.objects}, {"removed_bytes", objects.bytes}});
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> cache_care(CommandContext& context, const CacheArguments& arguments) {
  if (arguments.action == "verify") return verify(context);
  if (arguments.action == "clear") return clear(context);
  return stat(context);
}

}  // namespace playfs::app
