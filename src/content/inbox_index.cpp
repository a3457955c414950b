// The file in which an inbox keeps its findings for the next process.
#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "cache/checksum.h"
#include "content/inbox.h"
#include "content/inbox_marks.h"

namespace playfs::content {
namespace {

/// How many records the next process may have to examine again.
constexpr std::size_t kSaveAfter = 100;
/// Records saved of each collection; the next process examines older ones again.
constexpr std::size_t kMostSaved = 20'000;
constexpr std::size_t kLongestIndex = 16 << 20;
/// The flag before a checksum of the steward's answer.
constexpr char kAnswer = '=';

/// The file's first line. The checksum finds what a disk has damaged: a line that cannot be read would otherwise hide a
/// record for good, since the rest of the file says that it was looked at.
std::string header_of(std::string_view me, std::string_view lines) {
  return "playfs-inbox 3 " + percent_encode(me) + " " + std::to_string(cache::checksum_of_row({lines})) + "\n";
}

/// The next word of a line.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<std::int64_t> number(std::string_view word) {
  std::int64_t value = 0;
  const auto [rest, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || rest != word.data() + word.size()) return std::nullopt;
  return value;
}

ForMe why_of(std::string_view name) {
  for (const ForMe why : {ForMe::mention, ForMe::reply, ForMe::own_thread, ForMe::answer})
    if (playfs::name_of(why) == name) return why;
  return ForMe::no;
}

/// Drops what is older than the `most` newest, by `time_of`.
template <typename Items, typename TimeOf>
void drop_oldest(Items& items, std::size_t most, const TimeOf& time_of) {
  if (items.size() <= most) return;
  std::vector<std::int64_t> times;
  for (const auto& each : items) times.push_back(time_of(each));
  const auto last = times.begin() + static_cast<std::ptrdiff_t>(most) - 1;
  std::nth_element(times.begin(), last, times.end(), std::greater<>());
  auto as_old = static_cast<std::size_t>(std::count(times.begin(), last + 1, *last));  // of these, so many stay
  std::erase_if(items, [&, oldest = *last](const auto& each) {
    const std::int64_t time = time_of(each);
    if (time != oldest || as_old == 0) return time <= oldest;
    --as_old;
    return false;
  });
}

}  // namespace

Result<Inbox::Saved> Inbox::read_saved() const {
  auto text = read_file(path_, kLongestIndex);
  if (text) return parsed(*text);
  if (text.error().code == ErrorCode::not_found || text.error().code == ErrorCode::file_too_big) return Saved();
  return fail(std::move(text).error());
}

Inbox::Looked Inbox::looked_of(std::int64_t updated, std::string_view flags) {
  const std::size_t answer = flags.find(kAnswer);
  return {.updated = updated,
          .has_author = true,
          .is_mine = flags.find('m') != flags.npos,
          .mentions_me = flags.find('@') != flags.npos,
          .is_hidden = flags.find('h') != flags.npos,
          .answer = answer == flags.npos ? 0 : number(flags.substr(answer + 1)).value_or(0)};
}

std::string Inbox::flags_of(const Looked& looked) {
  std::string flags = std::string(looked.is_mine ? "m" : "-") + (looked.mentions_me ? "@" : "-");
  if (looked.is_hidden) flags += 'h';
  if (looked.answer != 0) flags += kAnswer + std::to_string(looked.answer);
  return flags;
}

void Inbox::parse_line(std::string_view line, Saved& saved) {
  const std::string_view kind = next_word(line);
  const auto collection = collection_named(next_word(line));
  const auto time = number(next_word(line));
  const std::string_view flags = next_word(line);
  const bool is_wait = kind == "waits";
  auto awaited = is_wait ? percent_decode(next_word(line)) : std::nullopt;
  const auto id = percent_decode(line);
  if (!collection || !time || !id) return;
  if (is_wait) {
    if (const auto in = collection_named(flags); in && awaited) saved.waits[*id] = {*time, {*in, std::move(*awaited)}};
  } else if (kind == "looked") {
    saved.looked[*collection][*id] = looked_of(*time, flags);
  } else if (const ForMe why = why_of(flags); kind == "entry" && why != ForMe::no) {
    saved.entries.push_back({name_of(*collection), *id, {*time}, why, 0});
  }
}

Inbox::Saved Inbox::parsed(std::string_view text) const {
  Saved saved;
  const std::string_view header = text.substr(0, text.find('\n') + 1);  // npos + 1 is 0
  text.remove_prefix(header.size());
  if (header != header_of(me_, text)) return saved;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    parse_line(line, saved);
  }
  return saved;
}

bool Inbox::is_to_be_saved() const {
  MutexLock lock(mutex_);
  return unsaved_ >= kSaveAfter && taken_.messages;
}

void Inbox::merge_into(Saved& saved) const {
  for (const auto& [collection, list] :
       {std::pair(messages, taken_.messages), std::pair(threads, taken_.threads), std::pair(mail, taken_.mail)}) {
    for (std::size_t at = 0; list && at < std::min(list->size(), kMostSaved); ++at) {
      auto found = looked_[collection].find((*list)[at].id);
      // Others may know more of such a record, and the next process looks at it again.
      if (found == looked_[collection].end() || found->second.is_gone || !found->second.has_author) continue;
      Looked& known = saved.looked[collection].try_emplace(found->first, found->second).first->second;
      if (known.updated <= found->second.updated) known = found->second;
    }
  }
  for (const auto& [id, wait] : waits_) saved.waits[id] = wait;
  // What another process has decided need not wait.
  std::erase_if(saved.waits, [&decided = saved.looked[messages]](const auto& each) {
    const auto found = decided.find(each.first);
    return found != decided.end() && found->second.updated >= each.second.updated;
  });
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t at = 0; at < saved.entries.size(); ++at) places.emplace(saved.entries[at].id, at);
  for (const auto& [position, entry] : entries_) {
    const auto [place, is_new] = places.emplace(entry.id, saved.entries.size());
    if (is_new) saved.entries.push_back(entry);
    else if (saved.entries[place->second].at <= entry.at) saved.entries[place->second] = entry;
  }
}

std::string Inbox::text_of(const Saved& saved) const {
  std::string text;
  for (const Collection collection : {messages, threads, mail}) {
    for (const auto& [id, looked] : saved.looked[collection])
      text += std::string("looked ") + name_of(collection) + ' ' + std::to_string(looked.updated) + ' ' +
              flags_of(looked) + ' ' + percent_encode(id) + '\n';
  }
  for (const auto& [id, wait] : saved.waits)
    text += std::string("waits ") + name_of(messages) + ' ' + std::to_string(wait.updated) + ' ' +
            name_of(wait.for_record.first) + ' ' + percent_encode(wait.for_record.second) + ' ' + percent_encode(id) +
            '\n';
  for (const Entry& entry : saved.entries)
    text += "entry " + entry.collection + ' ' + std::to_string(entry.at.nanoseconds) + ' ' +
            std::string(playfs::name_of(entry.why)) + ' ' + percent_encode(entry.id) + '\n';
  return header_of(me_, text) + text;
}

Status Inbox::save() {
  PLAYFS_CHECK(make_private_directory(directory_));
  PLAYFS_TRY(const UniqueFd locked, lock_inboxes(directory_));
  PLAYFS_TRY(Saved saved, read_saved());
  std::size_t unsaved = 0;
  {
    MutexLock lock(mutex_);
    unsaved = unsaved_;
    merge_into(saved);
  }
  for (const Collection collection : {messages, threads, mail})
    drop_oldest(saved.looked[collection], kMostSaved, [](const auto& each) { return each.second.updated; });
  drop_oldest(saved.waits, kMostSaved, [](const auto& each) { return each.second.updated; });
  drop_oldest(saved.entries, kMost, [](const Entry& each) { return each.at.nanoseconds; });
  PLAYFS_CHECK(write_file_atomically(path_, text_of(saved)));
  MutexLock lock(mutex_);
  unsaved_ -= unsaved;  // others may have come since
  return {};
}

Status Inbox::save_before_mark() {
  {
    MutexLock lock(mutex_);
    if (unsaved_ == 0) return {};
  }
  return save();
}

}  // namespace playfs::content
