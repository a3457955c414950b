#include "publish/announce.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/shell.h"
#include "base/text.h"
#include "wire/cursors.h"

namespace playfs::publish {

namespace {

/// Messages are searched from the newest for this many pages; beyond that an announcement may be repeated.
constexpr int kMostPages = 20;
constexpr std::size_t kPathsNamed = 20;
/// Bytes of a name.
constexpr std::size_t kLongestNamed = 200;

/// An idempotency key that depends only on the text: 128 bits of its hash, as a UUID.
std::string key_of(std::string_view text) {
  std::string hex = ContentHash::of(text).hex();
  hex[12] = '8';
  hex[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20, 12));
}

std::string text_of(const Record& record, std::string_view name) {
  const Json* value = record.fields.find(name);
  return value && value->string() ? *value->string() : std::string();
}

/// Whether a message announces `revision`. Only the links count: the text of an announcement of another revision may
/// mention this one as the head of that time.
bool is_about(const Record& message, const RevisionId& revision) {
  const Json* links = message.fields.find("links");
  if (!links || !links->array()) return false;
  return std::any_of(links->array()->begin(), links->array()->end(),
                     [&](const Json& link) { return link.string() && *link.string() == revision.text(); });
}

/// Calls `look` with each message, newest first, until it returns true.
template <class Look>
Status look_through_messages(Upstream& upstream, const Look& look) {
  std::string cursor;
  wire::Cursors cursors;
  for (int pages = 0; pages < kMostPages; ++pages) {
    PLAYFS_TRY(auto page, upstream.page("messages", cursor));
    for (const auto& record : page.records)
      if (look(record)) return {};
    if (page.next_cursor.empty() || cursors.comes_again(page.next_cursor)) return {};
    cursor = page.next_cursor;
  }
  return {};
}

Result<std::string> find_or_make_thread(Upstream& upstream, Journal& journal, const ProjectId& project,
                                        const std::string& agent) {
  const std::string title = thread_title(project);
  PLAYFS_TRY(std::string known, journal.thread());
  // Anybody can give it another title: then it is no longer the project's.
  if (!known.empty() && upstream.may_carry("threads", known, title)) return known;
  PLAYFS_TRY(std::string thread, upstream.holder_of("threads", title));
  if (thread.empty()) {
    JsonObject body{{"title", title}, {"agent", agent}, {"kind", "collab"}};
    // The key of the one that lost its title would bring that one back.
    PLAYFS_TRY(Record made, upstream.create("threads", body, key_of(title + '\n' + agent + known)));
    thread = made.id;
  }
  PLAYFS_CHECK(journal.record_thread(thread));
  return thread;
}

/// Names come from whoever published them. In a message of ours, one that reads like a sentence is quoted.
std::string quoted_name(const std::string& name) {
  if (name.size() <= kLongestNamed) return shell_word(escape_for_terminal(name));
  std::size_t end = kLongestNamed;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // not within a character
  return shell_word(escape_for_terminal(name.substr(0, end)) + "…");
}

std::string words_for(const Announcement& announcement) {
  std::string text = fmt::format("Revision {} by {} is not merged into head", announcement.revision.text(),
                                 announcement.author.empty() ? "someone" : quoted_name(announcement.author));
  if (!announcement.head.empty()) text += " " + announcement.head.text();
  text += ".";
  if (!announcement.conflicts.empty()) {
    text += " In conflict:";
    for (std::size_t i = 0; i < std::min(announcement.conflicts.size(), kPathsNamed); ++i)
      text += (i == 0 ? " " : ", ") + quoted_name(announcement.conflicts[i]);
    if (announcement.conflicts.size() > kPathsNamed)
      text += fmt::format(" and {} more", announcement.conflicts.size() - kPathsNamed);
    text += ".";
  }
  return text + fmt::format(" To merge it: playfs merge {}", shell_operand(announcement.revision.text()));
}

}  // namespace

std::string thread_title(const ProjectId& project) { return "Work on project " + project.text(); }

Status announce(Upstream& upstream, Journal& journal, const ProjectId& project, const Announcement& announcement) {
  PLAYFS_TRY(bool is_said, journal.is_announced(announcement.revision));
  if (is_said) return {};
  PLAYFS_TRY(std::string thread, find_or_make_thread(upstream, journal, project, announcement.agent));
  PLAYFS_CHECK(look_through_messages(upstream, [&](const Record& record) {
    is_said = is_said || (text_of(record, "thread") == thread && is_about(record, announcement.revision));
    return is_said;
  }));
  if (!is_said) {
    std::string words = words_for(announcement);
    JsonObject body{{"thread", thread},
                    {"parent", ""},
                    {"agent", announcement.agent},
                    {"body", words},
                    {"mentions", Json::Array{}},
                    {"links", Json::Array{Json(announcement.revision.text())}}};
    PLAYFS_TRY([[maybe_unused]] Record said,
               upstream.create("messages", body, key_of(thread + '\n' + announcement.agent + '\n' + words)));
  }
  return journal.record_announced(announcement.revision);
}

}  // namespace playfs::publish
