#include "app/mcp/talking.h"

#include <algorithm>

#include "app/author.h"
#include "app/conversation.h"
#include "app/json_fields.h"
#include "app/mcp/answers.h"
#include "app/mounted_tree.h"
#include "app/published_tree.h"
#include "app/record_reading.h"
#include "app/sending.h"
#include "base/await.h"
#include "model/instructions.h"
#include "model/kinds.h"
#include "model/path.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::size_t kMostThreads = 100;
constexpr std::size_t kMostThreadBytes = 128 << 10;

/// The index of the first message to show: as many of the newest messages as fit into `most` bytes, but at least one.
std::size_t first_that_fits(const std::vector<Record>& messages, std::size_t most) {
  std::size_t first = messages.size(), bytes = 0;
  while (first > 0) {
    const Record& message = messages[first - 1];
    bytes += json_size(Json(message.fields)) + message.id.size();
    if (bytes > most && first < messages.size()) break;
    --first;
  }
  return first;
}

constexpr const char* kHowToAnswer = "talk with thread, and reply_to for one message";

}  // namespace

Result<runtime::ClientStack*> Talking::stack() {
  PLAYFS_TRY(found_, workplace_.enter(lane_));
  if (!stack_) {
    PLAYFS_TRY(stack_, lane_.context().open_client_stack());
  }
  return &*stack_;
}

mcp::Answer Talking::talk(const JsonObject& arguments) {
  auto sent = send(arguments);
  static_cast<void>(lane_.take_notes());
  return sent ? std::move(*sent) : failed(sent.error());
}

Result<mcp::Answer> Talking::send(const JsonObject& arguments) {
  PLAYFS_CHECK(check_arguments(arguments, {"text", "thread", "reply_to", "title", "kind", "dry_run"}));
  PLAYFS_TRY(const auto text, text_argument(arguments, "text"));
  PLAYFS_TRY(const auto thread, text_argument(arguments, "thread"));
  PLAYFS_TRY(const auto reply_to, text_argument(arguments, "reply_to"));
  PLAYFS_TRY(const auto title, text_argument(arguments, "title"));
  PLAYFS_TRY(const auto kind, text_argument(arguments, "kind"));
  PLAYFS_TRY(const bool is_dry, flag_argument(arguments, "dry_run"));
  if (!text || trim(*text, " \t\r\n").empty()) return fail(ErrorCode::invalid_argument, "talk needs a text");
  if (thread.has_value() == title.has_value())
    return fail(ErrorCode::invalid_argument,
                "talk needs either a thread, by its id or title, or the title of a new one");
  if (kind && !is_thread_kind(*kind))
    return fail(ErrorCode::invalid_argument, "kind is intro, discussion, collab, help, handoff or discovery");
  PLAYFS_TRY(runtime::ClientStack * service, stack());
  CommandContext& context = lane_.context();
  PLAYFS_TRY(const Author author, author_in(context, found_->place));
  const std::string& agent = author.handle;
  std::optional<Record> to;
  if (thread) {
    PLAYFS_TRY(to, find_record(context, *service, kThread, *thread));
    if (reply_to) PLAYFS_CHECK(message_of(context, *service, *to, *reply_to));
  }
  JsonObject body = message_body(to ? to->id : "", reply_to.value_or(""), agent, *text);
  Beginning beginning{
      {{"title", title.value_or("")}, {"agent", agent}, {"kind", kind.value_or(std::string(kDefaultThreadKind))}},
      body};
  PLAYFS_CHECK(check_fits(body, "post the message"));
  if (is_dry)
    return answered({"Nothing was sent. This would be posted" + std::string(to ? "" : ", in a new thread") + ":\n" +
                     (to ? "" : wire::to_pretty_text(Json(beginning.thread))) + wire::to_pretty_text(Json(body))},
                    "talk without dry_run, to send it");
  if (to) {
    PLAYFS_TRY(const Record posted, create_record(*service, {"messages", "post the message", "read the thread"}, body));
    return answered({"Posted " + safe(posted.id) + " in thread " + safe(to->id) + "."},
                    "inbox with wait_seconds, for answers");
  }
  PLAYFS_TRY(const BegunThread begun, begin_thread(context, *service, std::move(beginning)));
  if (begun.message && !*begun.message) return fail(begun.message->error());
  return answered({"Began thread " + safe(begun.thread.id) + " with your message."},
                  "inbox with wait_seconds, for answers");
}

Result<std::vector<Record>> Talking::newest_threads() {
  PLAYFS_TRY(runtime::ClientStack * service, stack());
  std::vector<Record> threads;
  PLAYFS_TRY([[maybe_unused]] const LookedAt looked, read_newest(*service, "threads", 1, [&](const Record& thread) {
               threads.push_back(thread);
               return threads.size() < kMostThreads;
             }));
  return threads;
}

mcp::Answer Talking::list_threads() {
  auto threads = newest_threads();
  if (!threads) return failed(threads.error());
  std::string text;
  for (const Record& thread : *threads) {
    auto field = [&](const char* name) { return safe(text_of(thread.fields, name)); };
    text += safe(thread.id) + "  " + field("kind") + "  by " + field("agent") + "  | " + field("title") + "\n";
  }
  return answered({text.empty() ? "There are no threads." : text},
                  text.empty() ? "talk with a title, to begin one" : "read with thread=ID");
}

Result<std::string> Talking::thread_text(const std::string& id_or_title, std::size_t most) {
  PLAYFS_TRY(runtime::ClientStack * service, stack());
  PLAYFS_TRY(Record thread, find_record(lane_.context(), *service, kThread, id_or_title));
  PLAYFS_TRY(const Conversation conversation, read_conversation(*service, std::move(thread)));
  static_cast<void>(lane_.take_output());
  Output& out = lane_.context().out;
  const std::size_t first = first_that_fits(conversation.messages, most);
  print_thread_heading(out, conversation);
  if (first > 0) out.line("(" + count_words(first, "older message") + " left out)");
  for (std::size_t i = first; i < conversation.messages.size(); ++i) print_message(out, conversation.messages[i], {});
  std::string notes = lane_.take_notes();
  return lane_.take_output() + notes;
}

mcp::Answer Talking::read_thread(const std::string& id_or_title) {
  auto text = thread_text(id_or_title, kMostThreadBytes);
  if (!text) return failed(text.error());
  return answered({std::move(*text)}, kHowToAnswer);
}

Result<bool> Talking::is_hidden(runtime::ClientStack& service, const RevisionTreePtr& tree, const std::string& path) {
  if (!gives_instructions(path) || !tree->tree.file_at(path)) return false;
  const MountedPlace& place = found_->place;
  if (!place.clone) {
    // Only the mount knows with which options it was mounted.
    const std::string& id = tree->revision.id.text();
    if (why_not_a_component(id)) return true;
    PLAYFS_TRY(const auto shown, MountedTree(place.project_directory + "/revisions/" + id).entry_at(path));
    return !shown;
  }
  if (place.clone->instructions == Instructions::show) return false;
  PLAYFS_TRY(const Author author, author_in(lane_.context(), place));
  return place.clone->instructions == Instructions::hide ||
         !service.site().own_instructions(author.handle, tree->tree.manifest()).contains(path);
}

Result<std::string> Talking::published_file(const std::string& revision, const std::string& path) {
  PLAYFS_TRY(runtime::ClientStack * service, stack());
  const std::string& project = found_->place.project;
  PLAYFS_TRY(RevisionTreePtr tree, find_revision(lane_.context(), *service, revision.empty() ? project : revision));
  if (!tree || tree->revision.project.text() != project)
    return fail(ErrorCode::not_found, "the project has no revision '" + revision + "'");
  PLAYFS_TRY(const bool hidden, is_hidden(*service, tree, path));
  if (hidden)
    return fail(ErrorCode::permission_denied, path + " is hidden: " + std::string(kWhyNoInstructions),
                "a person reads it with: playfs cat");
  PLAYFS_TRY(auto content, PublishedTree(*service, std::move(tree)).read(path));
  if (!content) return fail(ErrorCode::not_found, "that revision has no file '" + path + "'");
  return std::move(*content);
}

}  // namespace playfs::app
