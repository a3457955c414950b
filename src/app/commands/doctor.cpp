// playfs doctor: checks and repairs what playfs keeps on this machine. Needs no service.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "app/commands/commands.h"
#include "app/mount_point.h"
#include "app/mount_record.h"
#include "app/mounted.h"
#include "app/tree_origin.h"
#include "base/clock.h"
#include "base/shell.h"
#include "base/sqlite.h"
#include "base/sqlite_copy.h"
#include "cache/record_index.h"
#include "publish/damaged_journal.h"
#include "publish/dry_run.h"
#include "publish/journal.h"
#include "runtime/credentials.h"
#include "runtime/probe.h"
#include "stage/store/repair.h"
#include "vfs/control/journal_entry.h"

namespace playfs::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRepair = "playfs doctor --repair";

enum class Finding {
  well,
  left,  ///< by a mount that was killed: the next one recovers it, nothing needs to be done
  mended,
  wrong,
};

const char* word_for(Finding finding) {
  switch (finding) {
    case Finding::well: return "well";
    case Finding::left: return "left";
    case Finding::mended: return "mended";
    case Finding::wrong: return "wrong";
  }
  return "";
}

/// The findings: printed at once for people, collected for programs.
class Findings {
 public:
  explicit Findings(Output& out) : out_(out) {}

  void add(Finding finding, std::string_view check, const std::string& place, const std::string& message,
           const std::string& hint = {}) {
    const char* word = word_for(finding);
    if (finding == Finding::left) ++left_;
    if (finding == Finding::mended) ++mended_;
    if (finding == Finding::wrong) ++wrong_;
    out_.line(fmt::format("{:<7} {}: {}", word, safe(place), safe(message)));
    if (!hint.empty()) out_.line("        → " + safe(hint));
    JsonObject fields{{"check", std::string(check)}, {"place", place}, {"finding", word}, {"message", message}};
    if (!hint.empty()) fields.set("hint", hint);
    list_.emplace_back(std::move(fields));
  }
  void add(std::string_view check, const std::string& place, const Error& error) {
    add(Finding::wrong, check, place, error.message, error.hint);
  }

  ExitCode end() {
    if (wrong_ > 0) out_.line(fmt::format("Problems found: {}.", wrong_));
    else out_.line(left_ == 0 ? "All is well." : "Nothing to do: the next mount recovers what is left.");
    out_.document(JsonObject{
        {"sound", wrong_ == 0}, {"wrong", wrong_}, {"left", left_}, {"mended", mended_}, {"findings", list_}});
    return wrong_ == 0 ? ExitCode::done : ExitCode::failed;
  }

 private:
  Output& out_;
  Json::Array list_;
  std::uint64_t wrong_ = 0, left_ = 0, mended_ = 0;
};

bool is_own(const runtime::MountEntry& mount) {
  return runtime::has_option(mount.super_options, "user_id=" + std::to_string(geteuid()));
}

void look_at_mounts(Findings& findings, const runtime::Places& places, bool repair) {
  if (auto usable = check_fuse()) findings.add(Finding::well, "fuse", "/dev/fuse", "can be used");
  else findings.add("fuse", "/dev/fuse", usable.error());
  auto table = read_mount_table();
  if (!table) return findings.add("mounts", "/proc/self/mountinfo", table.error());
  std::vector<std::pair<const runtime::MountEntry*, runtime::Probe>>
      looked;  // all started at once: each may take until its timeout
  for (const runtime::MountEntry& mount : *table)
    if (mount.type == kMountType) looked.emplace_back(&mount, runtime::Probe(mount.mount_point));
  for (auto& [entry, probe] : looked) {
    const runtime::MountEntry& mount = *entry;
    const auto state = probe.found().state;
    if (state == runtime::Probe::State::silent) {
      findings.add("mount", mount.mount_point, runtime::silence_of(mount.mount_point).value());
    } else if (state == runtime::Probe::State::answers) {
      findings.add(Finding::well, "mount", mount.mount_point, mount.source + " is mounted, and its process is running");
    } else if (is_own(mount) && !record_of(places, mount)) {
      // Mounted with another state directory of this user, whose own doctor or mount may be about to recover it.
      findings.add(Finding::left, "mount", mount.mount_point,
                   "this mount's process died; it was not mounted with this state directory, so it is left alone",
                   "playfs umount " + shell_operand(mount.mount_point));
    } else if (!repair) {
      // Nobody can mount over another user's mount.
      findings.add(is_own(mount) ? Finding::left : Finding::wrong, "mount", mount.mount_point,
                   is_own(mount)
                       ? "this mount's process died; its staged changes are kept, and the next mount here recovers them"
                       : "the process of this mount, which belongs to another user, died; its staged changes are kept",
                   is_own(mount) ? mount_command(places, mount) : kRepair);
    } else if (auto detached = detach_dead_mount(mount.mount_point); !detached) {
      findings.add("mount", mount.mount_point, detached.error());
    } else {
      findings.add(Finding::mended, "mount", mount.mount_point, "detached the dead mount",
                   mount_command(places, mount));
    }
  }
}

/// Whether a place can be examined; in a mount that hangs, nothing can.
bool answers(Findings& findings, const std::string& path) {
  const bool is_silent = runtime::look_at(path).state == runtime::Probe::State::silent;
  if (is_silent) findings.add("place", path, runtime::silence_of(path).value());
  return !is_silent;
}

/// Checks that a file or directory is this user's and has no permission bits in `forbidden`. Returns whether it exists.
bool look_at_mode(Findings& findings, std::string_view check, const std::string& path, mode_t forbidden, bool repair) {
  struct stat attributes {};
  if (lstat(path.c_str(), &attributes) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) findings.add(check, path, error_from_errno(errno, "stat"));
    return false;
  }
  const bool is_file = check == "credentials";
  if (is_file ? !S_ISREG(attributes.st_mode) : !S_ISDIR(attributes.st_mode)) {
    findings.add(Finding::wrong, check, path, is_file ? "not a regular file" : "not a directory",
                 "mv " + path + " elsewhere");
    return false;
  }
  if (attributes.st_uid != geteuid()) {
    findings.add(Finding::wrong, check, path, fmt::format("belongs to user {}", attributes.st_uid),
                 fmt::format("sudo chown -R {} {}", geteuid(), path));
    return true;
  }
  const mode_t mode = attributes.st_mode & 07777;
  // This user's own bits may be missing too.
  const mode_t wanted = (mode & ~forbidden) | (is_file ? 0600 : 0700);
  if (mode == wanted) {
    findings.add(Finding::well, check, path, "owner and mode are correct");
  } else if (!repair) {
    findings.add(Finding::wrong, check, path, fmt::format("its mode is {:o}, but should be {:o}", mode, wanted),
                 kRepair);
  } else if (chmod(path.c_str(), wanted) != 0) {
    findings.add(check, path, error_from_errno(errno, "chmod"));
  } else {
    findings.add(Finding::mended, check, path, fmt::format("changed its mode from {:o} to {:o}", mode, wanted),
                 is_file && (mode & 044) != 0 ? "others could read the keys: create new ones" : "");
  }
  return true;
}

/// Does not ask the mounts, since any of them may hang.
void look_at_cache(Findings& findings, const std::string& directory) {
  const std::string meanwhile = "mounts work without the cache, but fetch more: ";
  struct statvfs disk {};
  if (statvfs(directory.c_str(), &disk) == 0 && (disk.f_flag & ST_RDONLY) != 0)
    return findings.add(Finding::wrong, "cache", directory, meanwhile + "its file system is read-only");
  if (access((directory + "/records.db").c_str(), F_OK) == 0) {
    auto index = cache::RecordIndex::open(directory);
    if (index) static_cast<void>((*index)->record("", "", ""));
    if (auto trouble = index ? (*index)->trouble() : std::optional(index.error()))
      return findings.add(Finding::wrong, "cache", directory, meanwhile + trouble->message);
  }
  findings.add(Finding::well, "cache", directory, "the contents were not checked", "playfs cache verify");
}

void look_at_places(Findings& findings, const runtime::Places& places, bool repair) {
  if (answers(findings, places.config)) {
    look_at_mode(findings, "place", places.config, 022, repair);
    look_at_mode(findings, "credentials", runtime::credentials_path(places), 077, repair);
  }
  if (answers(findings, places.data)) look_at_mode(findings, "place", places.data, 077, repair);
  if (answers(findings, places.cache) && look_at_mode(findings, "place", places.cache, 022, repair))
    look_at_cache(findings, places.cache);
}

/// Works on a copy: opening a journal upgrades it. `pending_tx`: the publication in progress, "" for none. Returns
/// whether the journal knows it.
bool look_at_journal(Findings& findings, const std::string& directory, const std::string& pending_tx) {
  const std::string path = directory + "/publish.db";
  struct stat attributes {};
  for (int number = 1;; ++number) {
    const std::string kept = fmt::format("{}/{}{}", directory, publish::kDamagedJournal, number);
    if (lstat(kept.c_str(), &attributes) != 0) break;
    findings.add(Finding::wrong, "journal", kept,
                 "a damaged publication journal was set aside here; the mount has looked for its commits at the "
                 "service, and its errors.ndjson says what became of them",
                 "check with playfs status that no publication is in progress, then rm -r " + shell_word(kept));
  }
  if (lstat(path.c_str(), &attributes) != 0) return false;
  bool knows = false;
  auto read = [&]() -> Status {
    PLAYFS_TRY(DatabaseCopy copy, DatabaseCopy::make(path));
    {
      PLAYFS_TRY(auto database, Database::open(copy.path(), Database::Durability::normal));
      PLAYFS_CHECK(database.check_integrity());
    }
    PLAYFS_TRY(auto journal, publish::Journal::open(copy.directory()));
    PLAYFS_TRY(auto front, journal->front());
    knows = front && front->tx == pending_tx;
    if (front) {
      PLAYFS_TRY([[maybe_unused]] auto totals, journal->totals(*front));
    }
    PLAYFS_TRY([[maybe_unused]] auto last, journal->last());
    PLAYFS_TRY([[maybe_unused]] auto sizes, journal->known_sizes());
    return {};
  }();
  if (read) findings.add(Finding::well, "journal", path, "can be read");
  else
    findings.add(Finding::wrong, "journal", path, "the publication journal cannot be read: " + read.error().message,
                 read.error().code == ErrorCode::not_supported ? "use the version of playfs that wrote it"
                 : read.error().code == ErrorCode::corrupt
                     ? "mount it: this sets the journal aside and looks for unfinished commits at the service"
                     : "make a copy of " + directory + " before you try anything else");
  return knows || !read;
}

void look_at_journals(Findings& findings, const std::string& directory, const std::string& pending_tx) {
  bool is_known = pending_tx.empty() || pending_tx == publish::kDryRunTx;
  for (const char* journal : {"/publication", "/journal"})
    is_known = look_at_journal(findings, directory + journal, pending_tx) || is_known;
  if (!is_known)
    findings.add(Finding::wrong, "journal", directory,
                 "a commit was started, but no journal has it, so it is unknown whether it was sent",
                 "mount it: this looks for the commit at the service, and stages it again if it is not there");
}

/// Reports the stage's health. True if it is sound, and can be examined further.
bool tell(Findings& findings, const std::string& directory, const stage::StageHealth& health) {
  if (health.in_use) {
    findings.add(Finding::well, "stage", directory,
                 "in use" + (health.holder.empty() ? "" : " by process " + health.holder) + ", so it was not checked",
                 "playfs umount DIR, then playfs doctor");
    return false;
  }
  if (health.database) {
    const bool newer = health.database->code == ErrorCode::not_supported;
    findings.add(
        Finding::wrong, "stage", directory,
        newer ? "stage.db was written by a newer version of playfs"
              : "the database of staged changes is damaged: " + health.database->message,
        newer ? health.database->hint
              : std::string(kRepair) +
                    " (sets it aside, with the staged bytes; then work/ shows head, and a clone compares every file)");
    return false;
  }
  if (!health.lost.empty())
    findings.add(Finding::wrong, "stage", directory,
                 fmt::format("a publication has started, but bytes of {} of its files are missing: {}",
                             health.lost.size(), health.lost.front()),
                 "look for them in " + directory + "/lost+found, and make a copy of " + directory);
  for (const std::string& path : health.gone)
    findings.add(Finding::wrong, "stage", directory,
                 "the bytes of a staged file are missing or truncated, so it cannot be read or published: " + path,
                 "put them back into " + directory + "/spool, or mount and rewrite or discard the file");
  if (!health.bad.empty())
    findings.add(Finding::wrong, "stage", directory,
                 fmt::format("{} spool files are not regular, private files of this user: {}/spool/{}",
                             health.bad.size(), directory, health.bad.front()),
                 kRepair);
  if (!health.orphans.empty())
    findings.add(Finding::wrong, "stage", directory,
                 fmt::format("{} spool files are not referenced", health.orphans.size()),
                 std::string(kRepair) + " (moves them to lost+found)");
  if (health.is_log_damaged)
    findings.add(
        Finding::wrong, "stage", directory,
        fmt::format("its operations log is damaged after {} intact operations; no mount opens it", health.operations),
        std::string(kRepair) +
            " (keeps the intact operations, and moves the rest to lost+found with a list of file names)");
  else if (health.has_changed_last)
    findings.add(Finding::wrong, "stage", directory, "the last operation in its log is damaged, and is ignored",
                 std::string(kRepair) + " (keeps a copy in lost+found)");
  else if (health.torn > 0)
    findings.add(
        Finding::left, "stage", directory,
        fmt::format(
            "the last {} bytes of its operations log are incomplete, as after a power loss; the next mount drops them",
            health.torn),
        std::string(kRepair) + " (first saves a copy in lost+found)");
  for (const Error& damage : health.damaged_checkpoints)
    findings.add(Finding::wrong, "stage", directory, damage.message,
                 "playfs checkpoint restore ID PATH brings back what is whole in it; nothing else needs it");
  if (health.is_sound())
    findings.add(Finding::well, "stage", directory,
                 fmt::format("sound, {} files with staged bytes", health.files) +
                     (health.checkpoints == 0 ? "" : fmt::format(", {} checkpoints", health.checkpoints)) +
                     (health.operations == 0 ? "" : fmt::format(", {} operations in its log", health.operations)));
  return true;
}

void look_at_stage(Findings& findings, const std::string& directory, const std::string& label, bool repair) {
  auto health = stage::examine(directory);
  if (health && repair && !health->in_use && !health->is_sound()) {
    auto folder = stage::repair(directory, label);
    if (!folder) return findings.add("stage", directory, folder.error());
    if (health->database && !folder->empty())
      findings.add(Finding::mended, "stage", directory,
                   "set the damaged database aside; the staged bytes are in " + *folder +
                       "/spool, and the names that could be recovered in " + *folder + "/names",
                   "less " + *folder + "/names");
    else if (!folder->empty())
      findings.add(Finding::mended, "stage", directory,
                   fmt::format("moved {} unreferenced spool files to {}", health->orphans.size(), *folder) +
                       (health->torn == 0 ? ""
                        : health->is_log_damaged
                            ? ", with a copy of the damaged operations log and a list of the files in \"names\""
                            : ", with a copy of the incomplete operations log"));
    health = stage::examine(directory);
  }
  if (!health) return findings.add("stage", directory, health.error());
  if (!tell(findings, directory, *health)) return;
  look_at_journals(findings, directory, health->pending_tx);
}

/// Every stage below `directory`: those of work trees and of unfinished imports.
void look_at_stages(Findings& findings, const std::string& directory, int depth, const std::string& label,
                    bool repair) {
  std::error_code problem;
  std::vector<std::string> below;
  for (fs::directory_iterator entry(directory, problem), end; !problem && entry != end; entry.increment(problem)) {
    std::error_code unknown;
    if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) below.push_back(entry->path().string());
  }
  if (problem && problem != std::errc::no_such_file_or_directory)
    return findings.add("stage", directory, error_from_errno(problem.value(), "list"));
  std::sort(below.begin(), below.end());
  for (const std::string& path : below) {
    if (stage::is_stage(path)) look_at_stage(findings, path, label, repair);
    else if (depth > 1 && !path.ends_with("/lost+found")) look_at_stages(findings, path, depth - 1, label, repair);
  }
}

/// The texts and records written to a mount that were not sent.
void look_at_requests(Findings& findings, const std::string& sites) {
  std::error_code problem;
  for (fs::directory_iterator site(sites, problem), end; !problem && site != end; site.increment(problem)) {
    const auto health = vfs::examine_journal(site->path().string() + "/work/=requests");
    for (const std::string& path : health.unsent)
      findings.add(Finding::wrong, "request", path, "this was written to a mount and not sent",
                   "if it has not arrived, write it to its control file; then rm " + shell_word(path));
    for (const std::string& path : health.damaged)
      findings.add(Finding::wrong, "request", path, "the journal of a request is damaged, so it will not be sent",
                   "mount the site: this moves it to unsent/, where what is left can be read");
  }
}

/// Of the clone that a command would find here.
void look_at_clone(Findings& findings, const std::string& place, const std::string& label, bool repair) {
  auto found = find_clone(place);
  if (!found) return findings.add("clone", place, found.error());
  if (*found) look_at_stages(findings, (*found)->root + "/" + kMarkFolder + "/state", 1, label, repair);
}

}  // namespace

Result<ExitCode> doctor(CommandContext& context, const DoctorArguments& arguments) {
  constexpr int kSiteProjectImport = 3;  // sites/SITE/work/PROJECT, sites/SITE/imports/PROJECT
  Findings findings(context.out);
  look_at_mounts(findings, context.places, arguments.repair);
  look_at_places(findings, context.places, arguments.repair);
  const std::string label = format_iso8601(context.io.clock.wall()).substr(0, 19);
  const std::string& state = context.places.state;
  if (answers(findings, state)) {
    look_at_mode(findings, "place", state, 077, arguments.repair);
    look_at_stages(findings, state + "/sites", kSiteProjectImport, label, arguments.repair);
    look_at_requests(findings, state + "/sites");
  }
  if (answers(findings, context.io.directory)) look_at_clone(findings, context.io.directory, label, arguments.repair);
  return findings.end();
}

}  // namespace playfs::app
