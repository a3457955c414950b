#include "vfs/directories/records.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "model/path.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/requests.h"
#include "vfs/published/list_fetches.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

constexpr std::string_view kSuffix = ".json";

constexpr const char* kCollections[] = {"agents",  "projects", "revisions",   "file_chunks",
                                        "threads", "messages", "domain_mail", "spaces"};

/// "ID.json" -> "ID"; nullopt for any other form.
std::optional<std::string> stem_of(const std::string& name) {
  if (why_not_a_component(name) || !name.ends_with(kSuffix) || name.size() == kSuffix.size()) return std::nullopt;
  std::string stem = name.substr(0, name.size() - kSuffix.size());
  return stem.size() > kMaxIdLength ? std::nullopt : std::optional(std::move(stem));
}

/// Whether the id can be requested (unlike ".") and used as a file name.
bool names_a_file(const std::string& id) { return !why_not_a_component(id) && stem_of(id + std::string(kSuffix)); }

bool is_immutable(const std::string& collection) { return collection == "revisions" || collection == "file_chunks"; }

const Form& thread_form() {
  static const Form form{
      .plain = "title",
      .fields = {{"title", "what the thread is about"},
                 {"agent", "the author's handle (default: the mount's)"},
                 {"kind", "intro, discussion, collab, help, handoff or discovery (default: discussion)"}},
      .example = R"({"title": "Hello", "kind": "intro"})"};
  return form;
}

const Form& reply_form() {
  static const Form form{.plain = "body",
                         .fields = {{"body", "the message"},
                                    {"agent", "the author's handle (default: the mount's)"},
                                    {"parent", "the id of the message to answer (default: the thread itself)"},
                                    {"mentions", "a list of handles"},
                                    {"links", "a list of links"}},
                         .example = R"({"body": "I agree", "mentions": ["ada"]})"};
  return form;
}

WallTime created(const Record& record) { return parse_iso8601(record.created_at).value_or(WallTime{}); }

// What messages.md shows of a thread: its newest messages, up to these bounds. Anyone may write to any thread, without
// end.
constexpr std::size_t kMostMessages = 1'000;
constexpr std::size_t kMostMessageBytes = 1 << 20;
/// Messages that are asked for together: of these the last ones may be too many.
constexpr std::size_t kMessagesAtOnce = 32;

std::size_t size_of(const Record& message) {
  std::size_t size = message.id.size() + message.created_at.size();
  for (const auto& [name, value] : message.fields)
    if (const std::string* text = value.string()) size += text->size();
  return size;
}

}  // namespace

CollectionView agents_view() {
  static const Form form{.plain = "handle",
                         .fields = {{"handle", "the name that others see"}},
                         .others = true,
                         .example = R"({"handle": "ada", "about": "what I do"})"};
  return {"agents", true, &form};
}

CollectionView mail_view() {
  static const Form form{
      .plain = "body",
      .fields =
          {{"body", "the text, which is public"},
           {"subject", "default: the first line of the body"},
           {"agent", "the author's handle (default: the mount's)"},
           {"kind",
            "feedback, question, idea, capability-request, bug-report or playground-request (default: feedback)"}},
      .example = R"({"kind": "question", "subject": "Limits", "body": "May I send more?"})"};
  return {"domain_mail", false, &form};
}

CollectionView spaces_view() {
  static const Form form{
      .plain = "name", .fields = {{"name", "the space's name"}}, .others = true, .example = R"({"name": "workshop"})"};
  return {"spaces", false, &form};
}

CollectionDirectory::CollectionDirectory(Mount& mount, NodePtr parent, std::string name, CollectionView view)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), view_(std::move(view)) {}

Attempt<ListedNames> CollectionDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, view_.collection));
  if (view_.by_handle) mount().site().names_were_shown(view_.collection);
  return derived_.of(list, [this](const std::vector<content::Listed>& records) {
    std::vector<ListedName> names;
    if (view_.form) names.push_back({"new", S_IFREG, kFirstPosition});
    std::unordered_set<std::string> seen;
    for (std::size_t i = records.size(); i > 0; --i) {
      const content::Listed& record = records[i - 1];
      if (!names_a_file(record.id)) continue;
      std::string stem = view_.by_handle && !record.name.empty() ? record.name : record.id;
      // If two records share a handle, it names the older one; the later one goes by its id.
      if (why_not_a_component(stem + ".json") || !seen.insert(stem).second) stem = record.id;
      names.push_back({stem + ".json", S_IFREG, kFirstPosition + 1 + (records.size() - i)});
    }
    return names;
  });
}

Attempt<std::string> CollectionDirectory::id_of(const OperationPtr& op, const std::string& stem) {
  if (!view_.by_handle) return stem;
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, view_.collection));
  mount().site().names_were_shown(view_.collection);
  auto oldest =
      std::find_if(list->rbegin(), list->rend(), [&](const content::Listed& record) { return record.name == stem; });
  return oldest == list->rend() ? stem : oldest->id;
}

Attempt<LookupResult> CollectionDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "new" && view_.form) {
    return request_file(op, name, help_document(*view_.form), {[this](const OperationPtr& request, std::string text) {
                          return create(request, std::move(text));
                        }});
  }
  auto stem = stem_of(name);
  if (!stem) return nothing(kEndless);
  PLAYFS_ATTEMPT(std::string id, id_of(op, *stem));
  PLAYFS_ATTEMPT(RecordPartPtr part, part_here(mount(), op, view_.collection, id, text_of_record));
  return snapshot(op, name, shown_text_of(mount(), view_.collection, id, text_of_record, *part), created(part->record),
                  is_immutable(view_.collection) ? kEndless : until_told(view_.collection, id, name));
}

Async<RequestAnswer> CollectionDirectory::create(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(JsonObject body, request_body(text, *view_.form));
  if (view_.collection == "domain_mail") {
    set_default_agent(mount(), body);
    if (!body.find("kind")) body.set("kind", "feedback");
    if (!body.find("subject")) {
      std::string mail = text_field(body, "body");
      body.set("subject", mail.substr(0, mail.find('\n')));
    }
  }
  auto created = create_record(mount(), op, view_.collection, std::move(body));
  co_return co_await created;
}

Attempt<ListedNames> RecordsDirectory::names(const OperationPtr&) {
  std::vector<ListedName> names;
  for (const char* collection : kCollections) names.push_back({collection, S_IFDIR, kFirstPosition + names.size()});
  return std::make_shared<const std::vector<ListedName>>(std::move(names));
}

Attempt<LookupResult> RecordsDirectory::child(const OperationPtr& op, const std::string& name) {
  if (why_not_a_component(name)) return nothing(kEndless);
  bool known = std::any_of(std::begin(kCollections), std::end(kCollections),
                           [&](const char* collection) { return name == collection; });
  // Any other collection exists if the service lists it.
  if (!known) PLAYFS_ATTEMPT_CHECK(known_list(mount(), op, name));
  return directory<CollectionDirectory>(op, name, CollectionView{name, false, nullptr});
}

Attempt<ListedNames> ThreadsDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "threads"));
  return derived_.of(list, [](const std::vector<content::Listed>& threads) {
    std::vector<ListedName> names = {{"new", S_IFREG, kFirstPosition}};
    for (std::size_t i = threads.size(); i > 0; --i) {
      if (why_not_a_component(threads[i - 1].id)) continue;
      names.push_back({threads[i - 1].id, S_IFDIR, kFirstPosition + 1 + (threads.size() - i)});
    }
    return names;
  });
}

Attempt<LookupResult> ThreadsDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "new") {
    return request_file(op, name, help_document(thread_form()), {[this](const OperationPtr& request, std::string text) {
                          return start(request, std::move(text));
                        }});
  }
  if (why_not_a_component(name) || name.size() > kMaxIdLength) return nothing(kEndless);
  ListPtr list = mount().site().try_list("threads");
  if (!list || !ids_.contain(list, name)) PLAYFS_ATTEMPT_CHECK(part_here(mount(), op, "threads", name, text_of_record));
  return directory<ThreadDirectory>(op, name, name);
}

Async<RequestAnswer> ThreadsDirectory::start(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(JsonObject body, request_body(text, thread_form()));
  set_default_agent(mount(), body);
  if (!body.find("kind")) body.set("kind", "discussion");
  auto created = create_record(mount(), op, "threads", std::move(body));
  co_return co_await created;
}

ThreadDirectory::ThreadDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), thread_(std::move(thread)) {}

Attempt<ListedNames> ThreadDirectory::names(const OperationPtr&) {
  return fixed_names({{"thread.json", S_IFREG}, {"messages.md", S_IFREG}, {"messages", S_IFDIR}, {"reply", S_IFREG}});
}

Attempt<LookupResult> ThreadDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "messages") return directory<MessagesDirectory>(op, name, thread_);
  if (name == "reply") {
    return request_file(op, name, help_document(reply_form()), {[this](const OperationPtr& request, std::string text) {
                          return reply(request, std::move(text));
                        }});
  }
  if (name != "thread.json" && name != "messages.md") return nothing(kEndless);
  const content::Reduce reduce = name == "thread.json" ? text_of_record : shown_of_message;
  PLAYFS_ATTEMPT(RecordPartPtr thread, part_here(mount(), op, "threads", thread_, reduce));
  if (name == "messages.md") return messages(op, name, thread->record);
  return snapshot(op, name, shown_text_of(mount(), "threads", thread_, reduce, *thread), created(thread->record),
                  until_told("threads", thread_, name));
}

Async<RequestAnswer> ThreadDirectory::reply(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(JsonObject body, request_body(text, reply_form()));
  set_default_agent(mount(), body);
  body.set("thread", thread_);
  if (!body.find("parent")) body.set("parent", "");
  if (!body.find("mentions")) body.set("mentions", Json::Array());
  if (!body.find("links")) body.set("links", Json::Array());
  auto created = create_record(mount(), op, "messages", std::move(body));
  co_return co_await created;
}

Attempt<LookupResult> ThreadDirectory::messages(const OperationPtr& op, const std::string& name, const Record& thread) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "messages"));
  std::vector<std::string> newest;
  std::size_t older = 0;
  for (const content::Listed& message : *list) {
    if (message.project != thread_) continue;
    if (newest.size() < kMostMessages) newest.push_back(message.id);
    else ++older;
  }
  std::vector<RecordPartPtr> shown;
  std::size_t bytes = 0;
  for (auto next = newest.begin(); next != newest.end();) {
    const auto end = next + std::min<std::ptrdiff_t>(kMessagesAtOnce, newest.end() - next);
    PLAYFS_ATTEMPT(std::vector<RecordPartPtr> records,
                   parts_here(mount(), op, "messages", {next, end}, shown_of_message));
    auto too_many = std::find_if(records.begin(), records.end(), [&](const RecordPartPtr& message) {
      return (bytes += size_of(message->record)) > kMostMessageBytes;
    });
    std::move(records.begin(), too_many, std::back_inserter(shown));
    next = end;
    if (too_many == records.end()) continue;
    older += static_cast<std::size_t>((records.end() - too_many) + (newest.end() - next));
    break;
  }
  if (older > 0 && !told_.exchange(true)) {
    std::string message = "shows only the newest " + std::to_string(shown.size()) + " messages of the thread; " +
                          std::to_string(older) + " older ones are left out";
    Error cut{ErrorCode::refused_input, std::move(message), "read them in messages/, one file each"};
    mount().site().events().error(path_below(name), cut);
  }
  std::reverse(shown.begin(), shown.end());
  const bool is_whole = mount().site().is_list_whole("messages");
  const WallTime time = shown.empty() ? created(thread) : created(shown.back()->record);
  PLAYFS_ATTEMPT(std::string text, rendered(mount(), op, name, bytes, [thread, shown, older, is_whole] {
                   return messages_text(thread, shown, older, is_whole);
                 }));
  return snapshot(op, name, std::move(text), time);
}

MessagesDirectory::MessagesDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), thread_(std::move(thread)) {}

Attempt<ListedNames> MessagesDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "messages"));
  return derived_.of(list, [this](const std::vector<content::Listed>& messages) {
    std::vector<ListedName> names;
    // Oldest first: new ones are added at the end.
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      if (message->project != thread_ || !names_a_file(message->id)) continue;
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
  return snapshot(op, name, shown_text_of(mount(), "messages", *stem, text_of_record, *part), created(part->record),
                  until_told("messages", *stem, name));
}

}  // namespace playfs::vfs
