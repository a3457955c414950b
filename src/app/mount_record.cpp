#include "app/mount_record.h"

#include <unistd.h>

#include <array>

#include "app/json_fields.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/private_place.h"
#include "base/shell.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

std::string path_of(const runtime::Places& places, const std::string& mount_point) {
  return places.state + "/mounts/" + runtime::as_component(mount_point) + ".json";
}

/// Device numbers are reused after a reboot. "" if the kernel does not say.
std::string this_boot() {
  auto id = read_file("/proc/sys/kernel/random/boot_id", 4096);
  return id ? id->substr(0, id->find('\n')) : std::string();
}

/// Flags that the kernel keeps and that are playfs options too.
std::vector<std::string> kernel_options(const runtime::MountEntry& mount) {
  std::string known;
  for (std::string_view name : {"ro", "noexec", "sync", "allow_other"})
    if (runtime::has_option(mount.options, name) || runtime::has_option(mount.super_options, name))
      known += (known.empty() ? "" : ",") + std::string(name);
  return known.empty() ? std::vector<std::string>() : std::vector<std::string>{known};
}

}  // namespace

Result<std::string> write_mount_record(const runtime::Places& places, const std::string& mount_point,
                                       MountRecord record) {
  PLAYFS_TRY(auto table, read_mount_table());
  const runtime::MountEntry* mount = runtime::mount_holding(table, mount_point);
  if (mount == nullptr || mount->mount_point != mount_point)
    return fail(ErrorCode::not_found, "no mount at " + mount_point);
  Json::Array options;
  for (std::string& list : record.options) options.emplace_back(std::move(list));
  JsonObject fields{{"source", std::move(record.source)},
                    {"store", std::move(record.store)},
                    {"options", std::move(options)},
                    {"device", mount->device},
                    {"boot", this_boot()}};
  PLAYFS_CHECK(make_private_directory_below(places.state, places.state + "/mounts"));
  PLAYFS_CHECK(write_file_atomically(path_of(places, mount_point), wire::to_text(Json(std::move(fields))) + "\n"));
  return mount->device;
}

void remove_mount_record(const runtime::Places& places, const std::string& mount_point, const std::string& device) {
  auto fields = read_json_object(path_of(places, mount_point));
  // Another mount may have taken the place of a detached one that ends only now.
  if (fields && !device.empty() && text_of(*fields, "device") != device) return;
  unlink(path_of(places, mount_point).c_str());
}

std::optional<MountRecord> read_mount_record(const runtime::Places& places, const std::string& mount_point) {
  auto fields = read_json_object(path_of(places, mount_point));
  if (!fields) return std::nullopt;
  MountRecord record{
      text_of(*fields, "source"), text_of(*fields, "store"), {}, text_of(*fields, "device"), text_of(*fields, "boot")};
  if (const Json::Array* options = array_of(*fields, "options"))
    for (const Json& list : *options)
      if (list.string()) record.options.push_back(*list.string());
  if (record.source.empty() || record.boot.empty() || record.boot != this_boot()) return std::nullopt;
  return record;
}

std::optional<MountRecord> record_of(const runtime::Places& places, const runtime::MountEntry& mount) {
  auto record = read_mount_record(places, mount.mount_point);
  if (!record || record->device != mount.device || mount.root != "/") return std::nullopt;
  return record;
}

std::string mount_command(const MountRecord& record, const std::string& mount_point) {
  ShellCommand mount{{"playfs", "mount"}, {record.source, mount_point}};
  for (const std::string& list : record.options) mount.words.insert(mount.words.end(), {"-o", list});
  return shell_line(mount);
}

std::string mount_command(const runtime::Places& places, const runtime::MountEntry& mount) {
  if (auto record = record_of(places, mount)) return mount_command(*record, mount.mount_point);
  return mount_command(MountRecord{mount.source, {}, kernel_options(mount), {}, {}}, mount.mount_point);
}

}  // namespace playfs::app
