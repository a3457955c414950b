// Counters for `.playfs/metrics`. Thread-safe; relaxed atomics, since nothing depends on their order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace playfs::vfs {

enum class Counted {
  lookup,
  forget,
  get_attributes,
  set_attributes,
  read_link,
  make_node,
  make_directory,
  make_symlink,
  link,
  unlink,
  remove_directory,
  rename,
  read,
  write,
  sync,
  allocate,
  seek,
  list,
  status,
  get_xattr,
  set_xattr,
  remove_xattr,
  commit,
  work_status,
  discard,
  update,
  cancel,
  checkpoint,
  restore,
};
inline constexpr std::size_t kCounted = static_cast<std::size_t>(Counted::restore) + 1;
std::string_view name_of(Counted operation);

class Metrics {
 public:
  void count(Counted operation) { add(operations_[index(operation)], 1); }
  void count_error(Counted operation) { add(errors_[index(operation)], 1); }
  /// An operation that had to wait for a fetch.
  void count_waited(Counted operation) { add(waited_[index(operation)], 1); }
  /// A growing file was updated because its content changed, without a request from the kernel.
  void count_grown() { add(grown_, 1); }
  /// Letters of `maildir/` that were made. A change of a list makes only the letters that changed.
  void count_letters(std::uint64_t letters) { add(letters_, letters); }
  void count_bytes_read(std::uint64_t bytes) { add(bytes_read_, bytes); }
  void count_bytes_written(std::uint64_t bytes) { add(bytes_written_, bytes); }

  /// In Prometheus' text format; operations that never occurred are omitted.
  [[nodiscard]] std::string text() const;

 private:
  using Counter = std::atomic<std::uint64_t>;
  static std::size_t index(Counted operation) { return static_cast<std::size_t>(operation); }
  static void add(Counter& counter, std::uint64_t value) { counter.fetch_add(value, std::memory_order_relaxed); }

  std::array<Counter, kCounted> operations_{}, errors_{}, waited_{};
  Counter bytes_read_{0}, bytes_written_{0}, grown_{0}, letters_{0};
};

}  // namespace playfs::vfs
