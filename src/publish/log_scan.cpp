#include "publish/log_scan.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

WallTime before(WallTime time, std::chrono::nanoseconds by) {
  time.nanoseconds -= by.count();
  return time;
}

Json json_of(WallTime time) { return Json(std::to_string(time.nanoseconds)); }

std::optional<WallTime> time_of(const JsonObject& object, std::string_view name) {
  const Json* value = object.find(name);
  if (!value || !value->string()) return std::nullopt;
  WallTime time;
  const std::string& text = *value->string();
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time.nanoseconds);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(time) : std::nullopt;
}

std::string text_of(const JsonObject& object, std::string_view name) {
  const Json* value = object.find(name);
  return value && value->string() ? *value->string() : std::string();
}

std::int64_t count_of(const JsonObject& object, std::string_view name) {
  const Json* value = object.find(name);
  return value ? value->integer().value_or(0) : 0;
}

std::size_t bytes_of(const RevisionId& revision) { return sizeof(revision) + revision.text().size(); }

std::size_t bytes_of(const std::map<RevisionId, WallTime>& revisions) {
  std::size_t bytes = 0;
  for (const auto& [id, time] : revisions) bytes += bytes_of(id);
  return bytes;
}

}  // namespace

// The saved state.

std::string LogScan::print(const State& state) {
  JsonObject json{{"from", json_of(state.from)}};
  if (state.read) {
    json.set("read", state.read->id);
    json.set("read_time", json_of(state.read->time));
  }
  if (state.again) json.set("again", json_of(*state.again));
  if (state.again_later) json.set("again_later", json_of(*state.again_later));
  if (!state.pass) return wire::to_text(json);
  Json::Array unseen;
  for (const auto& id : state.pass->unseen) unseen.emplace_back(id.text());
  JsonObject pass{{"top", state.pass->top.id},    {"top_time", json_of(state.pass->top.time)},
                  {"cursor", state.pass->cursor}, {"back_to", json_of(state.pass->back_to)},
                  {"pages", state.pass->pages},   {"records", state.pass->records},
                  {"met_at", state.pass->met_at}, {"unseen", std::move(unseen)}};
  if (state.pass->again) pass.set("again", json_of(*state.pass->again));
  json.set("pass", std::move(pass));
  return wire::to_text(json);
}

std::optional<LogScan::State> LogScan::parse(const std::string& text) {
  auto json = wire::parse_json(text);
  const JsonObject* object = json ? json->object() : nullptr;
  auto from = object ? time_of(*object, "from") : std::nullopt;
  if (!from) return std::nullopt;
  State state;
  state.from = *from;
  if (auto time = time_of(*object, "read_time")) state.read = Mark{text_of(*object, "read"), *time};
  state.again = time_of(*object, "again");
  state.again_later = time_of(*object, "again_later");
  const Json* under_way = object->find("pass");
  if (!under_way || !under_way->object()) return state;
  const JsonObject& fields = *under_way->object();
  auto top = time_of(fields, "top_time"), back_to = time_of(fields, "back_to");
  if (!top || !back_to) return state;
  state.pass = Pass();
  Pass& pass = *state.pass;
  pass.top = {text_of(fields, "top"), *top};
  pass.cursor = text_of(fields, "cursor");
  pass.back_to = *back_to;
  pass.pages = count_of(fields, "pages");
  pass.records = count_of(fields, "records");
  pass.met_at = count_of(fields, "met_at");
  pass.again = time_of(fields, "again");
  const Json* unseen = fields.find("unseen");
  for (const Json& id : unseen && unseen->array() ? *unseen->array() : Json::Array())
    if (id.string()) pass.unseen.emplace(*id.string());
  return state;
}

Status LogScan::load() {
  if (is_loaded_) return {};
  PLAYFS_TRY(auto position, parts_.journal.scan_position());
  PLAYFS_TRY(found_, parts_.journal.scan_found());
  found_bytes_ = bytes_of(found_);
  for (const auto& [id, time] : found_) saved_.insert(id);
  state_ = parse(position);
  has_gaps_since_ = last_gaps_ = parts_.clock.steady();
  is_loaded_ = true;
  return {};
}

ScanChange LogScan::unsaved() const {
  ScanChange change;
  if (state_) change.position = print(*state_);
  for (const auto& [id, time] : found_)
    if (!saved_.contains(id)) change.found.emplace(id, time);
  for (const auto& id : saved_)
    if (!found_.contains(id)) change.forgotten.push_back(id);
  return change;
}

void LogScan::is_saved() {
  saved_.clear();
  for (const auto& [id, time] : found_) saved_.insert(id);
  unsaved_pages_ = 0;
}

Status LogScan::save() {
  PLAYFS_CHECK(parts_.journal.record_scan(unsaved()));
  is_saved();
  return {};
}

// Reading.

Result<Project> LogScan::look(std::optional<WallTime> from) {
  Project project;
  PLAYFS_CHECK(catch_up(from, [&]() -> Result<wire::RecordPage> {
    PLAYFS_TRY(Look look, parts_.upstream.look());
    project = std::move(look.project);
    if (!state_) state_ = State{from.value_or(project.created_at), {}, {}, {}, {}};
    return std::move(look.newest);
  }));
  return project;
}

Status LogScan::search(WallTime from) {
  return catch_up(from, [&] { return parts_.upstream.page("revisions", ""); });
}

Status LogScan::catch_up(std::optional<WallTime> from, const std::function<Result<wire::RecordPage>()>& first_page) {
  PLAYFS_CHECK(load());
  // Further back than before: everything from there on has to be read.
  if (from && (!state_ || *from < state_->from)) state_ = State{*from, {}, {}, {}, {}};
  bool is_begun_anew = false;
  auto bring_to_its_end = [&](std::optional<wire::RecordPage> page) -> Result<bool> {
    auto done = finish(std::move(page));
    tell(std::nullopt);
    // Save what was read, whatever went wrong, so that it is not read again.
    if (!done && unsaved_pages_ > 0) static_cast<void>(save());
    if (done && !*done && std::exchange(is_begun_anew, true))
      return fail(ErrorCode::protocol, "the list of revisions cannot be read to its end: its cursors are not stable");
    return done;
  };
  if (state_ && state_->pass) {
    PLAYFS_TRY([[maybe_unused]] bool is_done, bring_to_its_end(std::nullopt));
  }
  for (int passes = 1;; ++passes) {
    PLAYFS_TRY(auto page, first_page());
    begin_pass();
    PLAYFS_TRY(bool is_done, bring_to_its_end(std::move(page)));
    // If more than a page was read, more may have been added meanwhile.
    if (is_done && (was_short_ || passes >= limits_.passes_at_once)) return {};
  }
}

void LogScan::begin_pass() {
  state_->pass = Pass();
  Pass& pass = *state_->pass;
  for (const auto& [id, time] : found_) pass.unseen.insert(id);
  const SteadyTime now = parts_.clock.steady();
  if (now - has_gaps_since_ < limits_.late_arrival) return;
  pass.again = state_->again;
  if (now - last_gaps_ >= limits_.late_arrival) state_->again_later.reset();  // this pass reads those too
}

Result<bool> LogScan::finish(std::optional<wire::RecordPage> page) {
  Pass& pass = *state_->pass;
  seen_.clear();
  cursors_ = {};
  last_id_.clear();
  idle_pages_ = 0;
  for (;;) {
    if (page) {
      if (goes_round(*page)) {
        begin_anew("the list of revisions jumped back to newer ones");
        return false;
      }
      ++unsaved_pages_;
      if (take_in(*page)) break;
      if (cursors_.comes_again(pass.cursor)) return stopped("a cursor was repeated");
      if (idle_pages_ >= limits_.most_idle_pages) return stopped(fmt::format("{} pages had nothing new", idle_pages_));
      if (found_bytes_ > limits_.most_found_bytes)
        return stopped(fmt::format("it lists {} revisions of the project", found_.size()));
      if (pass.pages >= limits_.most_pages) return stopped(fmt::format("{} pages were read", pass.pages));
      if (unsaved_pages_ >= limits_.unsaved_pages) PLAYFS_CHECK(save());
    }
    // Reading the overlap again is not worth reporting.
    if (pass.met_at == 0)
      tell(LogReading{static_cast<std::uint64_t>(pass.records), pass.back_to,
                      state_->read ? state_->read->time : state_->from});
    auto next = parts_.upstream.page("revisions", pass.cursor);
    if (!next) {
      auto code = next.error().code;
      bool is_about_the_cursor = code == ErrorCode::invalid_argument || code == ErrorCode::not_found;
      if (!is_about_the_cursor) return fail(next.error());
      begin_anew(next.error().message);
      return false;
    }
    page = *std::move(next);
  }
  // The pass read everything that has to be known. If there was a newest record before, it is gone: the service went
  // back to an older state, and revisions that this pass did not find are gone too.
  if (pass.met_at == 0)
    for (const auto& id : pass.unseen)
      if (found_.erase(id) > 0) found_bytes_ -= bytes_of(id);
  was_short_ = pass.pages == 1 || pass.met_at == 1;
  if (pass.again) {
    state_->again = std::exchange(state_->again_later, std::nullopt);
    has_gaps_since_ = last_gaps_;
  }
  if (!was_short_) {
    last_gaps_ = parts_.clock.steady();
    if (!state_->again) has_gaps_since_ = last_gaps_;
    auto& from = state_->again ? state_->again_later : state_->again;
    if (!from) from = before(pass.top.time, limits_.late_arrival);
  }
  if (!pass.top.id.empty()) state_->read = pass.top;
  state_->pass.reset();
  if (unsaved_pages_ >= limits_.unsaved_pages) PLAYFS_CHECK(save());
  return true;
}

/// An endless list is read from the start next time: there is no position to resume from.
tl::unexpected<Error> LogScan::stopped(const std::string& why) {
  state_->pass.reset();
  return fail(ErrorCode::protocol, "the list of revisions does not end: " + why);
}

bool LogScan::goes_round(const wire::RecordPage& page) const {
  const Pass& pass = *state_->pass;
  if (pass.records == 0 || page.records.empty()) return false;
  auto newest = parse_iso8601(page.records.front().created_at);
  return newest && before(*newest, limits_.overlap) > pass.back_to;
}

bool LogScan::take_in(const wire::RecordPage& page) {
  Pass& pass = *state_->pass;
  ++pass.pages;
  const WallTime floor = before(state_->from, limits_.overlap);
  auto has_to_read_again = [&] { return pass.again && pass.back_to >= *pass.again; };
  bool is_enough = false;
  for (const Record& record : page.records) {
    ++pass.records;
    const auto time = parse_iso8601(record.created_at);
    if (pass.top.id.empty()) pass.top = {record.id, time.value_or(WallTime())};
    if (state_->read && record.id == state_->read->id && pass.met_at == 0) pass.met_at = pass.pages;
    if (time) {
      pass.back_to = *time;
      // Below the previously newest record, only the overlap matters. If that record is gone, the service lost its
      // past, and everything matters.
      bool is_past_overlap =
          pass.met_at > 0 && !has_to_read_again() && *time < before(state_->read->time, limits_.overlap);
      is_enough = is_enough || is_past_overlap || *time < floor;
    }
    const Json* project = record.fields.find("project");
    if (!project || !project->string() || *project->string() != parts_.project.text()) continue;
    seen_.insert(RevisionId(record.id));
    pass.unseen.erase(RevisionId(record.id));
    auto [revision, is_new] = found_.try_emplace(RevisionId(record.id), time.value_or(WallTime()));
    if (!is_new) continue;
    found_bytes_ += bytes_of(revision->first);
    parts_.upstream.learn("revisions", record);
  }
  idle_pages_ = page.records.empty() || page.records.back().id == last_id_ ? idle_pages_ + 1 : 0;
  if (!page.records.empty()) last_id_ = page.records.back().id;
  pass.cursor = page.next_cursor;
  bool is_overlap_read = pass.met_at > 0 && !has_to_read_again() && pass.pages - pass.met_at >= limits_.overlap_pages;
  return is_enough || is_overlap_read || pass.cursor.empty();
}

void LogScan::begin_anew(const std::string& why) {
  parts_.events.event("log_read_anew",
                      {{"project", parts_.project.text()}, {"records", state_->pass->records}, {"reason", why}});
  state_->pass.reset();
}

void LogScan::tell(std::optional<LogReading> reading) {
  if (!reading && !std::exchange(is_told_, false)) return;
  is_told_ = reading.has_value();
  parts_.progress(reading);
}

Status LogScan::verified(WallTime head) {
  PLAYFS_TRY(auto watermark, parts_.journal.watermark());
  if (!state_ || (watermark && *watermark >= head)) return {};
  state_->from = std::max(state_->from, head);
  std::erase_if(found_, [&](const auto& item) { return item.second < before(head, limits_.overlap); });
  found_bytes_ = bytes_of(found_);
  PLAYFS_CHECK(parts_.journal.record_watermark(head, unsaved()));
  is_saved();
  return {};
}

}  // namespace playfs::publish
