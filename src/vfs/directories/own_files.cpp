#include "vfs/directories/own_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "model/chunking.h"
#include "model/records.h"
#include "vfs/control/control_text.h"
#include "vfs/control/journal_entry.h"
#include "vfs/directories/project.h"
#include "vfs/mount.h"
#include "vfs/projects_in_use.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

/// How often a log is read, at most, during a burst of lines.
constexpr std::chrono::milliseconds kGather{50};

/// The service's documented limits: writes per hour and address.
constexpr std::pair<const char*, int> kWritesPerHour[] = {{"agents", 30},       {"projects", 60}, {"revisions", 60},
                                                          {"file_chunks", 240}, {"threads", 30},  {"messages", 120},
                                                          {"domain_mail", 30},  {"spaces", 30}};

/// The limits that were observed, whatever the documentation says.
Json observed_json(const std::map<std::string, remote::ObservedLimit>& seen) {
  JsonObject observed;
  for (const auto& [bucket, limit] : seen) {
    JsonObject announced;
    for (const auto& [name, value] : limit.announced) announced.set(name, value);
    JsonObject fields;
    if (!bucket.empty()) fields.set("writes_last_hour", limit.writes_last_hour);
    fields.set("refused", limit.refused);
    fields.set("last_refused", limit.last_refused ? Json(format_iso8601(*limit.last_refused)) : Json());
    fields.set("retry_after_s", limit.retry_after ? Json(std::int64_t{limit.retry_after->count()}) : Json());
    fields.set("announced", std::move(announced));
    observed.set(bucket.empty() ? "reads" : bucket, std::move(fields));
  }
  return observed;
}

bool is_log(const std::string& name) { return name == "events" || name == "errors.ndjson"; }

}  // namespace

Attempt<ListedNames> OwnDirectory::names(const OperationPtr&) {
  if (mount().options().project) {
    return fixed_names({{"status.json", S_IFREG},
                        {"limits.json", S_IFREG},
                        {"metrics", S_IFREG},
                        {"events", S_IFREG},
                        {"errors.ndjson", S_IFREG},
                        {"project", S_IFDIR}});
  }
  return fixed_names({{"status.json", S_IFREG},
                      {"limits.json", S_IFREG},
                      {"metrics", S_IFREG},
                      {"events", S_IFREG},
                      {"errors.ndjson", S_IFREG}});
}

Attempt<LookupResult> OwnDirectory::child(const OperationPtr& op, const std::string& name) {
  const WallTime now = mount().clock().wall();
  if (name == "status.json") return snapshot(op, name, wire::to_pretty_text(status_json()), now);
  if (name == "limits.json") return snapshot(op, name, wire::to_pretty_text(limits_json()), now);
  if (name == "metrics") {
    std::string text = mount().metrics().text();
    text += "# HELP playfs_nodes Nodes the kernel refers to.\n# TYPE playfs_nodes gauge\nplayfs_nodes ";
    text += std::to_string(mount().nodes().size());
    text +=
        "\n# HELP playfs_requests_total Requests sent to the service, retries included.\n# TYPE playfs_requests_total "
        "counter\n";
    text += "playfs_requests_total " + std::to_string(mount().site().client().health().requests) + "\n";
    text +=
        "# HELP playfs_events_live Whether the service tells of changes by itself.\n# TYPE playfs_events_live gauge\n";
    text += mount().site().events_state().is_live ? "playfs_events_live 1\n" : "playfs_events_live 0\n";
    return snapshot(op, name, std::move(text), now);
  }
  if (is_log(name)) return growing(op, name);
  // A mount of one work tree has no projects/, so its log and status are here.
  if (name == "project" && mount().options().project) {
    return directory<ProjectDirectory>(op, name, *mount().options().project);
  }
  if (!takes()) return nothing(kEndless);
  PLAYFS_ATTEMPT(NodePtr directory, kept(op));
  if (!directory) return nothing();
  return directory->lookup(op, name);
}

bool OwnDirectory::takes() const {
  const FileSystemOptions& options = mount().options();
  return options.project && !options.revision && !options.read_only;
}

bool OwnDirectory::is_own(const std::string& name) const {
  return name == "status.json" || name == "limits.json" || name == "metrics" || name == "project" || is_log(name);
}

Attempt<NodePtr> OwnDirectory::kept(const OperationPtr& op) {
  if (!takes()) return fail(refusal());
  PLAYFS_ATTEMPT(NodePtr root, parent()->target(op));
  PLAYFS_ATTEMPT(LookupResult found, root->lookup(op, name()));
  return found.node;
}

Attempt<NodePtr> OwnDirectory::kept_for(const OperationPtr& op, const std::string& changed) {
  if (is_own(changed)) return fail(refusal());
  PLAYFS_ATTEMPT(NodePtr directory, kept(op));
  if (directory) return directory;
  PLAYFS_ATTEMPT(NodePtr root, parent()->target(op));
  PLAYFS_ATTEMPT(LookupResult made, root->make_directory(op, name(), 0755));
  return made.node;
}

Attempt<AttributesReply> OwnDirectory::attributes(const OperationPtr& op) {
  PLAYFS_ATTEMPT(AttributesReply reply, VirtualDirectory::attributes(op));
  if (takes()) reply.attributes.mode |= S_IWUSR;
  return reply;
}

Attempt<AttributesReply> OwnDirectory::set_attributes(const OperationPtr& op, const SetAttributes& change) {
  // Apply to the work tree's directory, since tools that copy a tree set them last. This directory's own stay
  // unchanged.
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, {}));
  PLAYFS_ATTEMPT_CHECK(directory->set_attributes(op, change));
  return attributes(op);
}

Attempt<LookupResult> OwnDirectory::make_node(const OperationPtr& op, const std::string& name, mode_t mode,
                                              dev_t device) {
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, name));
  return directory->make_node(op, name, mode, device);
}

Attempt<LookupResult> OwnDirectory::make_directory(const OperationPtr& op, const std::string& name, mode_t mode) {
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, name));
  return directory->make_directory(op, name, mode);
}

Attempt<LookupResult> OwnDirectory::make_symlink(const OperationPtr& op, const std::string& name,
                                                 const std::string& target) {
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, name));
  return directory->make_symlink(op, name, target);
}

Attempt<LookupResult> OwnDirectory::link(const OperationPtr& op, const NodePtr& node, const std::string& name) {
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, name));
  return directory->link(op, node, name);
}

Attempt<void> OwnDirectory::unlink(const OperationPtr& op, const std::string& name) {
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, name));
  return directory->unlink(op, name);
}

Attempt<void> OwnDirectory::remove_directory(const OperationPtr& op, const std::string& name) {
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, name));
  return directory->remove_directory(op, name);
}

Attempt<void> OwnDirectory::rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                                   const std::string& new_name, unsigned flags) {
  const bool stays = new_parent.get() == this;
  if (stays && is_own(new_name)) return fail(refusal());
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, name));
  return directory->rename(op, name, stays ? directory : new_parent, new_name, flags);
}

Attempt<void> OwnDirectory::set_xattr(const OperationPtr& op, const std::string& name) {
  if (!takes()) return VirtualDirectory::set_xattr(op, name);
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, {}));
  return directory->set_xattr(op, name);
}

Attempt<void> OwnDirectory::remove_xattr(const OperationPtr& op, const std::string& name) {
  if (!takes()) return VirtualDirectory::remove_xattr(op, name);
  PLAYFS_ATTEMPT(NodePtr directory, kept_for(op, {}));
  return directory->remove_xattr(op, name);
}

Json OwnDirectory::status_json() const {
  Json::Array in_use;
  for (const ProjectId& project : mount().in_use().list()) in_use.emplace_back(project.text());
  const FileSystemOptions& options = mount().options();
  const auto trouble = mount().site().cache_trouble();
  const auto events = mount().site().events_state();
  Json::Array unsent;
  for (std::string& path : unsent_texts(mount().journal().unsent_directory())) unsent.emplace_back(std::move(path));
  return JsonObject{{"schema_version", kSchemaVersion},
                    {"mount_source", options.mount_source},
                    {"site", mount().site().client().site()},
                    {"version", options.version},
                    {"pid", std::int64_t{::getpid()}},
                    {"agent", options.agent},
                    {"agent_from", options.agent_from},
                    {"read_only", options.read_only},
                    {"project", options.project ? Json(options.project->text()) : Json()},
                    {"revision", options.revision ? Json(options.revision->text()) : Json()},
                    {"started", format_iso8601(mount().started())},
                    {"projects_in_use", std::move(in_use)},
                    {"unsent", std::move(unsent)},
                    {"events", events.is_live ? "live" : "polling"},
                    {"events_trouble", events.is_live ? Json() : Json(events.why_not)},
                    {"cache_trouble", trouble ? Json(trouble->message) : Json()},
                    {"health", health_json(mount().site().client().health())}};
}

Json OwnDirectory::limits_json() const {
  JsonObject writes;
  for (const auto& [collection, limit] : kWritesPerHour) writes.set(collection, limit);
  auto paused = mount().site().client().health().paused_until;
  return JsonObject{{"schema_version", kSchemaVersion},
                    {"record_bytes", std::uint64_t{kMaxRecordSize}},
                    {"chunk_text_bytes", std::uint64_t{kMaxChunkText}},
                    {"writes_per_hour", std::move(writes)},
                    {"observed", observed_json(mount().site().client().limits())},
                    {"paused_until", paused ? Json(format_iso8601(*paused)) : Json()}};
}

std::string OwnDirectory::log_text(const std::string& name) const {
  content::EventLog& log = mount().site().events();
  return name == "events" ? log.events_text() : log.errors_text();
}

Attempt<LookupResult> OwnDirectory::growing(const OperationPtr& op, const std::string& name) {
  listen();
  std::string latest = log_text(name);
  auto node = children().get<GrowingFile>(
      name, [&](GrowingFile& file) { return file.follow(latest); },
      [&] { return std::make_shared<GrowingFile>(mount(), shared_from_this(), name, latest); });
  return found(op, node, 0);
}

void OwnDirectory::listen() {
  if (listening_.exchange(true)) return;
  std::weak_ptr<Node> weak = weak_from_this();
  mount().site().events().on_append([this, weak, gate = mount().gate()] {
    auto ticket = gate->enter();
    auto self = ticket ? weak.lock() : nullptr;
    if (!self || update_due_.exchange(true)) return;
    mount().later(kGather, [this, weak] {
      if (auto still = weak.lock()) appended();
    });
  });
}

void OwnDirectory::appended() {
  update_due_ = false;
  for (const char* name : {"events", "errors.ndjson"}) {
    auto file = children().living<GrowingFile>(name);
    if (file && !file->follow(log_text(name))) mount().notifications().entry_changed(id(), name);
  }
}

}  // namespace playfs::vfs
