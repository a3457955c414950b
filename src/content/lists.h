// The lists of collections, newest first, brought up to date by reading pages until something known appears, and kept
// on disk. Thread-safe.
#pragma once

#include <string>
#include <unordered_map>

#include "content/context.h"
#include "content/single_flight.h"
#include "content/types.h"

namespace playfs::content {

class Lists {
 public:
  explicit Lists(Context& context) : context_(context) {}

  /// As last brought up to date; nullptr where it never was. Does local I/O the first time.
  [[nodiscard]] ListPtr known(const std::string& collection);
  /// The list as it is now; where the service is away, as it was.
  void get(const std::string& collection, const CancelToken& cancel, Callback<ListPtr> done);
  void close() { flights_.close(); }

 private:
  struct Reading;
  using ReadingPtr = std::shared_ptr<Reading>;

  void read_page(const ReadingPtr& reading, std::string cursor);
  void page_arrived(const ReadingPtr& reading, Result<wire::RecordPage> page);
  /// Takes a page in. True: there is nothing more to read. Fails on cursors that lead nowhere.
  Result<bool> take_in(Reading& reading, const wire::RecordPage& page);
  void finish(const ReadingPtr& reading);

  Context& context_;
  SingleFlight<std::string, ListPtr> flights_;  // by collection
  Mutex mutex_;
  std::unordered_map<std::string, ListPtr> lists_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
