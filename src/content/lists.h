// Lists of collections, newest first, updated by reading pages until a known record appears, and stored on disk.
// Records that we created are listed at once, even before a page shows them. For threads and messages, whose order
// matters, the service decides their place among those of others: so the list is also read at once. Thread-safe.
//
// A list holds the newest records that fit `list_bytes`, whatever the service sends; the log says if there are more. As
// long as no caller needs the whole list, only its newest part is in memory: an update, or reading the records of one
// owner (a thread's messages), costs the same however long the list is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/lru.h"
#include "content/single_flight.h"
#include "content/site_context.h"
#include "content/types.h"
#include "wire/server_events.h"

namespace playfs::content {

class Lists {
 public:
  using Changed = std::function<void(const std::string& collection, const ListChange& change)>;

  explicit Lists(SiteContext& context) : context_(context) {}

  /// As last updated; nullptr if never. Does local I/O the first time.
  [[nodiscard]] ListPtr known(const std::string& collection);
  /// Whether known() would return a list. Loads no more than its newest part.
  [[nodiscard]] bool is_known(const std::string& collection);
  /// The records of known() that belong to `owner`; reads no others. nullptr: the list is not, or no longer, known.
  [[nodiscard]] ListPtr of(const std::string& collection, const std::string& owner);
  /// of(), without records that we created and no page has shown yet.
  [[nodiscard]] ListPtr of_as_read(const std::string& collection, const std::string& owner);
  /// The current list; the last known one if the service is away.
  void get(const std::string& collection, const CancelToken& cancel, Callback<ListPtr> done);
  /// get() for callers that do not want all of it.
  void update(const std::string& collection, const CancelToken& cancel, Callback<void> done);
  /// Whether the known list was requested within `refresh`, or is_told().
  [[nodiscard]] bool is_fresh(const std::string& collection);
  /// Whether the known list is current because an event would have reported any change.
  [[nodiscard]] bool is_told(const std::string& collection);
  /// Whether the last reading lacked known records: the service may have lost some of them.
  [[nodiscard]] bool is_lacking(const std::string& collection);
  /// Call when the list is shown: for the next minutes it is reread as soon as an event reports a change.
  void follow(const std::string& collection);
  /// An event said that the record is new or changed. Call bring_up() after a batch of these.
  void heard(const wire::Change& change);
  /// Events may have been missed: notifies the listeners of lists that nobody follows. Call bring_up(), too.
  void missed();
  /// The lists are of another service, or of this one before it was restored from a copy: each is read anew when it is
  /// needed. Call missed() and bring_up(), too.
  void outdate();
  /// Reads the lists that are followed and known to be outdated, each once at a time.
  void bring_up();
  /// Whether the known list has all records; otherwise older ones exist.
  [[nodiscard]] bool is_whole(const std::string& collection);
  /// The service has just created this record for us.
  void created(const std::string& collection, const Record& record);
  /// Updates the name in a loaded list from the record's current version.
  void seen(const std::string& collection, const Record& record);
  /// Call when names of the list were shown: reads a page beyond those that update it, a further one each time and at
  /// most one per `refresh`, to pick up new names. So a caller that keeps looking at names sees every rename, and
  /// listing ids costs nothing extra.
  void names_were_shown(const std::string& collection);
  /// `changed` runs when a known list has changed, on any thread and without a lock held.
  void on_changed(Changed changed);
  void close() { flights_.close(); }

 private:
  struct Created {
    Listed item;
    SteadyTime at;
    std::uint64_t event;  ///< readings that began with this number, or a later one, can have it
  };
  /// Records of one owner, as they were given out.
  struct Given {
    std::string owner;
    ListPtr records;
  };
  using AllGiven = std::vector<Given>;
  /// What a change of a list does to List::newer.
  struct Dated {
    std::vector<Listed> overtaken;
    std::vector<std::string> caught_up;  ///< ids
  };
  struct List {
    ListPtr read;               ///< as in the service's pages; nullptr: never read
    bool is_part = false;       ///< `read` and `shown` have the newest records; the rest is on disk
    bool is_stored = false;     ///< what is on disk has all of `read`
    bool is_forgotten = false;  ///< it was lost: once it is read again, listeners are notified
    bool is_outdated = false;   ///< what is on disk lacks something: the next reading takes nothing from there
    std::uint64_t loaded = 0;   ///< times that `read` was loaded from disk
    std::uint64_t changes = 0;  ///< of `read` and of what is on disk
    bool is_locked = false;     ///< the disk could not be read, since another process had it
    /// Parts of it, as read and as given out.
    cache::Lru<std::string, Given> by_owner{kMostByOwner};
    /// Owners whose parts were given out and are no longer cached, so that the given content is unknown.
    std::set<std::string> let_go;
    bool has_let_go_of_many = false;  ///< and other owners
    std::vector<Created> created;     ///< by us, on no page yet, newest first
    ListPtr shown;                    ///< both together
    std::optional<SteadyTime> asked_at;
    std::optional<SteadyTime> lacking_since;  ///< since then, each reading has lacked known records
    std::string behind;                       ///< cursor of the first page not read by the update
    std::string further;                      ///< cursor of the next page to check for names; empty: `behind`
    std::optional<SteadyTime> looked_further;
    bool is_looking_further = false;
    bool is_cut = false;       ///< older records exist, but did not fit
    std::uint64_t period = 0;  ///< of Live, of the last reading
    /// Records that an event named and no reading since has shown, with the number of the event.
    std::map<std::string, std::uint64_t> awaited;
    std::optional<SteadyTime> followed_at;
    std::uint64_t readings = 0;
    /// Records that a lagging response showed under an older name: each as in its latest known version.
    std::unordered_map<std::string, Listed> newer;
    bool is_brought_up = false;  ///< a reading of bring_up() is in flight
    void show();
    void take(const Dated& dated);
    /// Call when its records have changed, here and on disk. Returns lists to be destroyed outside the lock.
    [[nodiscard]] AllGiven changed(const ListChange& change);
    /// Caches a part that is given out. Returns parts to be destroyed outside the lock.
    [[nodiscard]] AllGiven keep(const std::string& owner, const ListPtr& records);
    void let_go_of(const std::string& owner);
    [[nodiscard]] AllGiven given() const;
    /// Call when something has changed that may have been in a part that is not cached.
    void tell_let_go(ListChange& change);
    /// Call when the list on disk is lost: drops the list. Parts that callers were given stay valid until it is read
    /// again.
    void forget();
    /// The record of that id, among those created by us and the newest; nullptr if it is not there.
    [[nodiscard]] const Listed* lately(const std::string& id) const;
  };
  struct Reading;
  using ReadingPtr = std::shared_ptr<Reading>;
  /// A list before a change of it. The change is made beside it, and takes its place if it still is this list.
  struct Base {
    ListPtr read, shown;
    std::vector<Listed> own;  ///< created by us
    std::uint64_t loaded = 0;
    bool is_part = false, is_stored = false, is_cut = false;
    bool has_overtaken = false;  ///< List::newer is not empty
    [[nodiscard]] bool is_still(const List& list) const { return list.read == read && list.shown == shown; }
  };
  struct Next;
  struct Ending;
  struct Renaming;
  struct Differences;

  /// Reads the list for the flight under way, `again` times so far. `waits`: how often it has waited for the disk.
  void start_reading(const std::string& collection, int again, int waits = 0);
  void read_page(const ReadingPtr& reading, std::string cursor);
  /// Loads the list from disk unless it is known.
  Status load(const std::string& collection);
  /// Whether the disk can be read, for a list that has failed to.
  Status probe(const std::string& collection);
  /// Loads the rest of a list of which a part is known. Returns all of it, as read; nullptr: it is forgotten, or the
  /// database is busy.
  ListPtr complete(const std::string& collection);
  /// Parts that were given out have changed on disk: drops them and notifies listeners.
  void was_changed_elsewhere(const std::string& collection, ListChange change);
  [[nodiscard]] Result<ListPtr> read_of(const std::string& collection, const std::string& owner, const ListPtr& all,
                                        bool is_part, bool is_stored);
  void page_arrived(const ReadingPtr& reading, Result<wire::RecordPage> page);
  /// Adds a page. Returns true if the update is complete. Fails on cursors that do not advance.
  Result<bool> take_in(Reading& reading, const wire::RecordPage& page);
  [[nodiscard]] static ListChange change_of(const Reading& reading);
  /// Whether known records are missing on the pages where they belong.
  [[nodiscard]] static bool is_lacking(const Reading& reading);
  void finish(const ReadingPtr& reading);
  /// The known list is not what the reading began with.
  void read_again(const ReadingPtr& reading);
  /// What is on disk has neither what was read nor the rest of the known list: reads all of it.
  void read_anew(const ReadingPtr& reading);

  // One change after the other is stored and put in the place of the list.
  [[nodiscard]] Base base(const std::string& collection) PLAYFS_REQUIRES(storing_);
  /// Updates records that were received otherwise after their page was taken in.
  void catch_up(Reading& reading) PLAYFS_REQUIRES(storing_);
  [[nodiscard]] Ending take_over(const Reading& reading) PLAYFS_REQUIRES(storing_);
  [[nodiscard]] Next next_of(const Reading& reading, const Base& base) PLAYFS_REQUIRES(storing_);
  /// The list as read, followed by `known` (nullptr: nothing), up to and including the first record that is too many.
  /// That one is stored too, so that loading the list shows that more exist.
  [[nodiscard]] std::vector<Listed> put_together(const Reading& reading, const std::vector<Listed>* known) const;
  /// Returns false if the rest of the list is needed for that.
  [[nodiscard]] bool store(const Reading& reading, const Base& base, Next& next) PLAYFS_REQUIRES(storing_);
  /// Returns false if the list is no longer `base`. `next`: nullptr if nothing is new.
  [[nodiscard]] bool commit(const Reading& reading, const Base& base, Next* next, Ending& end)
      PLAYFS_REQUIRES(storing_);
  /// Sets since when these records, just read, have their names.
  [[nodiscard]] Dated date(const std::string& collection, const Base& base, std::span<Listed* const> read)
      PLAYFS_REQUIRES(storing_);
  /// Updates known records to what they are `now`. `texts`: records to be stored if they have changed.
  void rename(const std::string& collection, std::vector<Listed> now, std::span<const Record> texts = {});
  /// These return false if the list has changed meanwhile, or if the rest of it was loaded.
  [[nodiscard]] bool try_to_rename(Renaming& renaming) PLAYFS_REQUIRES(storing_);
  using ById = std::unordered_map<std::string_view, const Listed*>;
  /// Where the records are listed as something else. nullopt: the list has changed meanwhile.
  [[nodiscard]] std::optional<Differences> differences(Renaming& renaming, const Base& base) PLAYFS_REQUIRES(storing_);
  /// The same of records that are older than the known part. Returns false if the list has changed meanwhile.
  [[nodiscard]] bool look_beyond(Renaming& renaming, const Base& base, const ById& by_id, Differences& found)
      PLAYFS_REQUIRES(storing_);
  [[nodiscard]] bool store(Renaming& renaming, const Base& base, Next& next) PLAYFS_REQUIRES(storing_);
  [[nodiscard]] bool commit(Renaming& renaming, const Base& base, const Next& next) PLAYFS_REQUIRES(storing_);
  static void renew(Listed& known, Listed now);
  /// Owners whose parts were given out and differ from the list.
  [[nodiscard]] static std::set<std::string> outdated(const AllGiven& given, std::span<const Listed> list);

  void bring_up(const std::string& collection);
  /// Makes lists on disk unusable, if the service has become another one since.
  void outdate_disk();
  /// Whether the list shows the record as it is after the change.
  [[nodiscard]] static bool has_already(const List& list, const wire::Change& change);
  /// Whether we created something after this reading was requested, so that only the next one can show its place.
  [[nodiscard]] static bool is_overtaken(const List& list, const Reading& reading);
  [[nodiscard]] bool is_read(const List& list) const {
    return list.read && list.awaited.empty() && context_.live.is_current(list.period);
  }
  /// If the list's order matters, what we created must also have its place.
  [[nodiscard]] bool is_told(const std::string& collection, const List& list) const {
    return is_read(list) && list.asked_at && context_.is_told(list.period, *list.asked_at) &&
           (list.created.empty() || !is_talk(collection));
  }
  [[nodiscard]] bool is_followed(const List& list) const;
  /// After a reading, stops waiting for the records that events named. Returns those on none of the pages read, whose
  /// names may have changed.
  [[nodiscard]] static std::vector<std::string> end_waiting(List& list, const Reading& reading);
  /// Reads single records for their names.
  void look_at(const std::string& collection, const std::vector<std::string>& ids);
  /// Call if they could not be looked at: the next reading tries again.
  void await_again(const std::string& collection, std::span<const std::string> ids);
  /// Removes the oldest records that are too many. Returns whether there were any.
  [[nodiscard]] bool cut(std::vector<Listed>& items) const;
  void tell_cut(const std::string& collection, std::size_t shown);
  /// Whether the record changes nothing that the list shows.
  [[nodiscard]] static bool is_same(const std::string& collection, const Listed& known, const Listed& now) {
    return is_talk(collection) ? now == known : now.is_like(known);
  }

  /// Bytes of the part of a list that is loaded first: more than the anchors of an update.
  static constexpr std::size_t kPart = 384 << 10;
  static constexpr std::size_t kMostByOwner = 8 << 20;  ///< bytes
  static constexpr int kPageSize = remote::kMostInPage;
  /// How many times in a row a list is reread because we created records meanwhile, or because it is lost.
  static constexpr int kMostAgain = 8;
  static std::size_t bytes_of(const std::vector<Listed>& items);
  /// `named_at` is for date() to set.
  static Listed listed(const std::string& collection, const Record& record);
  /// Collections whose records nobody looks up by name. Their lists may be long, and are loaded in parts; the others
  /// are needed whole, to decide which record has a name.
  static bool is_nameless(const std::string& collection);
  /// Collections of immutable records, which may be very large.
  static bool is_fixed_once_made(const std::string& collection);
  /// Collections of conversations. Their records are stored from the list's pages, since readers want all of them.
  static bool is_talk(const std::string& collection);

  SiteContext& context_;
  SingleFlight<std::string, void> flights_;  // by collection
  void tell(const std::string& collection, const ListChange& change);

  Mutex storing_;  ///< held over local I/O, while a list is changed, here and on disk; taken before `mutex_`
  Mutex mutex_;
  std::unordered_map<std::string, List> lists_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t events_ PLAYFS_GUARDED_BY(mutex_) = 0;
  /// The lists on disk are those of the service as it was before it became another one.
  bool is_disk_outdated_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<const Changed>> changed_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
