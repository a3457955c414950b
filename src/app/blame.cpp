#include "app/blame.h"

#include <algorithm>
#include <utility>

#include "app/renames.h"
#include "model/merge.h"

namespace playfs::app {

namespace {

std::vector<std::string> lines_in(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// A version is taken again if a newer one by its date turns out to be its child: dates are strangers', too. Twice is
/// rare, and a cycle of parents has to end.
constexpr unsigned kMostOften = 8;

Error no_such_file(const std::string& path) { return {ErrorCode::not_found, "there is no file '" + path + "'"}; }

}  // namespace

std::vector<std::size_t> numbers_before(const compare::TextDiff& diff, std::size_t lines) {
  std::vector<std::size_t> numbers(lines + 1, 0);
  std::size_t next = 1, next_before = 1;
  auto unchanged_up_to = [&](std::size_t line) {
    while (next < line && next <= lines) numbers[next++] = next_before++;
  };
  for (const compare::DiffHunk& hunk : diff.hunks) {
    for (const compare::DiffLine& line : hunk.lines) {
      if (line.sign == '-') {
        // Between hunks both numbers move on alike.
        unchanged_up_to(next + static_cast<std::size_t>(line.old_number) - next_before);
        ++next_before;
      } else {
        unchanged_up_to(static_cast<std::size_t>(line.new_number));
        if (line.sign == ' ') unchanged_up_to(next + 1);
        else ++next;
      }
    }
  }
  unchanged_up_to(lines + 1);
  return numbers;
}

Status Blame::read(Version& version) {
  if (version.text) return {};
  PLAYFS_TRY(auto text, version.tree->content(version.path, &version.entry));
  if (!text) return fail(no_such_file(version.path));
  version.text = std::move(text);
  return {};
}

/// nullptr if it has no such file. `child`: the version that has it as a parent, if there is one.
Result<Blame::VersionPtr> Blame::version_of(ShownRevisionPtr revision, const std::string& path, const Version* child) {
  auto version = std::make_shared<Version>();
  PLAYFS_TRY(version->tree, tree_of_(revision->revision.id.text()));
  version->path = path;
  PLAYFS_TRY(auto entry, version->tree->entry_at(path));
  if (!entry && child) {
    PLAYFS_TRY(auto old_path, old_path_of(child->path, *version->tree, *child->tree));
    if (!old_path) return VersionPtr();
    version->path = *std::move(old_path);
    PLAYFS_TRY(entry, version->tree->entry_at(version->path));
  }
  if (!entry) return VersionPtr();
  version->entry = *std::move(entry);
  version->parents = revision->revision.parents;
  left_out_ = left_out_ || revision->more_parents > 0;
  version->revision = std::move(revision);
  return version;
}

/// The same file in a parent of the revision that `child` is of; nullptr if there is none.
Result<Blame::VersionPtr> Blame::version_in(const RevisionId& revision, const Version& child) {
  auto found = found_.find(revision);
  if (found == found_.end()) {
    if (revisions_.was_absent(revision)) return VersionPtr();
    PLAYFS_TRY(auto shown, revisions_.find(revision));
    auto kept = shown ? std::make_shared<const ShownRevision>(*std::move(shown)) : nullptr;
    found = found_.emplace(revision, std::move(kept)).first;
  }
  if (!found->second) return VersionPtr();
  // Most often it is there under the same path, perhaps as another child's parent, too.
  Order order{found->second->revision.created_at, {revision, child.path}};
  if (auto waiting = waiting_.find(order); waiting != waiting_.end()) return waiting->second;
  PLAYFS_TRY(VersionPtr version, version_of(found->second, child.path, &child));
  if (!version) return version;
  order.second.second = version->path;
  if (taken_[order] == kMostOften) return VersionPtr();
  return waiting_.emplace(order, std::move(version)).first->second;
}

/// Gives the lines that a parent has, too, to the parent's version; keeps the rest.
Status Blame::pass_on(Version& version) {
  budget_.next_revision();
  std::vector<VersionPtr> parents;
  for (std::size_t i = 0; i < version.parents.size(); ++i) {
    if (!found_.contains(version.parents[i]) && !budget_.allows(i)) {
      left_out_ = true;
      break;
    }
    PLAYFS_TRY(VersionPtr parent, version_in(version.parents[i], version));
    if (!parent) continue;
    if (parent->entry.same_content(version.entry)) {
      parent->lines.insert(parent->lines.end(), version.lines.begin(), version.lines.end());
      version.lines.clear();
      return {};
    }
    parents.push_back(std::move(parent));
  }
  for (const VersionPtr& parent : parents) {
    if (version.lines.empty()) return {};
    PLAYFS_CHECK(read(version));
    PLAYFS_CHECK(read(*parent));
    PLAYFS_TRY(const auto diff, compare::diff_texts(*parent->text, *version.text));
    const auto before = numbers_before(diff, count_lines(*version.text));
    std::erase_if(version.lines, [&](const Line& line) {
      if (before[line.here] == 0) return false;
      parent->lines.push_back({before[line.here], line.last});
      return true;
    });
  }
  return {};
}

Result<std::vector<BlamedLine>> Blame::blame(const VersionPtr& last) {
  PLAYFS_CHECK(read(*last));
  for (std::string& line : lines_in(*last->text)) blamed_.push_back({std::move(line), nullptr, {}});
  for (std::size_t line = 1; line <= blamed_.size(); ++line) last->lines.push_back({line, line});
  for (VersionPtr version = last; version;) {
    if (!version->lines.empty()) PLAYFS_CHECK(pass_on(*version));
    for (const Line& line : version->lines) {
      blamed_[line.last - 1].revision = version->revision;
      blamed_[line.last - 1].path = version->path;
    }
    version = nullptr;
    if (waiting_.empty()) break;
    auto newest = waiting_.extract(std::prev(waiting_.end()));
    ++taken_[newest.key()];
    version = std::move(newest.mapped());
  }
  return std::move(blamed_);
}

Result<std::vector<BlamedLine>> Blame::lines_of(const std::string& path, const RevisionId& revision) {
  PLAYFS_TRY(auto shown, revisions_.find(revision));
  if (!shown) return fail(ErrorCode::not_found, "there is no revision " + revision.text());
  PLAYFS_TRY(auto last, version_of(std::make_shared<const ShownRevision>(*std::move(shown)), path, nullptr));
  if (!last) return fail(no_such_file(path));
  return blame(last);
}

Result<std::vector<BlamedLine>> Blame::lines_of(const std::string& path, const UnpublishedFile& file) {
  PLAYFS_TRY(auto entry, file.tree->entry_at(path));
  if (!entry) return fail(no_such_file(path));
  auto last = std::make_shared<Version>();
  last->tree = file.tree;
  last->parents = file.parents;
  last->path = path;
  last->entry = *std::move(entry);
  return blame(last);
}

}  // namespace playfs::app
