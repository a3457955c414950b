#include <algorithm>
#include <chrono>

#include "app/conversation.h"
#include "app/json_fields.h"
#include "app/mcp/answers.h"
#include "app/mcp/talking.h"
#include "app/record_reading.h"

namespace playfs::app {

namespace {

constexpr std::size_t kMostItems = 20;
constexpr std::uint32_t kLongestInboxWait = 3'600;     // seconds
constexpr std::chrono::milliseconds kOneWait{10'000};  // then names are looked up again

bool is_new(const InboxSource::Entry& entry) { return !entry.is_seen; }

}  // namespace

Status InboxTool::open() {
  PLAYFS_TRY([[maybe_unused]] const FoundWork* found, workplace_.enter(lane_));
  if (inbox_) return {};
  PLAYFS_TRY(inbox_, find_inbox(lane_.context(), std::nullopt, true));
  return {};
}

/// Marks what the client has seen. The client may name anything, so ids that are not among the new entries are ignored.
/// It does not matter if another reader marks them first.
Status InboxTool::mark(const std::vector<std::string>& seen) {
  if (seen.empty()) return {};
  PLAYFS_TRY(const auto entries, inbox_->source->entries(false, InboxSource::Time::max()));
  for (const InboxSource::Entry& entry : entries) {
    if (std::find(seen.begin(), seen.end(), entry.id) == seen.end()) continue;
    PLAYFS_TRY([[maybe_unused]] const bool is_ours, inbox_->source->claim(entry));
  }
  return {};
}

std::string InboxTool::shown(const InboxItem& item) {
  Output& out = lane_.context().out;
  if (item.is_mail) print_answer(out, item.record);
  else print_message(out, item.record, {});
  const std::string thread = safe(text_of(item.record.fields, "thread"));
  out.line((item.is_mail ? "  to your mail | " : "  in thread " + thread + " | ") + safe(item.title) +
           (item.entry.is_seen ? "  (seen)" : ""));
  return lane_.take_output();
}

mcp::Answer InboxTool::read(const JsonObject& arguments, mcp::Call& call) {
  auto answer = look(arguments, call);
  static_cast<void>(lane_.take_notes());
  if (answer) return std::move(*answer);
  inbox_.reset();  // the next call opens it again
  return failed(answer.error());
}

Result<mcp::Answer> InboxTool::look(const JsonObject& arguments, mcp::Call& call) {
  PLAYFS_CHECK(check_arguments(arguments, {"wait_seconds", "seen", "all"}));
  PLAYFS_TRY(const auto wait, number_argument(arguments, "wait_seconds"));
  PLAYFS_TRY(const auto seen, texts_argument(arguments, "seen"));
  PLAYFS_TRY(const bool is_all, flag_argument(arguments, "all"));
  PLAYFS_CHECK(open());
  InboxSource& source = *inbox_->source;
  PLAYFS_CHECK(mark(seen));
  const std::chrono::seconds most(std::min(wait.value_or(0), kLongestInboxWait));
  call.limit(most);
  const auto end = most.count() > 0 ? std::chrono::steady_clock::now() + most : InboxSource::Time::max();
  std::vector<InboxSource::Entry> entries;
  for (;;) {
    PLAYFS_TRY(entries, source.entries(is_all, end));
    if (std::any_of(entries.begin(), entries.end(), is_new) || call.is_over()) break;
    source.wait(std::min<std::chrono::milliseconds>(kOneWait, std::chrono::seconds(*wait)));
  }
  // The oldest of the new ones, so that the others come once these are marked; of all, the newest.
  const std::size_t more = entries.size() - std::min(entries.size(), kMostItems);
  if (more > 0 && is_all) entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(more));
  entries.resize(std::min(entries.size(), kMostItems));
  std::string text;
  static_cast<void>(lane_.take_output());
  for (const InboxSource::Entry& entry : entries) {
    auto item = read_item(source, entry);
    if (!item && item.error().code == ErrorCode::not_found) continue;  // another reader has marked it
    if (!item) return fail(item.error());
    text += shown(*item);
  }
  const std::string silent = source.is_silent() ? " The service does not answer: this is what was known of it." : "";
  if (text.empty())
    return answered({"Nothing is new for " + safe(inbox_->agent) + "." + silent}, "inbox with wait_seconds");
  if (more > 0) text += "\n(" + std::to_string(more) + (is_all ? " older ones" : " more") + " not shown)\n";
  if (!silent.empty()) text += "\n" + silent.substr(1) + "\n";
  return answered({std::move(text)}, "answer with talk (thread, reply_to); then inbox with seen=[their ids]");
}

}  // namespace playfs::app
