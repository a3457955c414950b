// Counts values in ranges, and prints them in Prometheus' text format. Thread-safe, without a lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace playfs {

/// `limits`: the upper ends of the ranges, ascending; one more range has no end.
template <std::size_t N>
class Histogram {
 public:
  explicit Histogram(const std::array<double, N>& limits) : limits_(&limits) {}

  void add(double value) {
    const auto range = std::lower_bound(limits_->begin(), limits_->end(), value) - limits_->begin();
    counts_[static_cast<std::size_t>(range)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  /// `label` as in `route="page"`. A scrape may see a value's count before its sum.
  void print(std::string& out, std::string_view name, std::string_view label) const {
    auto add = std::back_inserter(out);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      total += counts_[i].load(std::memory_order_relaxed);
      const std::string limit = i < N ? fmt::format("{}", (*limits_)[i]) : "+Inf";
      fmt::format_to(add, "{}_bucket{{{},le=\"{}\"}} {}\n", name, label, limit, total);
    }
    fmt::format_to(add, "{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, label, sum_.load(std::memory_order_relaxed),
                   total);
  }

 private:
  const std::array<double, N>* const limits_;  // static
  std::array<std::atomic<std::uint64_t>, N + 1> counts_{};
  std::atomic<double> sum_{0};
};

/// The first lines of a metric.
inline void print_metric_head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace playfs
