// The lists of collections, newest first, brought up to date by reading pages until something known appears, and kept
// on disk. What we created ourselves stands in them at once, whether a page has shown it yet or not. Thread-safe.
//
// A list has the newest records that fit `list_bytes`, whatever the service sends; that it goes on is told.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "content/context.h"
#include "content/single_flight.h"
#include "content/types.h"

namespace playfs::content {

class Lists {
 public:
  using Changed = std::function<void(const std::string& collection)>;

  explicit Lists(Context& context) : context_(context) {}

  /// As last brought up to date; nullptr where it never was. Does local I/O the first time.
  [[nodiscard]] ListPtr known(const std::string& collection);
  /// The list as it is now; where the service is away, as it was.
  void get(const std::string& collection, const CancelToken& cancel, Callback<ListPtr> done);
  /// Whether the list as it is known was asked for within `refresh`.
  [[nodiscard]] bool is_fresh(const std::string& collection);
  /// Whether the list as it is known has all records; otherwise there are older ones.
  [[nodiscard]] bool is_whole(const std::string& collection);
  /// The service has just created this record for us.
  void created(const std::string& collection, const Record& record);
  /// A record as the service has it now: a list that is in memory names it so.
  void seen(const std::string& collection, const Record& record);
  /// Somebody was shown names of the list: reads one of the pages behind those that bring it up to date, for the names
  /// on it, another one each time and at most once a `refresh`. So a name that changed anywhere is seen by whoever goes
  /// on looking at names, and a listing of ids costs no more for it.
  void names_were_shown(const std::string& collection);
  /// `changed` runs when a list that was known has become another one, on any thread and with no lock held.
  void on_changed(Changed changed);
  void close() { flights_.close(); }

 private:
  struct Created {
    Listed item;
    SteadyTime at;
  };
  struct List {
    ListPtr read;                  ///< as the service's pages had it; nullptr: never
    std::vector<Created> created;  ///< by us and on none of its pages yet, newest first
    ListPtr shown;                 ///< both
    std::optional<SteadyTime> asked_at;
    std::string behind;   ///< the cursor of the first page that bringing it up to date did not read
    std::string further;  ///< that of the page that is looked at next for its names; empty: `behind`
    std::optional<SteadyTime> looked_further;
    bool is_looking_further = false;
    bool is_cut = false;  ///< there are older records, which did not fit
    void show();
  };
  struct Reading;
  using ReadingPtr = std::shared_ptr<Reading>;

  void read_page(const ReadingPtr& reading, std::string cursor);
  void page_arrived(const ReadingPtr& reading, Result<wire::RecordPage> page);
  /// Takes a page in. True: there is nothing more to read. Fails on cursors that lead nowhere.
  Result<bool> take_in(Reading& reading, const wire::RecordPage& page);
  void finish(const ReadingPtr& reading);
  /// The list as read, with what is known behind it (nullptr: nothing), down to the first record that is too many: so
  /// it is stored too, and whoever loads it sees that it goes on.
  [[nodiscard]] std::vector<Listed> put_together(Reading& reading, const std::vector<Listed>* known) const;
  /// Takes the oldest records off that are too many. True where there were any.
  [[nodiscard]] bool cut(std::vector<Listed>& items) const;
  void tell_cut(const std::string& collection, std::size_t shown);
  /// Gives known records the names that they have now.
  void rename(const std::string& collection, const std::vector<Listed>& now);

  Context& context_;
  SingleFlight<std::string, ListPtr> flights_;  // by collection
  void tell(const std::string& collection);

  Mutex mutex_;
  std::unordered_map<std::string, List> lists_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const Changed>> changed_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
