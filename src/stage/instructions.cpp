#include "stage/instructions.h"

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "stage/stage_state.h"

namespace playfs::stage {

namespace {

const std::string& as_line(const std::string& text) { return text; }
std::string as_line(std::uint64_t number) { return std::to_string(number); }

void put_set(Batch& batch, std::string_view key, const auto& items) {
  if (items.empty()) return batch.rows().drop_value(key);
  std::string text;
  for (const auto& each : items) text.append(text.empty() ? "" : "\n").append(as_line(each));
  batch.rows().put_value(key, text);
}

template <class Take>
void each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

constexpr const char* kHowToShow = "mount with -o instructions=show to see what is hidden";

Error is_hidden_here(std::string_view name) {
  return Error{ErrorCode::not_permitted,
               std::string(name) + " is published and hidden here: " + std::string(kWhyNoInstructions), kHowToShow};
}

}  // namespace

void InstructionFiles::load(const std::string& trusted, const std::string& concealed) {
  each_line(trusted, [&](std::string_view line) { trusted_.emplace(line); });
  each_line(concealed, [&](std::string_view line) {
    std::uint64_t ino = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), ino).ec == std::errc()) concealed_.insert(ino);
  });
}

bool InstructionFiles::shows(const FileEntry& entry) const {
  if (!hides_any()) return true;
  const auto content = instructions_identity(entry);
  if (!content) return false;
  return published_here_.contains(content->hex()) ||
         (shown_ == Instructions::hide_others && trusted_.contains(content->hex()));
}

bool InstructionFiles::shows(const Inode& inode) const {
  if (!hides_any()) return true;
  if (!inode.is_directory()) {
    if (!inode.is_below()) return !concealed_.contains(inode.ino);
    // Moved here, or with another mode: staged.
    const bool is_staged =
        inode.has_row && (!gives_instructions(inode.lower.path) || published_mode(inode) != inode.lower.entry->mode);
    return is_staged || shows(*inode.lower.entry);
  }
  const Directory& in = *inode.directory;
  for (const auto& [name, child] : in.children)
    if (shows(*child.inode)) return true;
  if (in.loaded || !in.lower) return in.children.empty();
  return shows(*in.lower, &in);
}

/// `over`: what covers some of its names.
bool InstructionFiles::shows(const Tree::Directory& directory, const Directory* over) const {
  if (published_here_.empty() && trusted_.empty()) return false;
  return std::any_of(directory.children.begin(), directory.children.end(), [&](const auto& each) {
    if (over && (over->children.contains(each.first) || over->whiteouts.contains(each.first))) return false;
    if (const auto* file = std::get_if<const FileEntry*>(&each.second)) return shows(**file);
    return shows(*std::get<std::unique_ptr<Tree::Directory>>(each.second), nullptr);
  });
}

void InstructionFiles::trust(Batch& batch, const ContentHash& content) {
  if (trusted_.contains(content.hex())) return;
  if (trusted_.size() >= kMostTrusted) trusted_.erase(trusted_.begin());
  // More than is on disk, if the batch fails: nothing but the author's own.
  trusted_.insert(content.hex());
  put_set(batch, kTrusted, trusted_);
}

void InstructionFiles::publish(Batch& batch, const ContentHash& content) {
  published_here_.insert(content.hex());
  trust(batch, content);
}

void InstructionFiles::conceal(Batch& batch, std::set<std::uint64_t> inos) {
  if (inos == concealed_) return;
  put_set(batch, kConcealed, inos);
  batch.after_commit([this, inos = std::move(inos)] { concealed_ = inos; });
}

// The stage's side.

namespace {
bool is_among_instructions(const Inode& directory) {
  for (const Inode* at = &directory; !at->names.empty(); at = at->names[0].directory)
    if (is_instructions_name(at->names[0].text)) return true;
  return false;
}
}  // namespace

bool Stage::State::is_hidden(const Inode& directory, std::string_view name, const Inode& inode) const {
  if (!instructions.hides_any()) return false;
  return (is_instructions_name(name) || is_among_instructions(directory)) && !instructions.shows(inode);
}

Status Stage::State::check_not_hidden(Inode& directory, std::string_view name) {
  if (!instructions.hides_any()) return {};
  const InodePtr there = find(directory, name);
  if (there && is_hidden(directory, name, *there)) return fail(is_hidden_here(name));
  return {};
}

void Stage::State::add_instructing(std::vector<Invalidation>& changed) {
  if (!instructions.hides_any()) return;
  std::set<std::pair<const Inode*, std::string>> added;
  for (std::size_t i = 0, given = changed.size(); i < given; ++i) {
    const auto within = path(*changed[i].directory);
    if (!within || !gives_instructions(*within)) continue;
    InodePtr directory = root;
    for (std::string_view left = *within; directory && !left.empty();) {
      const std::string name(left.substr(0, left.find('/')));
      left.remove_prefix(std::min(name.size() + 1, left.size()));
      InodePtr below = find(*directory, name);
      if (added.emplace(directory.get(), name).second) changed.push_back({directory, name, below});
      directory = below && below->is_directory() ? below : nullptr;
    }
  }
}

std::set<std::uint64_t> Stage::State::still_concealed() const {
  std::set<std::uint64_t> concealed;
  for (const std::uint64_t ino : instructions.concealed())
    if (by_ino.contains(ino)) concealed.insert(ino);
  return concealed;
}

void Stage::State::conceal_merged(Batch& batch, const Merged& merged) {
  std::set<std::uint64_t> concealed = still_concealed();
  std::optional<Survey> staged;
  for (const MergedPath& each : merged.paths) {
    if (!instructions.hides_any() || each.action != MergedPath::Action::put || !gives_instructions(each.path)) continue;
    // What is in conflict has to be seen to be resolved; and so has what was changed here.
    const auto is_it = [&](const auto& there) { return there.path == each.path; };
    if (merged.conflicted && std::any_of(merged.conflicted->begin(), merged.conflicted->end(), is_it)) continue;
    const InodePtr before = find(each.path).inode;
    if (!staged) staged = survey();
    const bool was_changed_here = std::any_of(staged->differences.begin(), staged->differences.end(), is_it);
    if (!before || !was_changed_here || !instructions.shows(*before)) concealed.insert(each.content->ino);
  }
  instructions.conceal(batch, std::move(concealed));
}

void Stage::State::unconceal() {
  if (instructions.concealed().empty()) return;
  Batch batch = rows->begin();
  instructions.conceal(batch, {});
  if (auto done = batch.commit(); !done)  // as on a full disk
    log_warning("staged instructions may be hidden at the next start: " + done.error().message);
}

std::vector<std::string> Stage::State::hidden() const {
  std::vector<std::string> paths;
  if (!instructions.hides_any()) return paths;
  struct Place {
    const Inode* inode;            ///< nullptr: as published
    const Tree::Directory* lower;  ///< only without an inode
    std::string path;
    bool is_among;  ///< something above gives instructions
  };
  std::vector<Place> left = {{root.get(), nullptr, "", false}};
  auto look_below = [&](const Place& at, const Tree::Directory& lower, const Directory* over) {
    mutex.assert_held();
    for (const auto& [name, child] : lower.children) {
      if (over && (over->children.contains(name) || over->whiteouts.contains(name))) continue;
      const bool is_among = at.is_among || is_instructions_name(name);
      if (const auto* file = std::get_if<const FileEntry*>(&child)) {
        if (is_among && !instructions.shows(**file)) paths.push_back(join_path(at.path, name));
      } else {
        left.push_back(
            {nullptr, std::get<std::unique_ptr<Tree::Directory>>(child).get(), join_path(at.path, name), is_among});
      }
    }
  };
  while (!left.empty()) {
    const Place at = std::move(left.back());
    left.pop_back();
    if (!at.inode) {
      look_below(at, *at.lower, nullptr);
      continue;
    }
    const Directory& in = *at.inode->directory;
    for (const auto& [name, child] : in.children) {
      const bool is_among = at.is_among || is_instructions_name(name);
      if (child.inode->is_directory()) left.push_back({child.inode.get(), nullptr, join_path(at.path, name), is_among});
      else if (is_among && !instructions.shows(*child.inode)) paths.push_back(join_path(at.path, name));
    }
    if (!in.loaded && in.lower) look_below(at, *in.lower, &in);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool Stage::State::has_but_hidden(Inode& directory) {
  load_directory(directory);
  const auto& children = directory.directory->children;
  return !children.empty() && std::all_of(children.begin(), children.end(), [&](const auto& child) {
    mutex.assert_held();
    Inode& inode = *child.second.inode;
    return is_hidden(directory, child.first, inode) || (inode.is_directory() && has_but_hidden(inode));
  });
}

Error Stage::State::not_empty(Inode& directory) {
  Error error{ErrorCode::not_empty, "the directory is not empty", {}};
  if (!instructions.hides_any() || !has_but_hidden(directory)) return error;
  error.message += ": it holds files that are hidden, since they give instructions to agents";
  error.hint = kHowToShow;
  return error;
}

bool Stage::has_but_hidden(const InodePtr& directory) {
  MutexLock lock(state_->mutex);
  return state_->instructions.hides_any() && state_->has_but_hidden(*directory);
}

bool Stage::hides_instructions() const {
  MutexLock lock(state_->mutex);
  return state_->instructions.hides_any();
}

std::vector<std::string> Stage::hidden() const {
  MutexLock lock(state_->mutex);
  return state_->hidden();
}

bool Stage::is_hidden(std::string_view path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  if (!state.instructions.hides_any() || !gives_instructions(path)) return false;
  const InodePtr there = state.find(path).inode;
  return there && !state.instructions.shows(*there);
}

Status Stage::trust_instructions(const std::vector<ContentHash>& contents) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  Batch batch = state.rows->begin();
  for (const ContentHash& content : contents) state.instructions.trust(batch, content);
  return batch.commit();
}

namespace {
std::vector<ContentHash> parsed(const std::set<std::string>& hashes) {
  std::vector<ContentHash> contents;
  for (const std::string& hex : hashes)
    if (auto content = ContentHash::parse(hex)) contents.push_back(*content);
  return contents;
}
}  // namespace

std::vector<ContentHash> Stage::trusted_instructions() const {
  MutexLock lock(state_->mutex);
  return parsed(state_->instructions.trusted());
}

std::vector<ContentHash> Stage::published_instructions() const {
  MutexLock lock(state_->mutex);
  return parsed(state_->instructions.published_here());
}

}  // namespace playfs::stage
