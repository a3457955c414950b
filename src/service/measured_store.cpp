#include "service/measured_store.h"

#include <chrono>
#include <utility>

namespace playfs::service {

namespace {

/// Whether the error is the store's fault, rather than the request's.
bool is_failure(const Error& error) {
  return error.code != ErrorCode::not_found && error.code != ErrorCode::rate_limited;
}

}  // namespace

void StoreTimes::add(Operation operation, double seconds, bool failed) {
  times_[operation].add(seconds);
  if (failed) failures_[operation].fetch_add(1, std::memory_order_relaxed);
}

void StoreTimes::print(std::string& out) const {
  constexpr std::string_view seconds = "playfs_store_seconds";
  print_metric_head(out, seconds, "histogram", "Time that the store takes, waits for other writers included.");
  for (std::size_t i = 0; i < kNames.size(); ++i)
    times_[i].print(out, seconds, fmt::format("operation=\"{}\"", kNames[i]));
  constexpr std::string_view failures = "playfs_store_failures_total";
  print_metric_head(out, failures, "counter", "What the store could not do.");
  for (std::size_t i = 0; i < kNames.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{{operation=\"{}\"}} {}\n", failures, kNames[i],
                   failures_[i].load(std::memory_order_relaxed));
}

template <class Call>
auto MeasuredStore::measured(StoreTimes::Operation operation, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = call();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  times_.add(operation, took.count(), !result && is_failure(result.error()));
  return result;
}

Result<StoredRecord> MeasuredStore::insert(const NewRecord& record) {
  return measured(StoreTimes::insert, [&] { return store_.insert(record); });
}

Result<std::optional<StoredRecord>> MeasuredStore::created_by(std::string_view request_key) {
  return measured(StoreTimes::get, [&] { return store_.created_by(request_key); });
}

Result<StoredRecord> MeasuredStore::get(std::string_view collection, std::string_view id) {
  return measured(StoreTimes::get, [&] { return store_.get(collection, id); });
}

Result<Page> MeasuredStore::list(std::string_view collection, std::size_t limit, Position before) {
  return measured(StoreTimes::list, [&] { return store_.list(collection, limit, before); });
}

Result<Page> MeasuredStore::list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                                       Position before) {
  return measured(StoreTimes::list, [&] { return store_.list_parts(collection, whole, limit, before); });
}

Result<std::optional<StoredRecord>> MeasuredStore::replace(std::string_view collection, const StoredRecord& read,
                                                           Contents contents, const std::optional<Charge>& charge) {
  return measured(StoreTimes::replace, [&] { return store_.replace(collection, read, std::move(contents), charge); });
}

Result<StoredRecord> MeasuredStore::set_status(std::string_view collection, std::string_view id,
                                               std::string_view status) {
  return measured(StoreTimes::replace, [&] { return store_.set_status(collection, id, status); });
}

Status MeasuredStore::try_to_write() {
  return measured(StoreTimes::other, [&] { return store_.try_to_write(); });
}

Result<std::vector<Change>> MeasuredStore::changes(Position after, std::size_t limit) {
  return measured(StoreTimes::changes, [&] { return store_.changes(after, limit); });
}

Result<std::optional<Change>> MeasuredStore::last_change(Position most) {
  return measured(StoreTimes::changes, [&] { return store_.last_change(most); });
}

Result<Position> MeasuredStore::newest_change() {
  return measured(StoreTimes::changes, [&] { return store_.newest_change(); });
}

}  // namespace playfs::service
