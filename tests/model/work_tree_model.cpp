#include "work_tree_model.h"

#include <algorithm>
#include <array>

namespace playfs::model_test {

namespace {

using Kind = Operation::Kind;

// Some sort between a name and the names below it: "d" < "d-" < "d/b".
constexpr std::array kNames = {"a", "b", "d", "d-", "dir", "dir.a", "e~", "f"};

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }
bool is_ignored(std::string_view name) { return name.ends_with('~'); }

void walk(const Model::NodePtr& at, const std::string& path,
          const std::function<void(const std::string&, const Model::NodePtr&)>& visit) {
  for (const auto& [name, child] : at->children) {
    std::string below = path.empty() ? name : path + "/" + name;
    visit(below, child);
    walk(child, below, visit);
  }
}

std::string line_of(const std::string& path, stage::Kind kind, bool runs, const std::string& content,
                    const std::string& first_name) {
  constexpr std::array kinds = {"file", "directory", "symlink", "fifo", "socket"};
  std::string line = path + " " + kinds[static_cast<std::size_t>(kind)];
  if (kind == stage::Kind::file) line += runs ? " runs" : "";
  if (kind == stage::Kind::file || kind == stage::Kind::symlink) line += " \"" + escape_for_terminal(content) + '"';
  if (first_name != path) line += " = " + first_name;
  return line;
}

}  // namespace

std::string describe(const Operation& operation) {
  constexpr std::array names = {"make_file",
                                "make_directory",
                                "make_symlink",
                                "make_fifo",
                                "write",
                                "truncate",
                                "punch",
                                "chmod",
                                "link",
                                "unlink",
                                "remove_directory",
                                "rename",
                                "rename_no_replace",
                                "exchange",
                                "discard",
                                "freeze",
                                "settle",
                                "thaw",
                                "move_base",
                                "reopen",
                                "check"};
  return std::string(names[static_cast<std::size_t>(operation.kind)]) + " " + operation.path + " " + operation.other +
         " @" + std::to_string(operation.offset) + " " + std::to_string(operation.permissions) + " " + operation.data;
}

Model::Model(Texts base) : root_(std::make_shared<Node>()), base_(std::move(base)) {
  root_->kind = stage::Kind::directory;
  for (const auto& [path, text] : base_) set_file(path, text);
}

Model::Model(const Model& other) : base_(other.base_), pending_(other.pending_), revision_(other.revision_) {
  std::map<const Node*, NodePtr> copies;
  std::function<NodePtr(const NodePtr&)> copy = [&](const NodePtr& node) {
    auto& known = copies[node.get()];
    if (!known) {
      known = std::make_shared<Node>(*node);
      for (auto& [name, child] : known->children) child = copy(child);
    }
    return known;
  };
  root_ = copy(other.root_);
}

Model::NodePtr Model::find(std::string_view path) const {
  NodePtr at = root_;
  while (at && !path.empty()) {
    auto slash = path.find('/');
    auto child = at->children.find(std::string(path.substr(0, slash)));
    at = child == at->children.end() ? nullptr : child->second;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return at;
}

Model::NodePtr Model::parent(std::string_view path) const {
  auto slash = path.rfind('/');
  return find(slash == std::string_view::npos ? "" : path.substr(0, slash));
}

void Model::set_file(const std::string& path, const Text& text) {
  NodePtr at = root_;
  std::string_view rest = path;
  for (auto slash = rest.find('/'); slash != rest.npos; slash = rest.find('/')) {
    auto& child = at->children[std::string(rest.substr(0, slash))];
    if (!child) child = std::make_shared<Node>(Node{stage::Kind::directory, "", false, {}});
    at = child;
    rest.remove_prefix(slash + 1);
  }
  bool is_link = text.mode == FileMode::symlink;
  at->children[std::string(rest)] = std::make_shared<Node>(
      Node{is_link ? stage::Kind::symlink : stage::Kind::file, text.content, text.mode == FileMode::executable, {}});
}

void Model::remove_file(const std::string& path) {
  std::string at = path;
  parent(at)->children.erase(std::string(name_in(at)));
  // Directories that this empties go with it.
  for (auto slash = at.rfind('/'); slash != at.npos; slash = at.rfind('/')) {
    at.resize(slash);
    bool in_base =
        std::any_of(base_.begin(), base_.end(), [&](const auto& file) { return file.first.starts_with(at + "/"); });
    if (!find(at)->children.empty() || in_base) return;
    parent(at)->children.erase(std::string(name_in(at)));
  }
}

Texts Model::published_view() const {
  Texts view;
  std::set<const Node*> ignored;
  walk(root_, "", [&](const std::string& path, const NodePtr& node) {
    bool tracked = base_.contains(path);
    std::string above = path;
    bool is_out = !tracked && is_ignored(name_in(path));
    for (auto slash = above.rfind('/'); !tracked && slash != above.npos; slash = above.rfind('/')) {
      above.resize(slash);
      is_out = is_out || is_ignored(name_in(above));
    }
    if (is_out || (node->kind != stage::Kind::file && node->kind != stage::Kind::symlink)) return;
    FileMode mode = node->kind == stage::Kind::symlink ? FileMode::symlink
                    : node->runs                       ? FileMode::executable
                                                       : FileMode::regular;
    view.emplace(path, Text(node->content, mode));
  });
  return view;
}

std::vector<std::string> Model::lines() const {
  std::vector<std::string> all;
  std::map<const Node*, std::string> first;
  walk(root_, "", [&](const std::string& path, const NodePtr& node) {
    const auto& name = first.emplace(node.get(), path).first->second;
    all.push_back(line_of(path, node->kind, node->runs, node->content, name));
  });
  return all;
}

std::vector<std::string> lines(test::Workbench& bench) {
  std::vector<std::string> all;
  std::map<std::uint64_t, std::string> first;
  std::function<void(const std::string&)> walk_stage = [&](const std::string& path) {
    for (const auto& name : bench.list(path)) {
      std::string below = path.empty() ? name : path + "/" + name;
      auto inode = bench.find(below);
      auto attributes = bench.stage->attributes(inode).value();
      std::string content;
      if (attributes.kind == stage::Kind::file) content = bench.read(inode).value_or("<cannot be read>");
      if (attributes.kind == stage::Kind::symlink) {
        auto lower = bench.stage->lower_content(inode);
        content = lower ? test::text_of(*lower) : bench.stage->symlink_target(inode).value();
      }
      bool has_size = attributes.kind == stage::Kind::file && !bench.stage->lower_content(inode);
      EXPECT_TRUE(!has_size || attributes.size == content.size()) << below;
      const auto& known = first.emplace(attributes.ino, below).first->second;
      all.push_back(line_of(below, attributes.kind, (attributes.permissions & 0100) != 0, content, known));
      if (attributes.kind == stage::Kind::directory) walk_stage(below);
    }
  };
  walk_stage("");
  return all;
}

std::vector<std::string> Model::changes() const {
  Texts now = published_view();
  std::map<std::string, std::string> changes;
  auto differs = [&](const std::string& path, const Texts& from) {
    auto here = std::as_const(now).find(path), there = from.find(path);
    if (here == now.end() || there == from.end()) return (here == now.end()) != (there == from.end());
    return !(here->second == there->second);
  };
  auto add = [&](const std::string& path, bool as_frozen) {
    char kind = !now.contains(path) ? 'D' : base_.contains(path) ? 'M' : 'A';
    changes[path] = std::string(1, kind) + " " + path + (as_frozen ? "*" : "");
  };
  Texts all = now;
  all.insert(base_.begin(), base_.end());
  if (pending_) all.insert(pending_->begin(), pending_->end());
  for (const auto& [path, text] : all) {
    if (differs(path, base_)) add(path, pending_ && !differs(path, *pending_));
    else if (pending_ && differs(path, *pending_))
      changes[path] = (!now.contains(path) ? "D " : pending_->contains(path) ? "M " : "A ") + path;
  }
  std::vector<std::string> lines;
  for (const auto& [path, line] : changes) lines.push_back(line);
  return lines;
}

Texts Model::next_base(const Operation& operation) const {
  Texts next = operation.kind == Kind::settle ? *pending_ : base_;
  if (operation.seed == 0) return next;
  std::mt19937_64 random(operation.seed);
  // Others change, remove and add a little; what they add collides with nothing here.
  for (int n = 0; n < 3 && !next.empty(); ++n) {
    auto victim = std::next(next.begin(), static_cast<std::ptrdiff_t>(random() % next.size()));
    if (victim->second.mode == FileMode::symlink) continue;
    if (random() % 3 == 0) next.erase(victim);
    else victim->second.content = "theirs " + std::to_string(random() % 100);
  }
  std::string added = "theirs" + std::to_string(revision_);
  next.emplace(random() % 2 == 0 ? added : added + "/x", Text("new " + added));
  return next;
}

void Model::follow(Texts published, const Texts& next) {
  Texts now = published_view();
  auto at = [](const Texts& texts, const std::string& path) -> std::optional<Text> {
    auto found = texts.find(path);
    return found == texts.end() ? std::nullopt : std::optional(found->second);
  };
  Texts all = now;
  all.insert(published.begin(), published.end());
  all.insert(next.begin(), next.end());
  base_ = next;
  // What is removed may block what is added.
  for (bool removing : {true, false}) {
    for (const auto& [path, text] : all) {
      if (at(now, path) != at(published, path)) continue;
      auto becomes = at(next, path);
      if (becomes == at(now, path)) continue;
      if (removing && !becomes) remove_file(path);
      if (!removing && becomes) set_file(path, *becomes);
    }
  }
}

std::set<std::string> Model::changed_below(const std::string& top) const {
  Texts now = published_view(), all = now;
  all.insert(base_.begin(), base_.end());
  std::set<std::string> changed;
  for (const auto& [path, text] : all) {
    auto here = std::as_const(now).find(path), there = base_.find(path);
    bool is_same = here != now.end() && there != base_.end() && here->second == there->second;
    if (!is_same && (top.empty() || (path + "/").starts_with(top + "/"))) changed.insert(path);
  }
  return changed;
}

bool Model::is_obstructed(const std::set<std::string>& dropped) const {
  const Texts view = published_view();
  for (const auto& [path, text] : base_) {
    if (!dropped.contains(path)) continue;
    for (auto slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      std::string above = path.substr(0, slash);
      NodePtr node = find(above);
      if (node && node->kind != stage::Kind::directory && !dropped.contains(above)) return true;
    }
    NodePtr node = find(path);
    if (!node) continue;
    // It counts as deleted, and what is there is of a local-only kind.
    if (node->kind != stage::Kind::directory && !view.contains(path)) return true;
    if (node->kind != stage::Kind::directory) continue;
    bool is_kept = false;
    walk(node, path, [&](const std::string& below, const NodePtr& inner) {
      is_kept = is_kept || (inner->kind != stage::Kind::directory && !dropped.contains(below));
    });
    if (is_kept) return true;
  }
  return false;
}

std::optional<ErrorCode> Model::rename(const Operation& operation) {
  NodePtr from = parent(operation.path), to = parent(operation.other);
  if (!from || !to) return ErrorCode::not_found;
  if (from->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
  if (!find(operation.path)) return ErrorCode::not_found;
  if (to->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
  NodePtr moved = find(operation.path), target = find(operation.other);
  bool is_within = (operation.other + "/").starts_with(operation.path + "/");
  if (operation.kind == Kind::exchange) {
    if (!target) return ErrorCode::not_found;
    if (moved == target) return std::nullopt;
    if (is_within || (operation.path + "/").starts_with(operation.other + "/")) return ErrorCode::invalid_argument;
    from->children[std::string(name_in(operation.path))] = target;
    to->children[std::string(name_in(operation.other))] = moved;
    return std::nullopt;
  }
  if (target && operation.kind == Kind::rename_no_replace) return ErrorCode::already_exists;
  if (target == moved) return std::nullopt;
  bool is_directory = moved->kind == stage::Kind::directory;
  if (is_directory && is_within) return ErrorCode::invalid_argument;
  if (target && is_directory) {
    if (target->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
    if (!target->children.empty()) return ErrorCode::not_empty;
  } else if (target && target->kind == stage::Kind::directory) {
    return ErrorCode::is_a_directory;
  }
  from->children.erase(std::string(name_in(operation.path)));
  to->children[std::string(name_in(operation.other))] = moved;
  return std::nullopt;
}

std::optional<ErrorCode> Model::apply(const Operation& operation) {
  NodePtr in = parent(operation.path);
  NodePtr node = find(operation.path);
  std::string name(name_in(operation.path));
  auto make = [&](stage::Kind kind, const std::string& content) -> std::optional<ErrorCode> {
    if (!in) return ErrorCode::not_found;
    if (in->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
    if (node) return ErrorCode::already_exists;
    bool runs = kind == stage::Kind::file && (operation.permissions & 0100) != 0;
    in->children[name] = std::make_shared<Node>(Node{kind, content, runs, {}});
    return std::nullopt;
  };
  auto file_error = [&]() -> std::optional<ErrorCode> {
    if (!node) return ErrorCode::not_found;
    if (node->kind == stage::Kind::directory) return ErrorCode::is_a_directory;
    if (node->kind != stage::Kind::file) return ErrorCode::invalid_argument;
    return std::nullopt;
  };
  switch (operation.kind) {
    case Kind::make_file: return make(stage::Kind::file, "");
    case Kind::make_directory: return make(stage::Kind::directory, "");
    case Kind::make_symlink: return make(stage::Kind::symlink, operation.data);
    case Kind::make_fifo: return make(stage::Kind::fifo, "");
    case Kind::write: {
      if (auto error = file_error()) return error;
      if (node->content.size() < operation.offset + operation.data.size())
        node->content.resize(operation.offset + operation.data.size());
      node->content.replace(operation.offset, operation.data.size(), operation.data);
      return std::nullopt;
    }
    case Kind::truncate:
      if (auto error = file_error()) return error;
      node->content.resize(operation.offset);
      return std::nullopt;
    case Kind::punch:
      if (auto error = file_error()) return error;
      for (std::size_t i = operation.offset; i < std::min<std::size_t>(operation.offset + 4, node->content.size()); ++i)
        node->content[i] = '\0';
      return std::nullopt;
    case Kind::chmod:
      if (!node) return ErrorCode::not_found;
      if (node->kind == stage::Kind::file) node->runs = (operation.permissions & 0100) != 0;
      return std::nullopt;
    case Kind::link: {
      NodePtr to = parent(operation.other);
      if (!node || !to) return ErrorCode::not_found;
      if (to->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
      if (node->kind == stage::Kind::directory) return ErrorCode::not_permitted;
      if (find(operation.other)) return ErrorCode::already_exists;
      to->children[std::string(name_in(operation.other))] = node;
      return std::nullopt;
    }
    case Kind::unlink:
      if (in && in->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
      if (!node) return ErrorCode::not_found;
      if (node->kind == stage::Kind::directory) return ErrorCode::is_a_directory;
      in->children.erase(name);
      return std::nullopt;
    case Kind::remove_directory:
      if (in && in->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
      if (!node) return ErrorCode::not_found;
      if (node->kind != stage::Kind::directory) return ErrorCode::not_a_directory;
      if (!node->children.empty()) return ErrorCode::not_empty;
      in->children.erase(name);
      return std::nullopt;
    case Kind::rename:
    case Kind::rename_no_replace:
    case Kind::exchange: return rename(operation);
    case Kind::discard: {
      if (pending_) return std::nullopt;
      std::set<std::string> dropped = changed_below(operation.path);
      if (is_obstructed(dropped)) return ErrorCode::busy;
      // Discarded changes count as published in their present form, all others as different.
      Texts now = published_view(), published, base = base_;
      for (const auto& [path, text] : now)
        if (dropped.contains(path)) published.emplace(path, text);
      for (const auto& [path, text] : base)
        if (!now.contains(path) && !dropped.contains(path)) published.emplace(path, text);
      follow(published, base);
      return std::nullopt;
    }
    case Kind::freeze:
      if (!pending_ && !changes().empty()) pending_ = published_view();
      return std::nullopt;
    case Kind::settle: {
      if (!pending_) return std::nullopt;
      Texts next = next_base(operation);
      Texts published = *std::exchange(pending_, std::nullopt);
      follow(published, next);
      ++revision_;
      return std::nullopt;
    }
    case Kind::thaw: pending_.reset(); return std::nullopt;
    case Kind::move_base: {
      if (pending_ || !changes().empty()) return ErrorCode::busy;
      Texts next = next_base(operation);
      follow(base_, next);
      ++revision_;
      return std::nullopt;
    }
    case Kind::reopen:
    case Kind::check: return std::nullopt;
  }
  return std::nullopt;
}

Operation Model::invent(std::mt19937_64& random) const {
  auto below = [&](std::uint64_t n) { return random() % n; };
  std::vector<std::string> known = {""};
  walk(root_, "", [&](const std::string& path, const NodePtr&) { known.push_back(path); });
  auto any_path = [&]() -> std::string {
    std::string path = known[below(known.size())];
    if (below(3) != 0 && !path.empty()) return path;
    std::string name = kNames[below(kNames.size())];
    return path.empty() || std::count(path.begin(), path.end(), '/') > 3 ? name : path + "/" + name;
  };
  constexpr std::array common = {Kind::make_file,      Kind::make_file,
                                 Kind::make_directory, Kind::make_directory,
                                 Kind::make_symlink,   Kind::make_fifo,
                                 Kind::write,          Kind::write,
                                 Kind::write,          Kind::write,
                                 Kind::truncate,       Kind::truncate,
                                 Kind::punch,          Kind::chmod,
                                 Kind::link,           Kind::unlink,
                                 Kind::unlink,         Kind::remove_directory,
                                 Kind::rename,         Kind::rename,
                                 Kind::rename,         Kind::rename_no_replace,
                                 Kind::exchange};
  constexpr std::array rare = {Kind::discard,   Kind::discard, Kind::freeze, Kind::freeze,
                               Kind::settle,    Kind::settle,  Kind::thaw,   Kind::move_base,
                               Kind::move_base, Kind::reopen,  Kind::check};
  Operation operation;
  operation.kind = below(6) == 0 ? rare[below(rare.size())] : common[below(common.size())];
  operation.path = any_path();
  operation.other = any_path();
  operation.offset = below(8) == 0 ? 0 : below(24);
  operation.permissions = below(2) == 0 ? 0644 : 0755;
  if (operation.kind == Kind::make_directory) operation.permissions = 0755;
  operation.data = std::string(1 + below(12), static_cast<char>('a' + below(26)));
  operation.seed = below(3) == 0 ? 0 : 1 + below(1'000'000);
  // Everything, or one path, mostly one that differs: it may be deleted, or have become a directory or a file.
  if (operation.kind == Kind::discard && below(4) == 0) operation.path = "";
  if (operation.kind == Kind::discard && below(2) == 0) {
    auto changed = changed_below("");
    if (!changed.empty())
      operation.path = *std::next(changed.begin(), static_cast<std::ptrdiff_t>(below(changed.size())));
  }
  return operation;
}

std::optional<ErrorCode> apply(test::Workbench& bench, const Model& before, const Operation& operation) {
  auto& stage = *bench.stage;
  auto code = [](const auto& result) { return result ? std::nullopt : std::optional(result.error().code); };
  stage::Creation creation{operation.permissions, 1, 1};
  auto in = bench.parent(operation.path);
  auto inode = bench.find(operation.path);
  std::string_view name = test::Workbench::name(operation.path);
  auto needs_file = [&]() -> std::optional<ErrorCode> {
    return inode ? std::nullopt : std::optional(ErrorCode::not_found);
  };
  switch (operation.kind) {
    case Kind::make_file: return in ? code(stage.make_file(in, name, creation)) : ErrorCode::not_found;
    case Kind::make_directory: return in ? code(stage.make_directory(in, name, creation)) : ErrorCode::not_found;
    case Kind::make_symlink:
      return in ? code(stage.make_symlink(in, name, operation.data, creation)) : ErrorCode::not_found;
    case Kind::make_fifo:
      return in ? code(stage.make_special(in, name, stage::Kind::fifo, creation)) : ErrorCode::not_found;
    case Kind::write:
      if (auto error = needs_file()) return error;
      if (stage.attributes(inode)->kind == stage::Kind::file) {
        if (auto copied = bench.copy_up(inode); !copied) return copied.error().code;
      }
      return code(stage.write(inode, operation.offset, operation.data));
    case Kind::truncate:
      if (auto error = needs_file()) return error;
      if (stage.attributes(inode)->kind != stage::Kind::file) {
        stage::AttributeChange change;
        change.size = operation.offset;
        return code(stage.set_attributes(inode, change));
      }
      return code(bench.truncate(inode, operation.offset));
    case Kind::punch:
      if (auto error = needs_file()) return error;
      if (stage.attributes(inode)->kind == stage::Kind::file) {
        if (auto copied = bench.copy_up(inode); !copied) return copied.error().code;
      }
      return code(stage.allocate(inode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, operation.offset, 4));
    case Kind::chmod: {
      if (auto error = needs_file()) return error;
      if (stage.attributes(inode)->kind != stage::Kind::file) return std::nullopt;
      stage::AttributeChange change;
      change.permissions = operation.permissions;
      return code(stage.set_attributes(inode, change));
    }
    case Kind::link: {
      auto to = bench.parent(operation.other);
      if (!inode || !to) return ErrorCode::not_found;
      return code(stage.link(inode, to, test::Workbench::name(operation.other)));
    }
    case Kind::unlink: return in ? code(stage.unlink(in, name)) : ErrorCode::not_found;
    case Kind::remove_directory: return in ? code(stage.remove_directory(in, name)) : ErrorCode::not_found;
    case Kind::rename:
    case Kind::rename_no_replace:
    case Kind::exchange: {
      auto to = bench.parent(operation.other);
      if (!in || !to) return ErrorCode::not_found;
      auto mode = operation.kind == Kind::rename     ? stage::RenameMode::replace
                  : operation.kind == Kind::exchange ? stage::RenameMode::exchange
                                                     : stage::RenameMode::no_replace;
      return code(stage.rename(in, name, to, test::Workbench::name(operation.other), mode));
    }
    case Kind::discard: return before.has_pending() ? std::nullopt : code(stage.discard(operation.path));
    case Kind::freeze: {
      auto layer = stage.freeze("tx");
      return code(layer);
    }
    case Kind::settle: {
      if (!before.has_pending()) return std::nullopt;
      Model after = before;
      after.apply(operation);
      {
        // What was changed since stays, whatever the new base has there: its author decided.
        std::set<std::string> handled;
        auto changes = stage.changes();
        if (changes)
          for (const auto& change : *changes)
            if (!change.pending) handled.insert(change.path);
        return code(stage.settle("tx", test::revision_of(after.base_id(), after.base()), test::handled(handled)));
      }
    }
    case Kind::thaw: return code(stage.thaw("tx"));
    case Kind::move_base: {
      Texts next = before.next_base(operation);
      return code(
          stage.move_base(test::revision_of("r" + std::to_string(std::stoi(before.base_id().substr(1)) + 1), next),
                          RevisionId(before.base_id())));
    }
    case Kind::reopen: bench.reopen(); return std::nullopt;
    case Kind::check: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace playfs::model_test
