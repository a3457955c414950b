// A store that also measures how long another one takes. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/histogram.h"
#include "service/store.h"

namespace playfs::service {

/// What the metrics tell of a store.
class StoreTimes {
 public:
  enum Operation { insert, replace, get, list, changes, other };

  void add(Operation operation, double seconds, bool failed);
  /// In Prometheus' text format.
  void print(std::string& out) const;

 private:
  static constexpr std::array<const char*, 6> kNames = {"insert", "replace", "get", "list", "changes", "other"};
  static constexpr std::array<double, 10> kSeconds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                                      0.005,  0.025,   0.1,    0.5,   2.5};
  std::array<Histogram<10>, kNames.size()> times_ = {Histogram<10>(kSeconds), Histogram<10>(kSeconds),
                                                     Histogram<10>(kSeconds), Histogram<10>(kSeconds),
                                                     Histogram<10>(kSeconds), Histogram<10>(kSeconds)};
  std::array<std::atomic<std::uint64_t>, kNames.size()> failures_{};
};

class MeasuredStore final : public Store {
 public:
  /// The arguments must outlive it.
  MeasuredStore(Store& store, StoreTimes& times) : store_(store), times_(times) {}

  Result<StoredRecord> insert(const NewRecord& record) override;
  Result<std::optional<StoredRecord>> created_by(std::string_view request_key) override;
  Result<StoredRecord> get(std::string_view collection, std::string_view id) override;
  Result<Page> list(std::string_view collection, std::size_t limit, Position before) override;
  Result<Page> list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                          Position before) override;
  Result<std::optional<StoredRecord>> replace(std::string_view collection, const StoredRecord& read, Contents contents,
                                              const std::optional<Charge>& charge) override;
  Result<StoredRecord> set_status(std::string_view collection, std::string_view id, std::string_view status) override;
  Status try_to_write() override;
  Result<std::vector<Change>> changes(Position after, std::size_t limit) override;
  Result<std::optional<Change>> last_change(Position most) override;
  Result<Position> newest_change() override;
  [[nodiscard]] const std::string& site_id() const override { return store_.site_id(); }

 private:
  template <class Call>
  auto measured(StoreTimes::Operation operation, Call call);

  Store& store_;
  StoreTimes& times_;
};

}  // namespace playfs::service
