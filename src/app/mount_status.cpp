#include "app/mount_status.h"

#include "app/json_fields.h"

namespace playfs::app {

namespace {

/// A publication that waits for a rate limit or for the service may take hours, so it is not waited for.
bool makes_progress(const JsonObject& project) {
  const JsonObject* publication = object_of(project, "publication");
  if (publication == nullptr) return false;
  std::string phase = text_of(*publication, "phase");
  return !phase.empty() && phase != "idle" && object_of(*publication, "waiting_for") == nullptr;
}

void add_project(MountStatus& status, const JsonObject& project) {
  StagedProject found{text_of(project, "project"), text_of(project, "name")};
  if (const Json::Array* changes = array_of(project, "staged")) {
    for (const Json& change : *changes) {
      const JsonObject* fields = change.object();
      const Json* pending = fields != nullptr ? fields->find("pending") : nullptr;
      bool is_pending = pending != nullptr && pending->boolean().value_or(false);
      ++(is_pending ? found.pending : found.staged);
    }
  }
  if (makes_progress(project)) status.publishing = true;
  if (found.staged > 0 || found.pending > 0) status.staged.push_back(std::move(found));
}

}  // namespace

Result<MountStatus> read_mount_status(const std::string& mount_point) {
  PLAYFS_TRY(JsonObject own, read_json_object(mount_point + "/.playfs/status.json"));
  MountStatus status;
  status.pid = static_cast<pid_t>(number_of(own, "pid"));
  if (!text_of(own, "project").empty()) {
    auto project = read_json_object(mount_point + "/.playfs/project/status.json");
    if (project) add_project(status, *project);
    return status;
  }
  if (const Json::Array* projects = array_of(own, "projects_in_use")) {
    for (const Json& id : *projects) {
      if (id.string() == nullptr) continue;
      auto project = read_json_object(mount_point + "/projects/" + *id.string() + "/status.json");
      if (project) add_project(status, *project);
    }
  }
  return status;
}

bool is_told_of_changes(const std::string& mount_point) {
  auto status = read_json_object(mount_point + "/.playfs/status.json");
  return status && text_of(*status, "events") == "live";
}

}  // namespace playfs::app
