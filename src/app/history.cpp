#include "app/history.h"

#include <sys/xattr.h>

#include <cerrno>
#include <sstream>
#include <tuple>

#include "app/json_fields.h"
#include "base/await.h"
#include "base/fd.h"
#include "model/path.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestLog = 64 << 20;
constexpr std::size_t kLargestAttribute = 64 << 10;
/// Above this, the mount's log is read, which fetches many revisions at a time.
constexpr std::uint64_t kMany = 16;

std::optional<ShownRevision> revision_of_line(const std::string& line) {
  auto entry = wire::parse_json(line);
  const JsonObject* fields = entry ? entry->object() : nullptr;
  if (fields == nullptr) return std::nullopt;
  ShownRevision shown;
  Revision& revision = shown.revision;
  revision.id = RevisionId(text_of(*fields, "revision"));
  revision.agent = text_of(*fields, "agent");
  revision.message = text_of(*fields, "message");
  revision.created_at = parse_iso8601(text_of(*fields, "created_at")).value_or(WallTime{});
  if (const Json::Array* parents = array_of(*fields, "parents"))
    for (const Json& parent : *parents)
      if (parent.string() != nullptr) revision.parents.emplace_back(*parent.string());
  if (const Json* more = fields->find("more_parents"))
    shown.more_parents = static_cast<std::uint64_t>(more->integer().value_or(0));
  return shown;
}

/// The value of the attribute; nullopt if the file or the attribute does not exist.
Result<std::optional<std::string>> attribute(const std::string& path, const std::string& name) {
  std::string value(kLargestAttribute, '\0');
  ssize_t size = getxattr(path.c_str(), ("user.playfs." + name).c_str(), value.data(), value.size());
  if (size < 0 && (errno == ENOENT || errno == ENODATA)) return std::optional<std::string>();
  if (size < 0) return fail(error_from_errno(errno, "read " + name + " of " + path));
  value.resize(static_cast<std::size_t>(size));
  return std::optional(std::move(value));
}

class MountedRevisions final : public RevisionSource {
 public:
  MountedRevisions(std::string project_directory, std::uint64_t limit)
      : directory_(std::move(project_directory)), reads_log_(limit == 0 || limit > kMany) {}

  Result<std::optional<ShownRevision>> find(const RevisionId& id) override {
    if (std::exchange(reads_log_, false)) PLAYFS_CHECK(read_log());
    if (auto known = known_.find(id); known != known_.end()) return std::optional(known->second);
    if (why_not_a_component(id.text())) return std::optional<ShownRevision>();
    const std::string path = directory_ + "/revisions/" + id.text();
    PLAYFS_TRY(auto agent, attribute(path, "agent"));
    if (!agent) return std::optional<ShownRevision>();
    ShownRevision shown;
    Revision& revision = shown.revision;
    revision.id = id;
    revision.agent = *agent;
    PLAYFS_TRY(auto message, attribute(path, "message"));
    PLAYFS_TRY(auto created_at, attribute(path, "created_at"));
    PLAYFS_TRY(auto parents, attribute(path, "parents"));
    revision.message = message.value_or("");
    revision.created_at = parse_iso8601(created_at.value_or("")).value_or(WallTime{});
    PLAYFS_TRY(auto more_parents, attribute(path, "more_parents"));
    std::istringstream lines(parents.value_or(""));
    for (std::string line; std::getline(lines, line);) revision.parents.emplace_back(line);
    std::istringstream(more_parents.value_or("0")) >> shown.more_parents;
    return std::optional(std::move(shown));
  }

 private:
  Status read_log() {
    PLAYFS_TRY(std::string text, read_file(directory_ + "/log.ndjson", kLargestLog));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (auto shown = revision_of_line(line)) known_.emplace(shown->revision.id, *shown);
    return {};
  }

  const std::string directory_;
  bool reads_log_;
  std::map<RevisionId, ShownRevision> known_;
};

class RemoteRevisions final : public RevisionSource {
 public:
  explicit RemoteRevisions(runtime::ClientStack& stack) : stack_(stack) {}

  Result<std::optional<ShownRevision>> find(const RevisionId& id) override {
    auto revision = await<RevisionTreePtr>([&](auto done) { stack_.site().revision(id, {}, std::move(done)); });
    if (!revision && revision.error().code == ErrorCode::not_found) return std::optional<ShownRevision>();
    if (!revision) return fail(revision.error());
    return std::optional(as_shown((*revision)->revision));
  }

  /// The first few are asked for again: here nobody follows the service, and it may have been given them meanwhile.
  bool was_absent(const RevisionId& id) override {
    const bool is_known_absent = !stack_.site().try_revision(id) && stack_.site().was_absent_lately(id);
    return is_known_absent && ++absent_ > kAskedAgain;
  }

 private:
  static constexpr std::size_t kAskedAgain = 10;

  runtime::ClientStack& stack_;
  std::size_t absent_ = 0;
};

}  // namespace

std::unique_ptr<RevisionSource> mounted_revisions(const std::string& project_directory, std::uint64_t limit) {
  return std::make_unique<MountedRevisions>(project_directory, limit);
}

std::unique_ptr<RevisionSource> remote_revisions(runtime::ClientStack& stack) {
  return std::make_unique<RemoteRevisions>(stack);
}

bool History::Older::operator()(const ShownRevision& a, const ShownRevision& b) const {
  return std::tie(a.revision.created_at, a.revision.id) < std::tie(b.revision.created_at, b.revision.id);
}

Status History::add(const RevisionId& id) {
  if (id.empty() || !seen_.insert(id).second) return {};
  PLAYFS_TRY(auto shown, source_.find(id));
  if (!shown) return {};
  found_.insert(id);
  shown->revision.project = project_;
  next_.push(*std::move(shown));
  return {};
}

Result<std::optional<ShownRevision>> History::next() {
  if (next_.empty()) return std::optional<ShownRevision>();
  ShownRevision newest = next_.top();
  next_.pop();
  left_out_ = left_out_ || newest.more_parents > 0;
  budget_.next_revision();
  for (std::size_t i = 0; i < newest.revision.parents.size(); ++i) {
    const RevisionId& parent = newest.revision.parents[i];
    if (seen_.contains(parent)) continue;
    if (!budget_.allows(i)) {
      left_out_ = true;
      break;
    }
    if (!source_.was_absent(parent)) PLAYFS_CHECK(add(parent));
  }
  return std::optional(std::move(newest));
}

}  // namespace playfs::app
