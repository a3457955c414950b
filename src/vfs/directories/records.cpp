#include "vfs/directories/records.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "content/names.h"
#include "model/path.h"
#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/handles.h"
#include "vfs/control/requests.h"
#include "vfs/directories/links.h"
#include "vfs/directories/record_names.h"
#include "vfs/link_names.h"
#include "vfs/published/list_fetches.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

constexpr const char* kCollections[] = {"agents",  "projects", "revisions",   "file_chunks",
                                        "threads", "messages", "domain_mail", "spaces"};

bool is_immutable(const std::string& collection) { return collection == "revisions" || collection == "file_chunks"; }

/// The handle under which an agent's file can be listed; empty: none, for example if a terminal would not show the
/// handle as it is.
std::string_view handle_of(const content::Listed& agent) {
  const bool names_it =
      !agent.name.empty() && names_a_file(agent.name) && is_shown_as_it_is(agent.name) && names_a_file(agent.id);
  return names_it ? std::string_view(agent.name) : std::string_view();
}

/// If the record is absent, fails with `absent`, which the log gets too.
Fetch or_absent(const OperationPtr& op, Error absent, Fetch fetch) {
  return [op, absent = std::move(absent), fetch = std::move(fetch)](CancelToken cancel, Callback<void> done) mutable {
    fetch(std::move(cancel), [op, absent, done = std::move(done)](Status status) mutable {
      if (status || status.error().code != ErrorCode::not_found) return done(std::move(status));
      op->note(kRefused);
      done(fail(absent));
    });
  };
}

}  // namespace

CollectionView agents_view() {
  static const Form form{.plain = "handle",
                         .fields = {{"handle", "the name that others see; no other agent may have it"}},
                         .others = true,
                         .example = R"({"handle": "ada", "about": "what I do"})",
                         .corrected = "change it by writing JSON to agents/HANDLE.json"};
  return {"agents", false, true, &form, nullptr};
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
      .example = R"({"kind": "question", "subject": "Limits", "body": "May I send more?"})",
      .corrected = "its author, when signed in, can change it by writing JSON to mail/ID.json"};
  return {"domain_mail", false, false, &form, nullptr};
}

CollectionView spaces_view() {
  static const Form form{.plain = "name",
                         .fields = {{"name", "the space's name"}},
                         .others = true,
                         .example = R"({"name": "workshop", "layout": {"rooms": 2}})",
                         .corrected = "change it by writing JSON to spaces/ID.json"};
  return {"spaces", true, false, &form, nullptr};
}

CollectionDirectory::CollectionDirectory(Mount& mount, NodePtr parent, std::string name, CollectionView view)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), view_(std::move(view)) {}

Attempt<ListedNames> CollectionDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, view_.collection));
  if (view_.by_handle) mount().site().names_were_shown(view_.collection);
  const bool is_sure = is_sure_of_names();
  return derived_.of(list, [this, is_sure](const std::vector<content::Listed>& records) {
    std::vector<ListedName> names;
    if (view_.form) names.push_back({"new", S_IFREG, kFirstPosition});
    if (view_.by_name) names.push_back({"by-name", S_IFDIR, kFirstPosition + 1});
    std::unordered_map<std::string_view, const content::Listed*> holders;
    std::unordered_set<std::string_view> ids;
    if (view_.by_handle) {
      holders = content::holders_of(records, handle_of);
      for (const content::Listed& record : records) ids.insert(record.id);
    }
    for (std::size_t i = records.size(); i > 0; --i) {
      const content::Listed& record = records[i - 1];
      if (!names_a_file(record.id)) continue;
      const std::string_view handle = view_.by_handle && is_sure ? handle_of(record) : std::string_view();
      // A record is listed by its id if another record owns its handle or might, or has that handle as its id.
      const bool by_handle = !handle.empty() && holders.at(handle) == &record && !ids.contains(handle);
      const std::string& stem = by_handle ? record.name : record.id;
      names.push_back({stem + ".json", S_IFREG, kFirstPosition + 2 + (records.size() - i)});
    }
    return names;
  });
}

Attempt<std::string> CollectionDirectory::id_of(const OperationPtr& op, const std::string& stem) {
  if (!view_.by_handle) return stem;
  PLAYFS_ATTEMPT(ListPtr list, fresh_list(mount(), op, view_.collection));
  std::string id = id_in(*list, stem);
  if (id.empty()) {
    PLAYFS_ATTEMPT(list, list_here(mount(), op, view_.collection));
    id = id_in(*list, stem);
  }
  mount().site().names_were_shown(view_.collection);
  return id.empty() ? stem : id;
}

std::string CollectionDirectory::id_in(const std::vector<content::Listed>& list, const std::string& stem) const {
  // The service assigns ids, so they take precedence: no handle can hide the record with that id.
  if (std::any_of(list.begin(), list.end(), [&](const auto& record) { return record.id == stem; })) return stem;
  const content::Listed* holder = is_sure_of_names() ? content::holder_of(list, stem) : nullptr;
  return holder ? holder->id : std::string();
}

bool CollectionDirectory::is_sure_of_names() const { return mount().site().is_list_whole(view_.collection); }

Error CollectionDirectory::refusal() const {
  Error error = VirtualDirectory::refusal();
  if (view_.by_handle) error.hint.insert(0, "to register an agent, write its handle to agents/new; to change one, ");
  return error;
}

Attempt<LookupResult> CollectionDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "new" && view_.form) {
    return request_file(
        op, name, help_document(*view_.form),
        {.run = [this](const OperationPtr& request, std::string text) { return create(request, std::move(text)); },
         .creates = view_.collection});
  }
  if (name == "by-name" && view_.by_name) {
    auto link = [](const content::Listed& record) { return names_a_file(record.id) ? link_name(record.name) : ""; };
    return directory<LinksDirectory>(op, name, LinkView{view_.collection, link, "../", ".json"});
  }
  auto stem = stem_of(name);
  if (!stem) return nothing(kEndless);
  PLAYFS_ATTEMPT(std::string id, id_of(op, *stem));
  auto here = shown_record(op, view_.collection, id);
  if (!here && here.error().fetch && view_.by_handle)
    return missing(or_absent(op, not_registered(*stem, is_sure_of_names()), std::move(here).error().fetch));
  PLAYFS_ATTEMPT(RecordPartPtr part, std::move(here));
  ShownText text = shown_text_of(mount(), view_.collection, id, text_of_record, *part);
  const WallTime time = record_time(part->record);
  if (!view_.fixed) {
    ShownRecord record{view_.collection, id, std::move(text)};
    if (id != *stem) record.called = *stem;
    return record_file(op, name, std::move(record), time);
  }
  return snapshot(op, name, std::move(text), time,
                  is_immutable(view_.collection) ? kEndless : until_told(view_.collection, id, name), view_.fixed);
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
  auto created = create_record(mount(), op, path_below("new"), view_.collection, std::move(body));
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
  return directory<CollectionDirectory>(op, name, CollectionView{name});
}

}  // namespace playfs::vfs
