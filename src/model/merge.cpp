#include "model/merge.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "model/chunking.h"
#include "model/repository.h"

namespace playfs {

namespace {

/// Picks one of two entries with equal content, the same on every client. Prefers inline to chunks, and later chunk ids
/// to earlier ones: ids roughly follow time, and a service restored from a backup has lost the earlier ones.
const FileEntry& settled_on(const FileEntry& a, const FileEntry& b) {
  auto key = [](const FileEntry& entry) {
    return std::tuple(entry.inline_text.has_value(), entry.inline_text, entry.chunks, entry.hash_claim,
                      entry.size_claim, entry.encoding);
  };
  return key(a) < key(b) ? b : a;
}

class Merger {
 public:
  Merger(const Version& base, const Version& ours, const Version& theirs, const ReadEntry& read,
         const MergeLabels& labels)
      : base_(base), ours_(ours), theirs_(theirs), read_(read), labels_(labels) {}

  Result<Merge> run() {
    std::set<std::string> paths;
    for (const Manifest* manifest : {&base_.manifest, &ours_.manifest, &theirs_.manifest})
      for (const auto& [path, entry] : manifest->files) paths.insert(path);
    for (const auto& path : paths) PLAYFS_CHECK(merge_path(path));
    find_files_in_the_way();
    merge_refused();
    merge_fields();
    std::sort(merge_.conflicts.begin(), merge_.conflicts.end(),
              [](const Conflict& a, const Conflict& b) { return a.path < b.path; });
    return std::move(merge_);
  }

 private:
  Status merge_path(const std::string& path) {
    const FileEntry* base = base_.manifest.file_at(path);
    const FileEntry* ours = ours_.manifest.file_at(path);
    const FileEntry* theirs = theirs_.manifest.file_at(path);
    if (same_content_and_mode(ours, theirs)) {
      if (!ours) return {};
      bool ours_is_base = base && *ours == *base;
      bool theirs_is_base = base && *theirs == *base;
      take(path, ours_is_base ? *theirs : theirs_is_base ? *ours : settled_on(*ours, *theirs));
      merge_.files[path].entry.extra = merged_extra(base, *ours, *theirs);
      return {};
    }
    const bool ours_kept = same_content_and_mode(base, ours), theirs_kept = same_content_and_mode(base, theirs);
    // Both hold only if claims contradict each other; then the content is read.
    if (ours_kept != theirs_kept)
      return ours_kept ? take_side(path, theirs, base, ours) : take_side(path, ours, base, theirs);
    if (!ours || !theirs) {
      take(path, ours ? *ours : *theirs);
      conflict(path, ConflictKind::deleted, ours ? "changed here and deleted there" : "deleted here and changed there");
      return {};
    }
    return merge_both(path, base, *ours, *theirs);
  }

  /// Only one side changed the file, but the other may have changed its unknown fields.
  Status take_side(const std::string& path, const FileEntry* changed, const FileEntry* base, const FileEntry* other) {
    if (!changed) return {};
    take(path, *changed);
    if (base && other) merge_.files[path].entry.extra = merged_extra(base, *changed, *other);
    return {};
  }

  Status merge_both(const std::string& path, const FileEntry* base, const FileEntry& ours, const FileEntry& theirs) {
    auto is_link = [](const FileEntry& entry) { return entry.mode == FileMode::symlink; };
    if (is_link(ours) != is_link(theirs)) {
      take(path, ours);
      conflict(path, ConflictKind::kind, "a symbolic link on one side and a file on the other");
      return {};
    }
    // With a base, two different modes cannot both be new, as there is only one bit. Without one, executable wins.
    FileMode mode = !base || is_link(*base)   ? std::max(ours.mode, theirs.mode)
                    : ours.mode == base->mode ? theirs.mode
                                              : ours.mode;
    bool ours_has_base = base && base->same_content(ours), theirs_has_base = base && base->same_content(theirs);
    if (ours_has_base != theirs_has_base || ours.same_content(theirs)) {
      FileEntry entry = ours_has_base == theirs_has_base ? settled_on(ours, theirs) : ours_has_base ? theirs : ours;
      entry.mode = mode;
      entry.extra = merged_extra(base, ours, theirs);
      take(path, std::move(entry));
      return {};
    }
    // Even if the content is in conflict, the mode is not.
    FileEntry kept = ours;
    kept.mode = mode;
    // Claimed sizes look the same to every client, and nothing need be read.
    auto is_large = [](const FileEntry* entry) { return entry && entry->size_claim.value_or(0) > kMaxMergedText; };
    if (is_large(&ours) || is_large(&theirs) || is_large(base)) return too_large(path, kept);
    if (cost_left_ == 0) return too_large(path, kept);
    PLAYFS_TRY(const auto versions, read_all(path, base && !is_link(*base) ? base : nullptr, ours, theirs));
    if (!versions) {
      take(path, kept);
      conflict(path, ConflictKind::content, "changed on both sides, and not all versions can be read");
      return {};
    }
    const auto& [base_bytes, our_bytes, their_bytes] = *versions;
    spend(1 + (base_bytes.size() + our_bytes.size() + their_bytes.size()) / kBytesPerCost);
    // Merging HEAD by lines could produce what neither side contained (model/repository.h).
    bool is_text = !is_link(ours) && !is_named_as_head(path);
    for (const std::string* bytes : {&base_bytes, &our_bytes, &their_bytes})
      is_text = is_text && encoding_for(*bytes) == ContentEncoding::text;
    if (!is_text) {
      take(path, kept);
      conflict(path, ConflictKind::content,
               is_link(ours) ? "symbolic links to different targets"
                             : "changed on both sides, and cannot be merged line by line");
      return {};
    }
    for (const std::string* text : {&base_bytes, &our_bytes, &their_bytes})
      if (text->size() > kMaxMergedText || count_lines(*text) > kMaxMergedLines) return too_large(path, kept);
    const std::size_t cost = cost_of_merge(base_bytes, our_bytes, their_bytes);
    if (cost > cost_left_) return too_large(path, kept);
    spend(cost);
    PLAYFS_TRY(MergedText merged, merge_text(base_bytes, our_bytes, their_bytes, labels_));
    if (merged.text.size() > kMostMergedText - merged_bytes_) return too_large(path, kept);
    merged_bytes_ += merged.text.size();
    if (merged.conflicts) {
      take(path, kept);
      conflict(path, ConflictKind::text, "the same lines were changed on both sides");
      merge_.conflicts.back().marked = std::move(merged.text);
      return {};
    }
    FileEntry entry;
    entry.mode = mode;
    entry.extra = merged_extra(base, ours, theirs);
    merge_.files[path] = {std::move(entry), std::move(merged.text)};
    return {};
  }

  struct Versions {
    std::string base, ours, theirs;
  };
  static bool is_unreadable(ErrorCode code) {
    return code == ErrorCode::corrupt || code == ErrorCode::refused_input || code == ErrorCode::not_found;
  }
  /// nullopt if one of them can be read by nobody: its publisher must not decide whether others can merge the rest.
  /// Where trying again may help, the merge fails.
  Result<std::optional<Versions>> read_all(const std::string& path, const FileEntry* base, const FileEntry& ours,
                                           const FileEntry& theirs) {
    Versions versions;
    for (auto [side, entry, bytes] :
         {std::tuple(MergeSide::ours, &ours, &versions.ours), std::tuple(MergeSide::theirs, &theirs, &versions.theirs),
          std::tuple(MergeSide::base, base, &versions.base)}) {
      if (!entry) continue;
      auto read = read_(side, path, *entry);
      if (!read && is_unreadable(read.error().code)) return std::optional<Versions>();
      if (!read) return fail(read.error());
      *bytes = *std::move(read);
    }
    return std::optional(std::move(versions));
  }

  Status too_large(const std::string& path, const FileEntry& kept) {
    take(path, kept);
    conflict(path, ConflictKind::content,
             "changed on both sides, and too large or too different to be merged line by line");
    return {};
  }

  /// Unknown fields belong to other clients. If both sides changed one, the lesser text wins.
  static JsonObject merged_extra(const FileEntry* base, const FileEntry& ours, const FileEntry& theirs) {
    const JsonObject none;
    std::vector<std::string> clashes;
    const JsonObject& before = base ? base->extra : none;
    Json merged = merge_json(before, ours.extra, theirs.extra, clashes);
    if (!clashes.empty()) {
      std::vector<std::string> ignored;
      Json other = merge_json(before, theirs.extra, ours.extra, ignored);
      if (json_order(other) < json_order(merged)) merged = std::move(other);
    }
    return merged.object() ? *merged.object() : JsonObject();
  }

  /// A total order of values that is the same on every client; distinct values have distinct texts.
  static std::string json_order(const Json& value) {
    auto quoted = [](std::string_view text) {
      std::string out = "\"";
      for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
      }
      return out + '"';
    };
    if (auto* object = value.object()) {
      std::map<std::string, std::string> members;
      for (const auto& [name, member] : *object) members[name] = json_order(member);
      std::string text = "{";
      for (const auto& [name, member] : members) text += quoted(name) + member + ",";
      return text;
    }
    if (auto* array = value.array()) {
      std::string text = "[";
      for (const auto& item : *array) text += json_order(item) + ",";
      return text;
    }
    if (auto* string = value.string()) return quoted(*string);
    if (auto* number = value.number()) return "#" + number->text;
    return value.is_null() ? "0" : *value.boolean() ? "t" : "f";
  }

  /// A path cannot be both file and directory. It can become both only if each side added one of them.
  void find_files_in_the_way() {
    std::vector<std::string> in_the_way;
    for (const auto& [path, file] : merge_.files) {
      auto below = merge_.files.lower_bound(path + '/');
      if (below != merge_.files.end() && below->first.starts_with(path + '/')) in_the_way.push_back(path);
    }
    for (const auto& path : in_the_way) {
      if (!merge_.files.contains(path)) continue;  // displaced with what is above it
      std::erase_if(merge_.conflicts, [&](const Conflict& each) { return each.path == path; });
      conflict(path, ConflictKind::kind, "a file on one side and a directory on the other");
      auto displace = [&](auto file) {
        // Replaces any other conflict at that path.
        std::erase_if(merge_.conflicts,
                      [&](const Conflict& each) { return each.path != path && each.path == file->first; });
        merge_.conflicts.back().displaced.emplace(file->first, file->second);
        return merge_.files.erase(file);
      };
      // Ours wins.
      if (ours_.manifest.file_at(path)) {
        for (auto below = merge_.files.lower_bound(path + '/');
             below != merge_.files.end() && below->first.starts_with(path + '/');)
          below = displace(below);
      } else {
        displace(merge_.files.find(path));
      }
    }
  }

  void merge_refused() {
    auto as_object = [](const Manifest& manifest) {
      JsonObject entries;
      for (const auto& refused : manifest.refused) entries.set(refused.path, refused.entry);
      return entries;
    };
    std::vector<std::string> clashes;
    JsonObject before = as_object(base_.manifest), one = as_object(ours_.manifest), other = as_object(theirs_.manifest);
    std::set<std::string> paths;
    for (const JsonObject* entries : {&one, &other})
      for (const auto& member : *entries) paths.insert(member.name);
    for (const auto& path : paths) {
      const Json* was = before.find(path);
      const Json* mine = one.find(path);
      const Json* yours = other.find(path);
      auto same = [](const Json* a, const Json* b) { return a && b ? *a == *b : a == b; };
      const Json* kept = same(was, mine) ? yours : mine;
      if (!same(was, mine) && !same(was, yours) && !same(mine, yours))
        conflict(path, ConflictKind::published, "a hidden entry was changed on both sides");
      if (!kept || merge_.files.contains(path)) continue;
      const auto& from = same(was, mine) ? theirs_.manifest.refused : ours_.manifest.refused;
      auto entry = std::find_if(from.begin(), from.end(), [&](const RefusedEntry& each) { return each.path == path; });
      merge_.refused.push_back(*entry);
    }
  }

  void merge_fields() {
    std::vector<std::string> clashes;
    Json extra = merge_json(base_.manifest.extra, ours_.manifest.extra, theirs_.manifest.extra, clashes);
    if (extra.object()) merge_.extra = *extra.object();
    for (const auto& name : clashes)
      conflict("(manifest) " + name, ConflictKind::published, "a field of the manifest was changed on both sides");
    clashes.clear();
    merge_.state = merge_json(base_.state, ours_.state, theirs_.state, clashes);
    for (const auto& name : clashes)
      conflict("(state) " + name, ConflictKind::published, "the state was changed on both sides");
  }

  void spend(std::size_t cost) { cost_left_ -= std::min(cost, cost_left_); }
  void take(const std::string& path, FileEntry entry) { merge_.files[path] = {std::move(entry), std::nullopt}; }
  void conflict(const std::string& path, ConflictKind kind, std::string reason) {
    merge_.conflicts.push_back({path, kind, std::move(reason), {}});
  }

  const Version& base_;
  const Version& ours_;
  const Version& theirs_;
  const ReadEntry& read_;
  const MergeLabels& labels_;
  Merge merge_;
  std::size_t merged_bytes_ = 0;  ///< of text merged from both sides
  std::size_t cost_left_ = kMostMergeCost;
};

/// nullptr means that the member is absent. `at_conflict`: the value there, instead of ours.
std::optional<Json> merge_member(const Json* base, const Json* ours, const Json* theirs, const std::string& path,
                                 std::vector<std::string>& conflicts, const Json* at_conflict) {
  auto same = [](const Json* a, const Json* b) { return a && b ? *a == *b : a == b; };
  auto value = [](const Json* json) { return json ? std::optional(*json) : std::nullopt; };
  if (same(ours, theirs) || same(base, theirs)) return value(ours);
  if (same(base, ours)) return value(theirs);
  const JsonObject nothing;
  const JsonObject* one = ours ? ours->object() : nullptr;
  const JsonObject* other = theirs ? theirs->object() : nullptr;
  const JsonObject* before = base && base->object() ? base->object() : &nothing;
  // Objects that both sides added are merged by key as well.
  bool may_go_deeper = one && other && (!base || base->is_null() || base->object());
  if (!may_go_deeper) {
    conflicts.push_back(path);
    return value(at_conflict ? at_conflict : ours ? ours : theirs);
  }
  JsonObject merged;
  std::set<std::string> seen;
  // Base's members keep their order; added ones follow by name, whichever side is ours.
  std::vector<std::string> names;
  for (const auto& member : *before)
    if (seen.insert(member.name).second) names.push_back(member.name);
  std::set<std::string> added;
  for (const JsonObject* side : {one, other})
    for (const auto& member : *side)
      if (!seen.contains(member.name)) added.insert(member.name);
  names.insert(names.end(), added.begin(), added.end());
  for (const auto& name : names) {
    auto member = merge_member(before->find(name), one->find(name), other->find(name),
                               path.empty() ? name : path + "." + name, conflicts, at_conflict);
    if (member) merged.append(name, *std::move(member));
  }
  return Json(std::move(merged));
}

}  // namespace

Json merge_json(const Json& base, const Json& ours, const Json& theirs, std::vector<std::string>& conflicts,
                const Json* at_conflict) {
  return merge_member(&base, &ours, &theirs, "", conflicts, at_conflict).value_or(Json());
}

Result<Merge> merge_versions(const Version& base, const Version& ours, const Version& theirs, const ReadEntry& read,
                             const MergeLabels& labels) {
  return Merger(base, ours, theirs, read, labels).run();
}

}  // namespace playfs
