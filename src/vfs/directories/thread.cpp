#include "vfs/directories/thread.h"

#include <algorithm>
#include <iterator>

#include "mail/address.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/letters.h"
#include "vfs/control/record_fields.h"
#include "vfs/control/requests.h"
#include "vfs/control/thread_text.h"
#include "vfs/directories/record_names.h"
#include "vfs/published/list_fetches.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

/// How many messages are read at a time: the newest first, until the limit is reached.
constexpr std::size_t kMessagesAtOnce = 32;

const Form& reply_form() {
  static const Form reply{.plain = "body",
                          .fields = {{"body", "the message"},
                                     {"agent", "the author's handle (default: the mount's)"},
                                     {"parent", "the id of the message to answer (default: the thread itself)"},
                                     {"mentions", "a handle or a list of handles (default: each @handle in the body)"},
                                     {"links", "a link or a list of links"}},
                          .example = R"({"body": "I agree, @ada", "links": ["https://example.org/"]})",
                          .corrected = "correct it by writing JSON to threads/ID/messages/ID.json"};
  return reply;
}

constexpr const char* kForPeople = "messages.md";
constexpr const char* kMbox = "thread.mbox";
/// Messages that are appended together.
constexpr std::size_t kAppendedAtOnce = 256;
/// A message in an mbox takes as long to render as this many bytes elsewhere.
constexpr std::size_t kLetterBytes = 2 << 10;

content::Reduce shown_in(const std::string& name) {
  if (name == kForPeople) return shown_of_message;
  return name == kMbox ? letter_of_record : line_of_message;
}

/// What a text is made of.
struct ThreadBasis final : GrowingBasis {
  ThreadBasis(ThreadPart of, std::string begins_with, WallTime last_line)
      : part(std::move(of)), head(std::move(begins_with)), last(last_line) {}
  const ThreadPart part;
  const std::string head;
  const WallTime last;  ///< of its lines
};

std::size_t size_of_messages(const std::vector<RecordPartPtr>& messages) {
  std::size_t bytes = 0;
  for (const RecordPartPtr& message : messages) bytes += size_of_message(message->record);
  return bytes;
}

}  // namespace

ThreadDirectory::ThreadDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread)
    : GrowingDirectory(mount, std::move(parent), std::move(name), {kForPeople, "messages.ndjson", kMbox}, {"messages"},
                       thread),
      thread_(std::move(thread)) {}

Attempt<ListedNames> ThreadDirectory::names(const OperationPtr&) {
  return fixed_names({{"thread.json", S_IFREG},
                      {"messages.md", S_IFREG},
                      {"messages.ndjson", S_IFREG},
                      {kMbox, S_IFREG},
                      {"messages", S_IFDIR},
                      {"reply", S_IFREG}});
}

Attempt<LookupResult> ThreadDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "messages") return directory<MessagesDirectory>(op, name, thread_);
  if (name == "reply") {
    return request_file(
        op, name, help_document(reply_form()),
        {.run = [this](const OperationPtr& request, std::string text) { return reply(request, std::move(text)); },
         .creates = "messages",
         .owner = thread_});
  }
  if (grows(name)) return growing(op, name);
  if (name != "thread.json") return nothing(kEndless);
  PLAYFS_ATTEMPT(RecordPartPtr thread, shown_record(op, "threads", thread_));
  return record_file(op, name,
                     {"threads", thread_, shown_text_of(mount(), "threads", thread_, text_of_record, *thread)},
                     record_time(thread->record));
}

Async<RequestAnswer> ThreadDirectory::reply(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(JsonObject body, request_body(text, reply_form()));
  set_default_agent(mount(), body);
  body.set("thread", thread_);
  PLAYFS_CO_CHECK(complete_message(body));
  PLAYFS_AWAIT_CHECK(check_parent(mount(), op, text_field(body, "parent"), thread_));
  const bool is_by_title = op->named && op->named->collection == "threads" && op->named->id == thread_;
  auto created = create_record(mount(), op, path_below("reply"), "messages", std::move(body),
                               is_by_title ? op->named->name : std::string());
  co_return co_await created;
}

Attempt<ThreadDirectory::ReadingPtr> ThreadDirectory::reading(const OperationPtr& op) {
  constexpr const char* kReading = "reading";
  if (auto made = op->held<Reading>(kReading)) return made;
  const std::uint64_t number = next_reading();
  // Only what pages have shown: our own messages must appear in their final place, or the text would not just grow.
  PLAYFS_ATTEMPT(ListPtr messages, list_of_here_as_read(mount(), op, "messages", thread_));
  auto made = std::make_shared<const Reading>(Reading{number, std::move(messages)});
  op->hold(kReading, made);
  return made;
}

Attempt<std::vector<RecordPartPtr>> ThreadDirectory::newest(const OperationPtr& op, const ListPtr& messages,
                                                            content::Reduce reduce, std::size_t& older) {
  const std::vector<content::Listed>& all = *messages;
  const std::size_t most = all.size() - left_out(all.size(), all.size());
  std::vector<std::string> ids;
  for (std::size_t at = 0; at < most; ++at) ids.push_back(all[at].id);
  std::vector<RecordPartPtr> shown;
  std::size_t bytes = 0;
  for (auto next = ids.begin(); next != ids.end();) {
    const auto end = next + std::min<std::ptrdiff_t>(kMessagesAtOnce, ids.end() - next);
    PLAYFS_ATTEMPT(std::vector<RecordPartPtr> parts, known_parts(mount(), op, "messages", {next, end}, reduce));
    auto too_many = std::find_if(parts.begin(), parts.end(), [&](const RecordPartPtr& message) {
      return (bytes += size_of_message(message->record)) > kMostMessageBytes;
    });
    std::move(parts.begin(), too_many, std::back_inserter(shown));
    next = too_many == parts.end() ? end : ids.end();
  }
  older = bytes > kMostMessageBytes ? left_out(all.size(), shown.size()) : all.size() - ids.size();
  if (all.size() - older < shown.size()) shown.resize(all.size() - older);
  std::reverse(shown.begin(), shown.end());
  return shown;
}

Attempt<std::shared_ptr<GrowingFile>> ThreadDirectory::grown(const OperationPtr& op, const std::string& name,
                                                             const std::string& head, const Reading& now) {
  // An mbox names ancestors, and those of omitted messages are not at hand.
  const auto file = name == kMbox ? nullptr : file_of(name);
  while (file) {
    const GrowingFile::Shown shown = file->shown();
    if (now.number < shown.reading) return file;
    const auto was = std::static_pointer_cast<const ThreadBasis>(shown.basis);
    const auto after = messages_after(was->part, *now.messages, mount().site().is_list_whole("messages"));
    if (!after || was->head != head) return nullptr;
    if (*after == 0) return file;
    const std::size_t begin = *after - std::min(*after, kAppendedAtOnce);
    std::vector<std::string> ids;
    for (std::size_t at = *after; at > begin; --at) ids.push_back((*now.messages)[at - 1].id);
    PLAYFS_ATTEMPT(const std::vector<RecordPartPtr> parts, known_parts(mount(), op, "messages", ids, shown_in(name)));
    const LineTimes times = times_of_lines(parts);
    if (name != kForPeople && times.first < was->last) return nullptr;
    PLAYFS_ATTEMPT(std::string more, rendered(mount(), op, name + "/" + ids.back(), size_of_messages(parts), [=] {
                     return name == kForPeople ? messages_text(parts) : messages_ndjson(parts);
                   }));
    auto basis = std::make_shared<ThreadBasis>(part_with(was->part, now.messages, *after, begin), head,
                                               std::max(was->last, times.last));
    if (Status longer = file->append(shown.basis, more, {std::move(basis), now.number}); !longer) {
      mount().site().events().error(path_below(name), longer.error());
      return nullptr;
    }
  }
  return nullptr;
}

Attempt<LookupResult> ThreadDirectory::growing(const OperationPtr& op, const std::string& name) {
  // An update of an open file requests only what is new.
  const bool is_look = !op->noted(kGoesOn);
  if (is_look) looked();
  const bool is_mbox = name == kMbox;
  if (is_mbox) PLAYFS_ATTEMPT_CHECK(mail::load_library());
  const content::Reduce of_thread = is_mbox ? letter_of_record : shown_of_message;
  PLAYFS_ATTEMPT(RecordPartPtr thread, is_look ? part_here(mount(), op, "threads", thread_, of_thread)
                                               : known_part(mount(), op, "threads", thread_, of_thread));
  PLAYFS_ATTEMPT(const ReadingPtr of, reading(op));
  // The messages come with the list. Reread one page of it each time, to find changes of older ones.
  if (is_look) mount().site().names_were_shown("messages");
  const std::string head = name == kForPeople ? messages_text(thread->record, {}, 0, true) : std::string();
  PLAYFS_ATTEMPT(const std::shared_ptr<GrowingFile> file, grown(op, name, head, *of));
  if (file) return grown_file(op, file);
  std::size_t older = 0;
  PLAYFS_ATTEMPT(std::vector<RecordPartPtr> shown, newest(op, of->messages, shown_in(name), older));
  if (older > 0 && !told_.exchange(true)) {
    std::string message = "shows only the newest " + std::to_string(shown.size()) + " messages of the thread; " +
                          std::to_string(older) + " older ones are left out";
    Error cut{ErrorCode::refused_input, std::move(message), "read them in messages/, one file each"};
    mount().site().events().error(path_below(name), cut);
  }
  const std::size_t bytes = size_of_messages(shown) + (is_mbox ? shown.size() * kLetterBytes : 0);
  auto render = [name, domain = mail::domain_of(mount().options().mount_source), record = thread->record, shown, older,
                 is_whole = mount().site().is_list_whole("messages")] {
    if (name == kForPeople) return messages_text(record, shown, older, is_whole);
    if (name != kMbox) return messages_ndjson(shown);
    return thread_mbox(shown, {"messages", domain, subject_of(record), text_field(record.fields, "kind")});
  };
  PLAYFS_ATTEMPT(std::string text, rendered(mount(), op, name, bytes, std::move(render)));
  const ThreadPart part{of->messages, 0, older};
  const auto basis = std::make_shared<const ThreadBasis>(part, head, times_of_lines(shown).last);
  return growing_file(op, name, text, {basis, of->number});
}

MessagesDirectory::MessagesDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), thread_(std::move(thread)) {}

Attempt<ListedNames> MessagesDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_of_here(mount(), op, "messages", thread_));
  return derived_.of(list, [](const std::vector<content::Listed>& messages) {
    std::vector<ListedName> names;
    // Oldest first: new ones are added at the end.
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      if (!names_a_file(message->id)) continue;
      names.push_back({message->id + ".json", S_IFREG, kFirstPosition + names.size()});
    }
    return names;
  });
}

Attempt<LookupResult> MessagesDirectory::child(const OperationPtr& op, const std::string& name) {
  auto stem = stem_of(name);
  if (!stem) return nothing(kEndless);
  PLAYFS_ATTEMPT(RecordPartPtr part, shown_record(op, "messages", *stem));
  if (text_field(part->record.fields, "thread") != thread_) return nothing();
  return record_file(op, name, {"messages", *stem, shown_text_of(mount(), "messages", *stem, text_of_record, *part)},
                     record_time(part->record));
}

}  // namespace playfs::vfs
