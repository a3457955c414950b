#include "runtime/probe.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace playfs::runtime {

namespace {

namespace fs = std::filesystem;

constexpr char kAnswers = 'a', kDead = 'd';

/// Not with stat(2): the kernel may have cached the root's attributes, and answers even if the mount is dead or hangs.
bool is_dead(std::string path) {
  struct statfs usage {};
  while (statfs(path.c_str(), &usage) != 0) {
    // ECONNABORTED: the process ended during the request.
    if (errno == ENOTCONN || errno == ECONNABORTED) return true;
    if (errno != ENOENT || path == "/") return false;
    path = fs::path(path).parent_path().string();  // a file to be created there would be in the same file system
  }
  return false;
}

std::string real_path_of(const std::string& path) {
  std::error_code unresolved;
  if (leads_up(path)) {
    auto real = fs::canonical(path, unresolved);
    return unresolved ? path : real.string();
  }
  if (auto real = fs::weakly_canonical(path, unresolved); !unresolved) return real.string();
  auto parent = fs::canonical(fs::path(path).parent_path(), unresolved);
  return unresolved ? path : (parent / fs::path(path).filename()).string();
}

}  // namespace

Probe::Probe(std::string path)
    : path_(std::move(path)),
      child_([this] { return (is_dead(path_) ? kDead : kAnswers) + real_path_of(path_); }, kPatience) {}

Probe::Answer Probe::found() {
  const std::string text = child_.answer().value_or("");
  if (text.empty()) return {State::silent, path_};
  return {text[0] == kDead ? State::dead : State::answers, text.substr(1)};
}

Probe::Answer look_at(std::string path, const std::vector<MountEntry>& mounted) {
  constexpr std::array<std::string_view, 6> over_the_network = {"nfs", "cifs", "smb", "9p", "ceph", "afs"};
  const bool may_hang = std::any_of(mounted.begin(), mounted.end(), [&](const MountEntry& each) {
    const std::string_view type = each.type;
    return type == "fuse" || type == "fuseblk" || type.starts_with("fuse.") ||
           std::any_of(over_the_network.begin(), over_the_network.end(),
                       [&](std::string_view one) { return type.starts_with(one); });
  });
  if (may_hang) return look_at(std::move(path));
  return {Probe::State::answers, real_path_of(path)};
}

tl::unexpected<Error> silence_of(const std::string& path) {
  return fail(ErrorCode::timed_out, path + " does not answer: the process of a mount at or above it hangs",
              "kill that process, or detach the mount with fusermount3 -u -z DIR (findmnt -t fuse lists mounts)");
}

}  // namespace playfs::runtime
