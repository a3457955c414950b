// What commits cost: how many chunks the planner uploads, beside the fewest that any plan could.
//
//   bench-plan                      generated edits; fails where one costs more than its bound
//   bench-plan REPOSITORY [FOLDER]  the history of a git repository (first parents), or of a folder in it
//
// The bound of a commit, besides POST and PATCH: each new content that is too long to be inline costs at least one
// chunk, and at least as many as the lines that `git diff` adds would fill; so does a manifest's continuation. Of texts
// that could be inline, as many are uploaded as would free the missing space if each freed as much as the largest.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <git2.h>

#include "model/chunking.h"
#include "model/plan.h"
#include "publish/request_bodies.h"
#include "support/known_pieces.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace {

using namespace playfs;
using Files = std::map<std::string, std::string>;

std::size_t chunks_for(std::size_t bytes) { return (bytes + kMaxChunkText - 1) / kMaxChunkText; }

/// Bytes of the lines that a diff adds.
std::size_t added(const std::string& before, const std::string& now) {
  std::size_t bytes = 0;
  auto line = [](const git_diff_delta*, const git_diff_hunk*, const git_diff_line* each, void* sum) {
    if (each->origin == GIT_DIFF_LINE_ADDITION) *static_cast<std::size_t*>(sum) += each->content_len;
    return 0;
  };
  git_diff_options options;
  git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
  options.flags |= GIT_DIFF_FORCE_TEXT;
  options.context_lines = 0;
  git_diff_buffers(before.data(), before.size(), nullptr, now.data(), now.size(), nullptr, &options, nullptr, nullptr,
                   nullptr, line, &bytes);
  return bytes;
}

struct Cost {
  std::size_t uploads = 0, bound = 0;
  double seconds = 0;  ///< of CPU, for the last plan
};

/// A project and all that the service has of it.
class Project {
 public:
  Cost commit(const Files& now) {
    const PlanInput input = input_for(now);
    Cost cost;
    Plan plan;
    do {
      PlanInput again = input;
      again.stored.pieces = &known_;
      std::clock_t begin = std::clock();
      auto planned = make_plan(std::move(again), publish::WireSizes());
      cost.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      if (!planned) throw std::runtime_error(planned.error().message);
      plan = *std::move(planned);
      std::vector<ChunkId> ids;
      for (const auto& chunk : plan.uploads) ids.push_back(store(draft_of(plan, chunk).value().content));
      cost.uploads += ids.size();
      if (plan.uploads_to_follow == 0) base_ = read_back(fill(plan, ids));
    } while (plan.uploads_to_follow > 0);
    cost.bound = bound(now, plan);
    for (const auto& [path, content] : now) {
      seen_.insert(ContentHash::of(content));
      if (read(base_.files.at(path)) != content) throw std::runtime_error(path + " is not what was published");
    }
    if (base_.files.size() != now.size()) throw std::runtime_error("a file too many");
    files_ = now;
    continuation_ = plan.continuation;
    return cost;
  }

 private:
  ChunkId store(const std::string& text) {
    ChunkId id(fmt::format("{:036}", texts_.size()));
    texts_[id] = text;
    known_.add(ContentHash::of(text), text.size(), id);
    return id;
  }
  std::string read(const FileEntry& entry) const {
    if (entry.inline_text) return *entry.inline_content();
    std::string text;
    for (const auto& id : entry.chunks) text += texts_.at(id);
    return *decode_content(text, entry.encoding);
  }
  Manifest read_back(const RevisionDraft& draft) const {
    Manifest manifest = *wire::decode_manifest(wire::encode_manifest(draft.manifest));
    if (manifest.continuation && !wire::read_continuation(manifest, read(manifest.continuation->entry)))
      throw std::runtime_error("the continuation cannot be read");
    return manifest;
  }
  std::vector<StoredPiece> pieces(const FileEntry& entry) const {
    std::vector<StoredPiece> all;
    for (const auto& id : entry.chunks) all.push_back(stored_piece(id, texts_.at(id)));
    return all;
  }

  PlanInput input_for(const Files& now) const {
    PlanInput input;
    input.draft.project = ProjectId(std::string(36, 'p'));
    input.draft.parents = {RevisionId(std::string(36, 'r'))};
    input.draft.agent = "somebody";
    input.draft.message = "A message of usual length, which says why";
    input.draft.manifest = carried_forward(base_, std::string(32, 'a'));
    input.base = input.draft.parents.front();
    std::map<ContentHash, const FileEntry*> by_content;
    for (const auto& [path, entry] : base_.files)
      if (!entry.chunks.empty()) by_content.emplace(ContentHash::of(files_.at(path)), &entry);
    if (base_.continuation) input.stored.near[kContinuationPath] = pieces(base_.continuation->entry);
    for (const auto& [path, entry] : base_.files)
      if (!now.contains(path)) input.deletions.push_back(path);
    for (const auto& [path, content] : now) {
      auto before = files_.find(path);
      if (before != files_.end() && before->second == content) continue;
      auto hash = ContentHash::of(content);
      input.puts.push_back({path, FileMode::regular, {}, content, content.size(), hash, encoding_for(content)});
      if (auto same = by_content.find(hash); same != by_content.end())
        input.stored.contents[hash] = {same->second->encoding, same->second->chunks};
      if (before != files_.end()) {
        input.stored.near[path] = pieces(base_.files.at(path));
      } else {
        for (const auto& gone : input.deletions)
          for (auto& piece : pieces(base_.files.at(gone))) input.stored.near[path].push_back(std::move(piece));
      }
    }
    return input;
  }

  std::size_t bound(const Files& now, const Plan& plan) const {
    std::size_t uploads = 0;
    for (const auto& [path, content] : now) {
      std::size_t text = encode_content(content, encoding_for(content)).size();
      if (text <= kMaxInlineText || seen_.contains(ContentHash::of(content))) continue;
      auto before = files_.find(path);
      std::size_t from = text;
      if (before != files_.end()) from = added(before->second, content);
      else  // moved and changed, perhaps
        for (const auto& [gone, old] : files_)
          if (!now.contains(gone) && old.size() > kMaxInlineText) from = std::min(from, added(old, content));
      uploads += std::max<std::size_t>(1, chunks_for(std::min(from, text)));
    }
    if (!plan.continuation.empty()) {
      if (continuation_ == plan.continuation) return uploads;
      return uploads + std::max<std::size_t>(1, chunks_for(added(continuation_, plan.continuation)));
    }
    return uploads + inline_bound(plan);
  }

  /// Uploads for what could stand inline and does not: as few as free the room that is missing, if each took one.
  std::size_t inline_bound(const Plan& plan) const {
    RevisionDraft all_inline = plan.draft;
    std::vector<std::size_t> saved;
    publish::WireSizes sizes;
    std::set<std::string> held;  // by holes: what is new
    for (const auto& hole : plan.holes) held.insert(hole.path);
    for (const auto& path : held) {
      FileEntry& entry = all_inline.manifest.files.at(path);
      std::string text = encode_content(read(base_.files.at(path)), entry.encoding);
      if (text.size() > kMaxInlineText) continue;
      std::size_t chunked = sizes.entry(entry);
      entry.chunks.clear();
      entry.inline_text = text;
      saved.push_back(sizes.entry(entry) - std::min(chunked, sizes.entry(entry)));
    }
    std::sort(saved.begin(), saved.end());
    std::size_t size = sizes.revision(all_inline), uploads = 0;
    for (; size > kRecordRoom && !saved.empty(); saved.pop_back(), ++uploads) size -= saved.back();
    return uploads;
  }

  Manifest base_;
  Files files_;
  std::string continuation_;
  std::map<ChunkId, std::string> texts_;
  test::PiecesInMemory known_;
  std::set<ContentHash> seen_;
};

/// Lines of code as somebody might write them, so many bytes; they do not repeat.
std::string source(std::size_t size, unsigned seed) {
  std::string text;
  for (unsigned i = 0; text.size() < size; ++i)
    text += fmt::format("  if (value_{} > {}) return \"{:x}\";\n", i, seed, (i + 1) * 2654435761u * (seed + 1));
  text.resize(size);
  return text;
}

void show(const std::string& what, const Cost& cost) {
  std::cout << fmt::format("| {} | {} | {} | {:.1f} |\n", what, cost.uploads + 2, cost.bound + 2, cost.seconds * 1000);
}

/// Edits that are usual. False where one costs more than it must.
bool generated() {
  std::cout << "| commit | writes | lower bound | plan, ms of CPU |\n| --- | --- | --- | --- |\n";
  bool is_good = true;
  auto step = [&](Project& project, const std::string& what, const Files& files, std::size_t beyond = 0) {
    Cost cost = project.commit(files);
    show(what, cost);
    is_good = is_good && cost.uploads <= cost.bound + beyond;
  };
  {
    Project project;
    Files files{{"README", source(900, 1)}};
    step(project, "a new file", files);
    files["long"] = source(200 * 1024, 2);
    step(project, "a file of 200 KB", files);
    const std::string long_before = files["long"];
    files["long"].replace(files["long"].find("value_2000 "), 6, "VALUE_");
    step(project, "one line changed in it", files);
    files["long"].insert(0, "// at the start\n");
    step(project, "a line inserted at its start", files);
    files["long"].insert(files["long"].size() / 2, "// in the middle\n");
    step(project, "a line inserted in the middle", files);
    files["long"].erase(files["long"].find("  if (value_3000 "), 60);
    step(project, "a line deleted", files);
    files["long"] += "// at the end\n";
    step(project, "a line appended", files);
    files["long"] = long_before;
    step(project, "all that reverted", files);
    files["longer"] = source(100, 9) + long_before;
    files.erase("long");
    step(project, "moved and changed", files);
  }
  {
    Project project;
    Files files;
    for (unsigned i = 0; i < 80; ++i)
      files[fmt::format("src/part{}/file{}.cpp", i % 8, i)] = source(i % 4 == 0 ? 20'000 : 1000 + i * 80, i);
    step(project, "import of 80 files", files);
    Files renamed;
    unsigned count = 0;
    for (auto& [path, content] : files) renamed[count++ < 40 ? "lib" + path.substr(3) : path] = content;
    step(project, "rename of 40 files", renamed);
    step(project, "and back", files);
  }
  {
    Project project;
    Files files;
    for (unsigned i = 0; i < 2000; ++i)
      files[fmt::format("src/part{}/file{}.cpp", i % 40, i)] = source(i % 50 == 0 ? 20'000 : 300 + i % 900, i);
    step(project, "import of 2,000 files", files);
    files["src/part7/file7.cpp"] += "// changed\n";
    step(project, "one of them changed", files, 1);  // where its chunk was full, two
    files["src/part8/new.cpp"] = source(500, 5000);
    step(project, "one more", files, 1);
    files.erase("src/part9/file9.cpp");
    step(project, "one less", files);
  }
  return is_good;
}

// A git repository.

Files files_at(git_repository* repository, const git_oid& commit_id, const std::string& folder) {
  git_commit* commit = nullptr;
  git_tree* tree = nullptr;
  if (git_commit_lookup(&commit, repository, &commit_id) != 0 || git_commit_tree(&tree, commit) != 0)
    throw std::runtime_error("a commit that cannot be read");
  struct Walk {
    git_repository* repository;
    const std::string& folder;
    Files files;
  } walk{repository, folder, {}};
  auto visit = [](const char* root, const git_tree_entry* entry, void* payload) {
    auto& to = *static_cast<Walk*>(payload);
    if (git_tree_entry_type(entry) != GIT_OBJECT_BLOB) return 0;
    std::string path = std::string(root) + git_tree_entry_name(entry);
    if (!path.starts_with(to.folder)) return 0;
    git_blob* blob = nullptr;
    if (git_blob_lookup(&blob, to.repository, git_tree_entry_id(entry)) != 0) return -1;
    to.files[path].assign(static_cast<const char*>(git_blob_rawcontent(blob)), git_blob_rawsize(blob));
    git_blob_free(blob);
    return 0;
  };
  git_tree_walk(tree, GIT_TREEWALK_PRE, visit, &walk);
  git_tree_free(tree);
  git_commit_free(commit);
  return std::move(walk.files);
}

int history(const char* where, const std::string& folder) {
  git_repository* repository = nullptr;
  git_revwalk* walk = nullptr;
  if (git_repository_open_ext(&repository, where, 0, nullptr) != 0 || git_revwalk_new(&walk, repository) != 0) {
    std::cerr << where << " is no git repository\n";
    return 2;
  }
  git_revwalk_sorting(walk, GIT_SORT_TOPOLOGICAL | GIT_SORT_REVERSE);
  git_revwalk_simplify_first_parent(walk);
  git_revwalk_push_head(walk);
  Project project;
  Files before;
  std::size_t commits = 0, uploads = 0, bound = 0, above = 0, most = 0;
  double slowest = 0;
  for (git_oid id; git_revwalk_next(&id, walk) == 0;) {
    Files now = files_at(repository, id, folder);
    if (now == before) continue;
    Cost cost = project.commit(now);
    ++commits;
    uploads += cost.uploads;
    bound += cost.bound;
    above += cost.uploads > cost.bound;
    most = std::max(most, cost.uploads > cost.bound ? cost.uploads - cost.bound : 0);
    slowest = std::max(slowest, cost.seconds);
    before = std::move(now);
  }
  git_revwalk_free(walk);
  git_repository_free(repository);
  std::cout << fmt::format(
      "{}: {} commits, {} files at the end; {} writes, lower bound {} (ratio {:.3f}); {} commits above the bound, by "
      "{} at "
      "most; slowest plan {:.0f} ms of CPU\n",
      folder.empty() ? "all" : folder, commits, before.size(), uploads + 2 * commits, bound + 2 * commits,
      static_cast<double>(uploads + 2 * commits) / static_cast<double>(bound + 2 * commits), above, most,
      slowest * 1000);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  git_libgit2_init();
  return argc < 2 ? (generated() ? 0 : 1) : history(argv[1], argc > 2 ? argv[2] : "");
}
