#include "vfs/directories/threads.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "model/kinds.h"
#include "model/path.h"
#include "vfs/control/control_text.h"
#include "vfs/control/record_fields.h"
#include "vfs/control/requests.h"
#include "vfs/directories/links.h"
#include "vfs/directories/thread.h"
#include "vfs/link_names.h"
#include "vfs/mount.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

/// The most kinds shown besides the known ones: strangers can invent any number.
constexpr std::size_t kMostKinds = 100;
constexpr std::uint64_t kFirstThread = kFirstPosition + 3;

const Form& thread_form() {
  static const Form threads{
      .plain = "title",
      .fields = {{"title", "what the thread is about"},
                 {"kind", "intro, discussion, collab, help, handoff or discovery (default: discussion)"},
                 {"agent", "the author's handle (default: the mount's)"},
                 {"body", "the thread's first message; @handle in it is a mention (default: none)"}},
      .example = R"({"title": "Hello", "kind": "intro", "body": "I am new here"})",
      .corrected = "correct it by writing JSON to threads/ID/thread.json"};
  return threads;
}

}  // namespace

Attempt<ListedNames> ThreadsDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "threads"));
  return derived_.of(list, [](const std::vector<content::Listed>& threads) {
    std::vector<ListedName> names = {{"new", S_IFREG, kFirstPosition},
                                     {"by-title", S_IFDIR, kFirstPosition + 1},
                                     {"by-kind", S_IFDIR, kFirstPosition + 2}};
    for (std::size_t i = threads.size(); i > 0; --i) {
      if (why_not_a_component(threads[i - 1].id)) continue;
      names.push_back({threads[i - 1].id, S_IFDIR, kFirstThread + (threads.size() - i)});
    }
    return names;
  });
}

Attempt<LookupResult> ThreadsDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "new") {
    return request_file(
        op, name, help_document(thread_form()),
        {.run = [this](const OperationPtr& request, std::string text) { return start(request, std::move(text)); },
         .creates = "threads"});
  }
  if (name == "by-title") {
    auto title = [](const content::Listed& thread) { return link_name(thread.name); };
    return directory<LinksDirectory>(op, name, LinkView{"threads", title, "../", ""});
  }
  if (name == "by-kind") return directory<ByKindDirectory>(op, name);
  if (why_not_a_component(name) || name.size() > kMaxIdLength) return nothing(kEndless);
  ListPtr list = mount().site().try_list("threads");
  if (!list || !ids_.contain(list, name)) PLAYFS_ATTEMPT_CHECK(part_here(mount(), op, "threads", name, text_of_record));
  return directory<ThreadDirectory>(op, name, name);
}

Async<RequestAnswer> ThreadsDirectory::start(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(JsonObject body, request_body(text, thread_form()));
  set_default_agent(mount(), body);
  if (!body.find("kind")) body.set("kind", kDefaultThreadKind);
  const Json* said = body.find("body");
  if (!said) {
    auto created = create_record(mount(), op, path_below("new"), "threads", std::move(body));
    co_return co_await created;
  }
  JsonObject message{{"body", *said}};
  if (const Json* agent = body.find("agent")) message.set("agent", *agent);
  body.erase("body");
  PLAYFS_CO_CHECK(complete_message(message));
  auto created = create_thread(mount(), op, path_below("new"), std::move(body), std::move(message));
  co_return co_await created;
}

Attempt<ListedNames> ByKindDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "threads"));
  return derived_.of(list, [](const std::vector<content::Listed>& threads) {
    std::set<std::string> others;
    for (const content::Listed& thread : threads) {
      if (!is_thread_kind(thread.kind) && others.size() < kMostKinds && !why_not_a_component(thread.kind))
        others.insert(thread.kind);
    }
    std::vector<ListedName> names;
    for (const std::string_view kind : kThreadKinds)
      names.push_back({std::string(kind), S_IFDIR, kFirstPosition + names.size()});
    for (const std::string& kind : others) names.push_back({kind, S_IFDIR, kFirstPosition + names.size()});
    return names;
  });
}

Attempt<LookupResult> ByKindDirectory::child(const OperationPtr& op, const std::string& name) {
  if (why_not_a_component(name)) return nothing(kEndless);
  if (!is_thread_kind(name)) {
    PLAYFS_ATTEMPT(ListPtr list, fresh_list(mount(), op, "threads"));
    auto has = [&](const content::Listed& thread) { return thread.kind == name; };
    if (std::none_of(list->begin(), list->end(), has)) return nothing();
  }
  auto id = [kind = name](const content::Listed& thread) { return thread.kind == kind ? thread.id : std::string(); };
  return directory<LinksDirectory>(op, name, LinkView{"threads", id, "../../", "", false});
}

}  // namespace playfs::vfs
