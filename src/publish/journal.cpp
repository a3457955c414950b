#include "publish/journal.h"

#include <algorithm>
#include <charconv>

#include "model/json.h"

namespace playfs::publish {

namespace {

// Names of facts.
constexpr const char* kBranch = "branch";
constexpr const char* kWatermark = "watermark";
constexpr const char* kThread = "thread";
constexpr const char* kLongestId = "longest_id";
constexpr const char* kLostBase = "lost_base";          // its id, a newline, the survivor's id
constexpr const char* kPlannedAgain = "planned_again";  // count, a space, the publication's tx
constexpr const char* kHollow = "hollow";               // its id, a space, the publication's tx
constexpr const char* kScan = "scan";
constexpr const char* kFound = "scan/found/";
constexpr const char* kLeftOut = "left_out/";
constexpr const char* kGivenBack = "given_back/";  // followed by the tx
std::optional<WallTime> time_of(const std::string& text) {
  WallTime time;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time.nanoseconds);
  return error == std::errc() ? std::optional(time) : std::nullopt;
}

void add(const ScanChange& scan, JournalChange& change) {
  if (!scan.position.empty()) change.facts[kScan] = scan.position;
  for (const auto& [id, time] : scan.found) change.facts[kFound + id.text()] = std::to_string(time.nanoseconds);
  for (const auto& id : scan.forgotten) change.facts[kFound + id.text()] = "";
}

std::string announced(const RevisionId& revision) { return "announced/" + revision.text(); }

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(const std::string& directory, JournalProbe probe) {
  PLAYFS_TRY(auto storage, open_journal_database(directory));
  return std::make_unique<Journal>(std::move(storage), std::move(probe));
}

Status Journal::write(std::string_view what, const JournalChange& change) {
  if (probe_) probe_(what, false);
  PLAYFS_CHECK(storage_->write(change));
  if (probe_) probe_(what, true);
  return {};
}

Status Journal::enqueue(const std::string& tx, const std::string& agent, const std::string& message, bool may_merge) {
  Publication publication;
  publication.tx = tx;
  publication.agent = agent;
  publication.message = message;
  publication.may_merge = may_merge;
  JournalChange change;
  change.publication = &publication;
  change.is_new = true;
  return write("enqueue", change);
}

Status Journal::record_forgotten(const std::string& tx, RevisionId base, std::uint32_t files_changed) {
  Publication publication;
  publication.tx = tx;
  publication.message = "(its journal was lost)";
  publication.step = Step::posting;
  publication.base = std::move(base);
  publication.files_changed = files_changed;
  JournalChange change;
  change.publication = &publication;
  change.is_new = true;
  return write("forgotten", change);
}

Status Journal::record_forgotten_again(const Publication& older, RevisionId base, std::uint32_t files_changed) {
  Publication next = older;
  next.step = Step::posting;
  next.base = std::move(base);
  next.files_changed = files_changed;
  JournalChange change;
  change.publication = &next;
  return write("forgotten", change);
}

Status Journal::record_ending_again(const Publication& ended) {
  Publication next = ended;
  const bool is_there = next.ending == Ending::published || next.ending == Ending::branched;
  next.step = is_there ? Step::settling : Step::thawing;
  JournalChange change;
  change.publication = &next;
  return write("ending again", change);
}

// A publication's value changes only after its row: if the change fails, the step is repeated with the old value.

Status Journal::record_frozen(Publication& publication, RevisionId base, std::uint32_t files_changed) {
  Publication next = publication;
  next.step = Step::frozen;
  next.base = std::move(base);
  next.files_changed = files_changed;
  JournalChange change;
  change.publication = &next;
  PLAYFS_CHECK(write("frozen", change));
  publication = std::move(next);
  return {};
}

Status Journal::record_uploads(Publication& publication, const std::vector<Upload>& uploads) {
  Publication next = publication;
  next.step = Step::uploading;
  next.chunks += static_cast<std::uint32_t>(uploads.size());
  JournalChange change;
  change.publication = &next;
  change.added = uploads;
  PLAYFS_CHECK(write("uploads", change));
  publication = std::move(next);
  return {};
}

Result<std::size_t> Journal::longest_id() {
  PLAYFS_TRY(auto text, storage_->fact(kLongestId));
  std::size_t longest = 0;
  std::from_chars(text.data(), text.data() + text.size(), longest);
  return longest;
}

Status Journal::note_longest(const std::vector<Upload>& stored, JournalChange& change) {
  PLAYFS_TRY(std::size_t before, longest_id());
  std::size_t longest = before;
  for (const auto& upload : stored) longest = std::max(longest, json_size_of_string(upload.chunk.text()) - 2);
  if (longest > before) change.facts[kLongestId] = std::to_string(longest);
  return {};
}

Status Journal::record_rekeyed(const Publication& publication, const Upload& upload) {
  JournalChange change;
  change.publication = &publication;
  change.rekeyed = &upload;
  return write("rekeyed", change);
}

Status Journal::record_acknowledged(Publication& publication, const std::vector<Upload>& uploads) {
  Publication next = publication;
  next.writes += static_cast<std::uint32_t>(uploads.size());
  JournalChange change;
  PLAYFS_CHECK(note_longest(uploads, change));
  change.publication = &next;
  change.acknowledged = uploads;
  PLAYFS_CHECK(write("acknowledged", change));
  publication = std::move(next);
  return {};
}

Status Journal::record_posting(Publication& publication, std::string key, std::string body,
                               std::vector<std::string> conflicts) {
  Publication next = publication;
  next.step = Step::posting;
  next.key = std::move(key);
  next.body = std::move(body);
  next.conflicts = std::move(conflicts);
  JournalChange change;
  change.publication = &next;
  PLAYFS_CHECK(write("posting", change));
  publication = std::move(next);
  return {};
}

Status Journal::record_posted(Publication& publication, RevisionId revision) {
  Publication next = publication;
  next.step = Step::posted;
  next.revision = std::move(revision);
  ++next.writes;
  JournalChange change;
  change.publication = &next;
  PLAYFS_CHECK(write("posted", change));
  publication = std::move(next);
  return {};
}

Status Journal::record_patching(Publication& publication) {
  Publication next = publication;
  next.step = Step::patching;
  ++next.writes;
  JournalChange change;
  change.publication = &next;
  PLAYFS_CHECK(write("patching", change));
  publication = std::move(next);
  return {};
}

Status Journal::record_settling(Publication& publication, Ending ending, RevisionId merged,
                                std::vector<std::string> conflicts) {
  Publication next = publication;
  next.step = Step::settling;
  next.ending = ending;
  next.merged = std::move(merged);
  next.conflicts = std::move(conflicts);
  JournalChange change;
  change.publication = &next;
  // Together with the outcome, so that a caller that sees the new base also sees that the stage is on a branch.
  change.facts[kBranch] = ending == Ending::branched ? next.revision.text() : "";
  change.facts[kLostBase] = "";  // what it held is published again
  PLAYFS_CHECK(write("settling", change));
  publication = std::move(next);
  return {};
}

Status Journal::record_thawing(Publication& publication, const Error& error, bool in_doubt) {
  Publication next = publication;
  next.step = Step::thawing;
  next.ending = Ending::failed;
  next.error_code = name_of(error.code);
  next.error_message = error.message;
  next.error_hint = error.hint;
  JournalChange change;
  change.publication = &next;
  if (in_doubt) change.facts[kGivenBack + next.tx] = "1";
  PLAYFS_CHECK(write("thawing", change));
  publication = std::move(next);
  return {};
}

Result<std::set<std::string>> Journal::given_back_in_doubt() {
  PLAYFS_TRY(auto facts, storage_->facts(kGivenBack));
  std::set<std::string> given_back;
  for (const auto& [tx, fact] : facts) given_back.insert(tx);
  return given_back;
}

Status Journal::record_came_late(const std::string& tx) {
  JournalChange change;
  change.facts[kGivenBack + tx] = "";
  return write("came late", change);
}

Status Journal::record_cancelling(Publication& publication, std::vector<std::int64_t> behind) {
  PLAYFS_TRY(int times, times_planned_again(publication));
  Publication next = publication;
  next.step = Step::thawing;
  next.ending = Ending::cancelled;
  JournalChange change;
  change.publication = &next;
  change.dropped = std::move(behind);
  if (times > 0) change.facts[kGivenBack + next.tx] = "1";  // it was acknowledged once
  PLAYFS_CHECK(write("cancelling", change));
  publication = std::move(next);
  return {};
}

Status Journal::drop(std::vector<std::int64_t> behind) {
  JournalChange change;
  change.dropped = std::move(behind);
  return write("drop behind", change);
}

Status Journal::record_ended(Publication& publication) {
  Publication next = publication;
  next.step = Step::ended;
  next.body.clear();
  JournalChange change;
  change.publication = &next;
  change.is_last = true;
  PLAYFS_CHECK(write("ended", change));
  publication = std::move(next);
  return {};
}

Status Journal::record_known(const std::vector<Upload>& uploads) {
  JournalChange change;
  PLAYFS_CHECK(note_longest(uploads, change));
  change.known = uploads;
  return write("known", change);
}

Status Journal::record_lost_chunks(const Publication* publication, const std::vector<LostChunk>& lost) {
  JournalChange change;
  change.publication = publication;
  change.lost = lost;
  return write("lost chunks", change);
}

Status Journal::record_planning_again(Publication& publication, const RevisionId& hollow) {
  PLAYFS_TRY(int times, times_planned_again(publication));
  Publication next = publication;
  next.step = Step::uploading;
  next.revision = {};
  JournalChange change;
  change.publication = &next;
  change.facts[kPlannedAgain] = std::to_string(times + 1) + " " + next.tx;
  if (!hollow.empty()) change.facts[kHollow] = hollow.text() + " " + next.tx;
  PLAYFS_CHECK(write("planning again", change));
  publication = std::move(next);
  return {};
}

Result<int> Journal::times_planned_again(const Publication& publication) {
  PLAYFS_TRY(std::string text, storage_->fact(kPlannedAgain));
  int times = 0;
  if (text.ends_with(" " + publication.tx)) std::from_chars(text.data(), text.data() + text.size(), times);
  return times;
}

Result<RevisionId> Journal::hollow(const std::string& tx) {
  PLAYFS_TRY(std::string text, storage_->fact(kHollow));
  if (tx.empty() || !text.ends_with(" " + tx)) return RevisionId();
  return RevisionId(text.substr(0, text.size() - tx.size() - 1));
}

Status Journal::record_lost_base(const LostBase& lost, WallTime verified) {
  JournalChange change;
  change.facts[kLostBase] = lost.revision.text() + "\n" + lost.survivor.text();
  change.facts[kWatermark] = std::to_string(verified.nanoseconds);
  change.facts[kThread] = "";
  return write("lost base", change);
}

Result<std::optional<LostBase>> Journal::lost_base() {
  PLAYFS_TRY(std::string text, storage_->fact(kLostBase));
  auto end = text.find('\n');
  if (end == std::string::npos) return std::optional<LostBase>();
  return std::optional(LostBase{RevisionId(text.substr(0, end)), RevisionId(text.substr(end + 1))});
}

Status Journal::record_no_lost_base() {
  JournalChange change;
  change.facts[kLostBase] = "";
  return write("no lost base", change);
}

Result<RevisionId> Journal::branch() {
  PLAYFS_TRY(auto branch, storage_->fact(kBranch));
  return RevisionId(std::move(branch));
}

Status Journal::record_no_branch() {
  JournalChange change;
  change.facts[kBranch] = "";
  return write("no branch", change);
}

Result<std::optional<WallTime>> Journal::watermark() {
  PLAYFS_TRY(auto text, storage_->fact(kWatermark));
  return time_of(text);
}

Status Journal::record_watermark(WallTime time, const ScanChange& scan) {
  PLAYFS_TRY(auto before, watermark());
  if (before && *before >= time) return {};
  JournalChange change;
  change.facts[kWatermark] = std::to_string(time.nanoseconds);
  add(scan, change);
  return write("watermark", change);
}

Result<std::string> Journal::scan_position() { return storage_->fact(kScan); }

Result<std::map<RevisionId, WallTime>> Journal::scan_found() { return revisions_under(kFound); }

Status Journal::record_scan(const ScanChange& scan) {
  JournalChange change;
  add(scan, change);
  return write("scan", change);
}

Result<std::map<RevisionId, WallTime>> Journal::left_out() { return revisions_under(kLeftOut); }

Status Journal::record_left_out(const std::map<RevisionId, WallTime>& left_out) {
  PLAYFS_TRY(auto before, this->left_out());
  if (before == left_out) return {};
  JournalChange change;
  for (const auto& [id, time] : before) change.facts[kLeftOut + id.text()] = "";
  for (const auto& [id, time] : left_out) change.facts[kLeftOut + id.text()] = std::to_string(time.nanoseconds);
  return write("left out", change);
}

Result<std::map<RevisionId, WallTime>> Journal::revisions_under(const char* prefix) {
  PLAYFS_TRY(auto facts, storage_->facts(prefix));
  std::map<RevisionId, WallTime> revisions;
  for (const auto& [id, time] : facts) revisions.emplace(RevisionId(id), time_of(time).value_or(WallTime()));
  return revisions;
}

Result<std::string> Journal::thread() { return storage_->fact(kThread); }

Status Journal::record_thread(const std::string& id) {
  JournalChange change;
  change.facts[kThread] = id;
  return write("thread", change);
}

Result<bool> Journal::is_announced(const RevisionId& revision) {
  PLAYFS_TRY(auto fact, storage_->fact(announced(revision)));
  return !fact.empty();
}

Status Journal::record_announced(const RevisionId& revision) {
  JournalChange change;
  change.facts[announced(revision)] = "1";
  return write("announced", change);
}

}  // namespace playfs::publish
