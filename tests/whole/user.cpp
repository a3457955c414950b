#include "whole/user.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <utility>

#include "base/await.h"
#include "base/fd.h"
#include "publish/conflicts.h"
#include "publish/integration.h"
#include "wire/json.h"

namespace playfs::sim {

namespace {

constexpr std::size_t kZones = 5, kLinesOfZone = 8, kWidth = 12;
constexpr stage::Creation kFile{.permissions = 0644};
constexpr stage::Creation kDirectory{.permissions = 0755};

std::string line_of(const std::string& token) { return token + std::string(kWidth - token.size(), '.'); }

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Files that nobody touches, or that are deleted for good.
bool is_left_alone(const std::string& path) {
  return path.starts_with("own/") || path.starts_with("victim-") || path.find("brought-") != std::string::npos;
}

bool is_marker(const std::string& line) {
  return line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>") || line == "=======";
}

}  // namespace

std::string first_lines() { return joined(std::vector<std::string>(kZones * kLinesOfZone, line_of(""))); }

std::vector<std::string> tokens_in(std::string_view text) {
  std::vector<std::string> tokens;
  for (auto at = text.find("tk-"); at != std::string_view::npos; at = text.find("tk-", at + 1)) {
    auto end = text.find(';', at);
    if (end == std::string_view::npos) break;
    tokens.emplace_back(text.substr(at, end + 1 - at));
  }
  return tokens;
}

/// The user does one thing at a time, in whatever window.
class User::Turn {
 public:
  explicit Turn(User& user) : world_(user.world_), ledger_(user.ledger_) {
    while (ledger_.is_busy) world_.wait_for(&ledger_.is_busy);
    ledger_.is_busy = true;
  }
  ~Turn() {
    ledger_.is_busy = false;
    world_.wake(&ledger_.is_busy, false);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  World& world_;
  Ledger& ledger_;
};

// The parts of edits.

Result<User::Place> User::place_of(const std::string& path) {
  Place place{stage_.root(), {}};
  std::string_view rest = path;
  for (auto slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    auto name = rest.substr(0, slash);
    auto next = stage_.lookup(place.directory, name);
    if (!next) next = stage_.make_directory(place.directory, name, kDirectory);
    if (!next) return fail(next.error());
    place.directory = *next;
    rest.remove_prefix(slash + 1);
  }
  place.name = rest;
  return place;
}

stage::InodePtr User::find(const std::string& path) {
  stage::InodePtr at = stage_.root();
  std::string_view rest = path;
  while (at && !rest.empty()) {
    auto slash = rest.find('/');
    auto next = stage_.lookup(at, rest.substr(0, slash));
    at = next ? *next : nullptr;
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  }
  return at;
}

Status User::bring_up(const stage::InodePtr& inode) {
  while (auto below = stage_.lower_content(inode)) {
    PLAYFS_TRY(auto blob, await<content::Blob>(
                              [&](auto done) { process_.site().blob(*below, process_.stopping(), std::move(done)); }));
    PLAYFS_CHECK(stage_.copy_up(inode, *below, blob.size(), [&](int fd) { return blob.copy_to(fd); }));
  }
  return {};
}

Result<std::string> User::read(const stage::InodePtr& inode) {
  PLAYFS_TRY(auto attributes, stage_.attributes(inode));
  if (attributes.kind == stage::Kind::symlink) {
    auto target = stage_.symlink_target(inode);
    if (target || target.error().code != ErrorCode::busy) return target;
  } else if (attributes.kind != stage::Kind::file) {
    return std::string();
  }
  for (;;) {
    if (auto below = stage_.lower_content(inode)) {
      PLAYFS_TRY(auto blob, await<content::Blob>([&](auto done) {
                   process_.site().blob(*below, process_.stopping(), std::move(done));
                 }));
      return blob.read(0, blob.size());
    }
    PLAYFS_TRY(attributes, stage_.attributes(inode));
    auto bytes = stage_.read(inode, 0, attributes.size);
    if (bytes || bytes.error().code != ErrorCode::busy) return bytes;
  }
}

std::vector<std::string> User::tokens_below(const std::string& path) {
  auto inode = find(path);
  if (!inode) return {};
  auto attributes = stage_.attributes(inode);
  if (!attributes) return {};
  if (attributes->kind != stage::Kind::directory) return tokens_in(read(inode).value_or(""));
  std::vector<std::string> tokens;
  auto entries = stage_.list(inode, 0, 1000);
  if (!entries) return {};
  for (const auto& entry : *entries) {
    auto below = tokens_below(path.empty() ? entry.name : path + "/" + entry.name);
    tokens.insert(tokens.end(), below.begin(), below.end());
    for (auto& token : tokens_in(entry.name)) tokens.push_back(std::move(token));
  }
  return tokens;
}

void User::acknowledge(const std::string& token, const std::string& path) {
  world_.say("client", client_, " wrote ", token, " to ", path);
  if (is_alive_()) ledger_.writes[token] = {path, world_.now(), Ledger::Fate::kept, false};
}

Status User::sync(const stage::InodePtr& inode) {
  // What is written during the sync may or may not be on disk.
  auto there = tokens_in(read(inode).value_or(""));
  PLAYFS_CHECK(stage_.sync(inode));
  if (is_alive_()) ledger_.synced(there);
  return {};
}

/// Saves like an editor: writes a new file and renames it over the old one.
void User::replace(const std::string& path, const std::string& content, const std::string& token) {
  auto place = place_of(path);
  if (!place) return;
  const std::string aside = ".saved~";
  if (stage_.lookup(place->directory, aside) && !stage_.unlink(place->directory, aside)) return;
  auto file = stage_.make_file(place->directory, aside, kFile);
  if (!file || !stage_.write(*file, 0, content)) return;
  bool is_synced = world_.random.chance(0.3);
  if (is_synced && !stage_.sync(*file)) return;
  // What it overwrites is gone, except for what it took along.
  const int merges = ledger_.merges;
  auto base_now = [&] {
    World::Alone alone(world_);
    return stage_.base();
  };
  const auto base = base_now();
  auto old = stage_.lookup(place->directory, place->name);
  auto lost = old ? tokens_in(read(*old).value_or("")) : std::vector<std::string>();
  std::erase_if(lost, [&](const auto& each) { return content.find(each) != std::string::npos; });
  ledger_.give_up(lost);
  auto renamed = stage_.rename(place->directory, aside, place->directory, place->name, stage::RenameMode::replace);
  ledger_.has_raced = ledger_.has_raced || ledger_.merges != merges || base_now() != base;
  if (!renamed && is_alive_()) return ledger_.take_back(lost);
  acknowledge(token, path);
  if (is_synced && world_.random.chance(0.5)) static_cast<void>(sync(*file));
}

// The edits.

std::string User::some_path() {
  static const std::array<std::string, 5> kPaths{"notes", "d/x", "d/y", "d", "lists/shared"};
  auto which = world_.random.below(kPaths.size() + 2);
  return which < kPaths.size() ? kPaths[which] : "mine-" + std::to_string(client_);
}

std::size_t User::some_line() {
  auto& random = world_.random;
  std::size_t zone = random.chance(0.05) ? random.below(kZones) : static_cast<std::size_t>(client_) % kZones;
  return zone * kLinesOfZone + 2 + random.below(kLinesOfZone - 4);
}

void User::edit() {
  Turn turn(*this);
  edit_at(some_path());
}

void User::keep_here() {
  Turn turn(*this);
  auto place = place_of("own/");
  if (!place) return;
  const std::string fifo = ledger_.next(client_), ignored = ledger_.next(client_);
  if (stage_.make_special(place->directory, "fifo-" + fifo, stage::Kind::fifo, kFile)) acknowledge(fifo, "own");
  auto file = stage_.make_file(place->directory, "aside-" + std::to_string(ledger_.count) + "~", kFile);
  if (file && stage_.write(*file, 0, ignored + "\n")) acknowledge(ignored, "own");
}

void User::remove_for_good(const std::string& path) {
  Turn turn(*this);
  remove(path);
}

void User::edit_at(const std::string& path) {
  if (state_text() != "null" && world_.random.chance(0.25)) return change_state();
  if (find(".gitignore") && world_.random.chance(0.25)) return edit_ignored();
  // If several users change one file, each changes their own part of it.
  if (world_.random.chance(0.5)) return world_.random.chance(0.5) ? write_line("shared") : save("shared");
  switch (world_.random.below(16)) {
    case 0:
    case 9: return remove(path);
    case 1: return rename(path, some_path());
    case 2: return change_mode(path);
    case 3: return make_link(path);
    case 4: return turn(path);
    case 5: return discard(world_.random.chance(0.2) ? std::string() : path);
    case 6:
    case 7:
    case 8: return save(path);
    default: append(path);
  }
}

bool User::is_published(const std::string& path) const {
  const RevisionTreePtr base = stage_.base();
  return (base && base->tree.file_at(path)) || stage_.tracked().contains(path);
}

std::string User::state_text() const {
  if (auto staged = stage_.staged_state()) return *std::move(staged);
  const RevisionTreePtr base = stage_.base();
  return wire::to_text(base ? base->revision.state : Json());
}

bool User::is_state_in_conflict() const {
  auto conflicted = stage_.conflicted();
  return std::any_of(conflicted.begin(), conflicted.end(), [](const auto& each) { return publish::is_of_state(each); });
}

void User::decide_state() {
  if (!is_state_in_conflict()) return;
  std::vector<RevisionTreePtr> sides{stage_.base()};
  for (const RevisionId& id : stage_.merge_parents()) sides.push_back(process_.site().try_revision(id));
  const std::string mine = state_text();
  std::vector<std::string> theirs;
  for (const RevisionTreePtr& side : sides) {
    for (auto& token : tokens_in(side ? wire::to_text(side->revision.state) : ""))
      if (mine.find(token) == std::string::npos) theirs.push_back(std::move(token));
  }
  ledger_.give_up(theirs);
}

void User::change_state() {
  World::Alone alone(world_);  // writing state.json writes back what was read
  decide_state();
  auto json = wire::parse_json(state_text());
  JsonObject state = json && json->object() ? *json->object() : JsonObject();
  const std::string key = world_.random.chance(0.4) ? "all" : "of-" + std::to_string(client_);
  const Json* before = state.find(key);
  auto lost = tokens_in(before ? wire::to_text(*before) : "");
  const std::string token = ledger_.next(client_);
  state.set(key, token);
  ledger_.give_up(lost);
  if (stage_.stage_state(wire::to_text(state))) acknowledge(token, stage::kStatePath);
  else if (is_alive_()) ledger_.take_back(lost);
}

void User::edit_ignored() {
  auto& random = world_.random;
  const std::string path = random.chance(0.3) ? own_place() : kIgnored[random.below(kIgnored.size())];
  if (random.chance(0.1)) return discard(path);
  if (find(path) && random.chance(0.2)) return remove(path);
  const bool was_free = !find(path) && !is_published(path);
  const std::string token = append(path);
  if (was_free && !is_published(path) && !token.empty()) ledger_.kept_here.insert(token);
}

std::string User::bring(const std::string& path) {
  Turn turn(*this);
  std::string token = ledger_.next(client_), content = "brought " + token + "\n";
  if (world_.random.chance(0.1)) content += std::string(9'000, 'x') + "\n";
  if (world_.random.chance(0.02))  // chunks that are uploaded in parallel
    for (int line = 0; content.size() < 70'000; ++line)
      content += token + std::to_string(line) + std::string(60, '.') + "\n";
  auto place = place_of(path);
  if (!place) return {};
  auto file = stage_.make_file(place->directory, place->name, kFile);
  if (!file || !stage_.write(*file, 0, content)) return {};
  acknowledge(token, path);
  if (world_.random.chance(0.3)) static_cast<void>(sync(*file));
  return content;
}

std::string User::append(const std::string& path) {
  auto place = place_of(path);
  if (!place) return {};
  auto found = stage_.lookup(place->directory, place->name);
  auto file = found ? found : stage_.make_file(place->directory, place->name, kFile);
  if (!file) return {};
  auto attributes = stage_.attributes(*file);
  if (!attributes || attributes->kind != stage::Kind::file) return {};
  std::string token = ledger_.next(client_);
  for (;;) {
    if (!bring_up(*file)) return {};
    attributes = stage_.attributes(*file);
    if (!attributes) return {};
    auto written = stage_.write(*file, attributes->size, token + "\n");
    if (!written && written.error().code == ErrorCode::busy) continue;
    if (!written) return {};
    break;
  }
  // Whether a file that was open when another replaced it is still written to is not the stage's responsibility.
  auto now = stage_.lookup(place->directory, place->name);
  if (!now || *now != *file) return {};
  acknowledge(token, path);
  if (world_.random.chance(0.3)) static_cast<void>(sync(*file));
  return token;
}

void User::save(const std::string& path) {
  auto inode = find(path);
  auto old = inode ? read(inode) : Result<std::string>(std::string());
  if (inode) {
    auto attributes = stage_.attributes(inode);
    if (!attributes || attributes->kind != stage::Kind::file) return;
  }
  if (!old) return;
  auto lines = lines_of(*old);
  std::string token = ledger_.next(client_);
  auto line = some_line();
  if (lines.size() <= line) lines.resize(kZones * kLinesOfZone, line_of(""));
  lines[line] = line_of(token);
  replace(path, joined(lines), token);
}

/// In place: all lines have the same length.
void User::write_line(const std::string& path) {
  auto place = place_of(path);
  auto file = place ? stage_.lookup(place->directory, place->name) : fail(place.error());
  auto attributes = file ? stage_.attributes(*file) : Result<stage::Attributes>(fail(file.error()));
  if (!attributes || attributes->kind != stage::Kind::file) return;
  std::string token = ledger_.next(client_);
  for (;;) {
    if (!bring_up(*file)) return;
    auto text = read(*file);
    if (!text) return;
    std::size_t at = some_line() * (kWidth + 1);
    if (at + kWidth + 1 > text->size()) return;
    // Also lines that are cut because conflict markers have moved them.
    std::string after = *text;
    after.replace(at, kWidth + 1, line_of(token) + "\n");
    auto lost = tokens_in(*text);
    std::erase_if(lost, [&](const auto& each) { return after.find(each) != std::string::npos; });
    ledger_.give_up(lost);
    auto written = stage_.write(*file, at, line_of(token) + "\n");
    if (written) break;
    if (is_alive_()) ledger_.take_back(lost);
    if (written.error().code != ErrorCode::busy) return;
  }
  auto now = stage_.lookup(place->directory, place->name);
  if (!now || *now != *file) return;
  acknowledge(token, path);
  if (world_.random.chance(0.3)) static_cast<void>(sync(*file));
}

void User::remove(const std::string& path) {
  auto place = place_of(path);
  if (!place) return;
  auto found = stage_.lookup(place->directory, place->name);
  auto attributes = found ? stage_.attributes(*found) : Result<stage::Attributes>(fail(found.error()));
  if (!attributes || attributes->kind == stage::Kind::directory) return;
  auto lost = tokens_below(path);
  ledger_.give_up(lost);
  auto removed = stage_.unlink(place->directory, place->name);
  if (!removed && is_alive_()) ledger_.take_back(lost);
}

void User::rename(const std::string& from, const std::string& to) {
  if (from == to || from.starts_with(to + "/") || to.starts_with(from + "/")) return;
  if (!find(from)) return;
  auto there = place_of(from), here = place_of(to);
  if (!there || !here) return;
  auto lost = tokens_below(to);
  ledger_.give_up(lost);
  if (!ledger_.renamed_at) ledger_.renamed_at = world_.now();
  auto renamed = stage_.rename(there->directory, there->name, here->directory, here->name, stage::RenameMode::replace);
  if (!renamed && is_alive_()) ledger_.take_back(lost);
}

void User::change_mode(const std::string& path) {
  auto inode = find(path);
  if (!inode) return;
  stage::AttributeChange change;
  change.permissions = world_.random.chance(0.5) ? 0755 : 0644;
  auto attributes = stage_.attributes(inode);
  if (attributes && attributes->kind == stage::Kind::file) static_cast<void>(stage_.set_attributes(inode, change));
}

void User::make_link(const std::string& path) {
  auto place = place_of(path);
  if (!place) return;
  std::string token = ledger_.next(client_);
  if (stage_.make_symlink(place->directory, place->name, "to-" + token, {.permissions = 0777}))
    acknowledge(token, path);
}

/// A file becomes a directory, or the reverse.
void User::turn(const std::string& path) {
  auto inode = find(path);
  auto attributes = inode ? stage_.attributes(inode) : Result<stage::Attributes>(fail(ErrorCode::not_found, path));
  if (!attributes) return;
  if (attributes->kind == stage::Kind::file) {
    remove(path);
    append(path + "/in");
    return;
  }
  if (attributes->kind != stage::Kind::directory) return;
  auto entries = stage_.list(inode, 0, 1000);
  if (!entries) return;
  for (const auto& entry : *entries)
    if (entry.name != "." && entry.name != "..") remove(path + "/" + entry.name);
  auto place = place_of(path);
  if (place && stage_.remove_directory(place->directory, place->name)) append(path);
}

void User::discard(const std::string& path) {
  auto lost = tokens_below(path);
  if (path.empty())
    for (auto& token : tokens_in(stage_.staged_state().value_or(""))) lost.push_back(std::move(token));
  ledger_.give_up(lost);
  auto dropped = stage_.discard(path);
  if (!dropped && is_alive_()) ledger_.take_back(lost);
  // Discarding a path declares its present state right.
  std::erase_if(ledger_.open, [&](const auto& each) {
    return path.empty() || each.first == path || each.first.starts_with(path + "/") ||
           path.starts_with(each.first + "/");
  });
  if (dropped && stage_.is_clean()) process_.publisher().forget_lost_base();
}

void User::discard_all() {
  Turn turn(*this);
  discard("");
}

void User::discard_others() {
  Turn turn(*this);
  auto changes = stage_.changes();
  if (!changes) return;
  std::set<std::string> in_conflict;
  for (const auto& each : stage_.conflicted()) in_conflict.insert({each.path, each.beside});
  for (const auto& change : *changes)
    if (!in_conflict.contains(change.path) && !is_left_alone(change.path)) discard(change.path);
}

std::optional<std::string> User::content_at(const std::string& path) {
  auto inode = find(path);
  if (!inode) return std::nullopt;
  // Neither an empty file nor nothing: whoever made a directory there has decided.
  auto attributes = stage_.attributes(inode);
  if (attributes && attributes->kind == stage::Kind::directory) return "(a directory)";
  auto text = read(inode);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

void User::note_conflicts() {
  Turn turn(*this);
  ledger_.open.clear();
  for (const auto& each : stage_.conflicted()) {
    if (each.has_markers || !each.beside.empty() || !publish::is_of_file(each)) continue;
    auto content = content_at(each.path);
    // It may have been touched already.
    if (each.left == (content ? std::optional(ContentHash::of(*content)) : std::nullopt))
      ledger_.open[each.path] = content;
  }
}

std::vector<std::string> User::untouched_conflicts() {
  Turn turn(*this);
  std::vector<std::string> paths;
  for (const auto& [path, content] : std::map(ledger_.open)) {
    if (content_at(path) == content) paths.push_back(path);
    else ledger_.open.erase(path);
  }
  return paths;
}

void User::resolve() {
  Turn turn(*this);
  if (is_state_in_conflict()) change_state();
  for (const auto& each : stage_.conflicted()) {
    if (!each.beside.empty() && find(each.beside)) discard(each.beside);
    auto inode = find(each.path);
    if (inode && each.is_kept_here) {
      rename(each.path, own_place());
      discard(each.path);
    }
    if (!inode || !each.has_markers) continue;
    auto text = read(inode);
    if (!text) continue;
    auto lines = lines_of(*text);
    std::erase_if(lines, is_marker);
    std::string token = ledger_.next(client_);
    lines.push_back(token);
    replace(each.path, joined(lines), token);
  }
}

}  // namespace playfs::sim
