#include "vfs/directories/thread.h"

#include <algorithm>
#include <iterator>

#include "model/mentions.h"
#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/growing_file.h"
#include "vfs/control/requests.h"
#include "vfs/control/thread_text.h"
#include "vfs/directories/record_names.h"
#include "vfs/listings.h"
#include "vfs/published/list_fetches.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

/// Messages that are read together: of these the last ones may be too many.
constexpr std::size_t kMessagesAtOnce = 32;
/// How long the messages are kept current after the last look at them, if `refresh` is shorter.
constexpr std::chrono::minutes kFollowed{1};

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

bool grows(const std::string& name) { return name == "messages.md" || name == "messages.ndjson"; }

}  // namespace

Status complete_message(JsonObject& message) {
  const Json* body = message.find("body");
  if (!body || !body->string()) return fail(ErrorCode::invalid_argument, "\"body\" must be a text");
  if (const Json* parent = message.find("parent"); parent && !parent->string())
    return fail(ErrorCode::invalid_argument, "\"parent\" must be the id of a message");
  Json::Array mentions;
  for (std::string& handle : mentions_in(*body->string())) mentions.emplace_back(std::move(handle));
  if (!message.find("parent")) message.set("parent", "");
  if (!message.find("mentions")) message.set("mentions", std::move(mentions));
  if (!message.find("links")) message.set("links", Json::Array());
  PLAYFS_CHECK(make_list(message, "mentions"));
  return make_list(message, "links");
}

ThreadDirectory::ThreadDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), thread_(std::move(thread)) {}

Attempt<ListedNames> ThreadDirectory::names(const OperationPtr&) {
  return fixed_names({{"thread.json", S_IFREG},
                      {"messages.md", S_IFREG},
                      {"messages.ndjson", S_IFREG},
                      {"messages", S_IFDIR},
                      {"reply", S_IFREG}});
}

Attempt<LookupResult> ThreadDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "messages") return directory<MessagesDirectory>(op, name, thread_);
  if (name == "reply") {
    return request_file(op, name, help_document(reply_form()), {[this](const OperationPtr& request, std::string text) {
                          return reply(request, std::move(text));
                        }});
  }
  if (grows(name)) return messages(op, name);
  if (name != "thread.json") return nothing(kEndless);
  PLAYFS_ATTEMPT(RecordPartPtr thread, part_here(mount(), op, "threads", thread_, text_of_record));
  return record_file(op, name,
                     {"threads", thread_, shown_text_of(mount(), "threads", thread_, text_of_record, *thread)},
                     record_time(thread->record));
}

Async<RequestAnswer> ThreadDirectory::reply(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(JsonObject body, request_body(text, reply_form()));
  set_default_agent(mount(), body);
  body.set("thread", thread_);
  PLAYFS_CO_CHECK(complete_message(body));
  if (const std::string parent = text_field(body, "parent"); !parent.empty()) {
    auto reading = repeat([&] { return known_part(mount(), op, "messages", parent, text_of_record); });
    const Result<RecordPartPtr> part = co_await reading;
    const bool is_absent = !part && part.error().code == ErrorCode::not_found;
    if (!part && !is_absent) co_return fail(part.error());
    if (is_absent || text_field((*part)->record.fields, "thread") != thread_)
      co_return fail(ErrorCode::invalid_argument, "\"parent\" must be a message of this thread; nothing was sent",
                     "the ids are the names of the files in messages/, without \".json\"");
  }
  auto created = create_record(mount(), op, path_below("reply"), "messages", std::move(body));
  co_return co_await created;
}

Attempt<ThreadDirectory::ReadingPtr> ThreadDirectory::reading(const OperationPtr& op) {
  constexpr const char* kReading = "reading";
  if (auto made = op->held<Reading>(kReading)) return made;
  const std::uint64_t number = ++readings_;
  PLAYFS_ATTEMPT_CHECK(list_here(mount(), op, "messages"));
  // What we posted is shown in its place among what others did, or each would make a new file.
  auto made = std::make_shared<const Reading>(Reading{number, mount().site().try_list_as_read("messages")});
  op->hold(kReading, made);
  return made;
}

Attempt<std::vector<RecordPartPtr>> ThreadDirectory::newest(const OperationPtr& op, const ListPtr& list,
                                                            content::Reduce reduce, std::size_t& older) {
  // Their text comes with the list: a page of it at a time is read again for changes of older ones.
  if (!op->noted(kGoesOn)) mount().site().names_were_shown("messages");
  const std::vector<content::Listed> all = mount().messages_by_thread().of(list, thread_);
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

Attempt<LookupResult> ThreadDirectory::messages(const OperationPtr& op, const std::string& name) {
  // A text that grows by itself asks for nothing but what is new.
  const bool is_look = !op->noted(kGoesOn);
  if (is_look) looked();
  PLAYFS_ATTEMPT(RecordPartPtr thread, is_look ? part_here(mount(), op, "threads", thread_, shown_of_message)
                                               : known_part(mount(), op, "threads", thread_, shown_of_message));
  PLAYFS_ATTEMPT(const ReadingPtr of, reading(op));
  const bool is_for_people = name == "messages.md";
  std::size_t older = 0;
  PLAYFS_ATTEMPT(std::vector<RecordPartPtr> shown,
                 newest(op, of->list, is_for_people ? shown_of_message : line_of_message, older));
  if (older > 0 && !told_.exchange(true)) {
    std::string message = "shows only the newest " + std::to_string(shown.size()) + " messages of the thread; " +
                          std::to_string(older) + " older ones are left out";
    Error cut{ErrorCode::refused_input, std::move(message), "read them in messages/, one file each"};
    mount().site().events().error(path_below(name), cut);
  }
  std::size_t bytes = 0;
  for (const RecordPartPtr& message : shown) bytes += size_of_message(message->record);
  const bool is_whole = mount().site().is_list_whole("messages");
  PLAYFS_ATTEMPT(std::string text,
                 rendered(mount(), op, name, bytes, [is_for_people, record = thread->record, shown, older, is_whole] {
                   return is_for_people ? messages_text(record, shown, older, is_whole) : messages_ndjson(shown);
                 }));
  auto look = [weak = weak_from_this()] {
    auto self = std::static_pointer_cast<ThreadDirectory>(weak.lock());
    if (!self || !self->looked()) return;
    // A reader that was stopped for longer has missed changes of the list, and goes on with its file.
    self->read_if_old();
    self->listed_anew();
  };
  auto file = children().get<GrowingFile>(
      name, [&](GrowingFile& growing) { return growing.grow_to(text, of->number); },
      [&] { return std::make_shared<GrowingFile>(mount(), shared_from_this(), name, text, of->number, look); });
  // Who has just written looks for it.
  const std::string fact = "shown/" + name;
  if (is_look && !file->shows_its_size() && !op->noted(fact))
    return missing(until_kernel_knows(mount(), op, file->id(), fact));
  return found(op, file, 0);
}

bool ThreadDirectory::looked() {
  looked_at_ = mount().clock().steady();
  mount().site().follow_list("messages");
  if (follows_.exchange(true)) return false;
  mount().listings().given("messages", shared_from_this());
  follow();
  return true;
}

void ThreadDirectory::read_if_old() {
  if (!mount().site().is_list_fresh("messages"))
    mount().site().list("messages", mount().gate()->closing(), [](const Result<ListPtr>&) {});
}

void ThreadDirectory::follow() {
  mount().later(mount().options().refresh, [this, weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    const auto idle = mount().clock().steady() - looked_at_.load();
    if (idle > std::max<std::chrono::nanoseconds>(kFollowed, 2 * mount().options().refresh)) {
      follows_ = false;
      return;
    }
    read_if_old();
    follow();
  });
}

void ThreadDirectory::listed_anew() {
  if (is_due_.exchange(true)) return;
  mount().soon([this, weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    is_due_ = false;
    if (!follows_) return;
    mount().listings().given("messages", self);
    grow();
  });
}

void ThreadDirectory::grow() {
  auto self = std::static_pointer_cast<ThreadDirectory>(shared_from_this());
  for (const char* name : {"messages.md", "messages.ndjson"}) {
    if (!children().living<GrowingFile>(name)) continue;
    auto op = std::make_shared<Operation>(Caller());
    op->note(kGoesOn);
    drive<LookupResult>(
        mount(), Counted::lookup, op, [self, name](const OperationPtr& by) { return self->messages(by, name); },
        [self, name] { return self->path_below(name); }, Reply<LookupResult>([self](const Result<LookupResult>&) {}));
  }
}

MessagesDirectory::MessagesDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), thread_(std::move(thread)) {}

Attempt<ListedNames> MessagesDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "messages"));
  return derived_.of(list, [this, &list](const std::vector<content::Listed>&) {
    const std::vector<content::Listed> messages = mount().messages_by_thread().of(list, thread_);
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
  PLAYFS_ATTEMPT(RecordPartPtr part, part_here(mount(), op, "messages", *stem, text_of_record));
  if (text_field(part->record.fields, "thread") != thread_) return nothing();
  return record_file(op, name, {"messages", *stem, shown_text_of(mount(), "messages", *stem, text_of_record, *part)},
                     record_time(part->record));
}

}  // namespace playfs::vfs
