// Checks the contents of files against what their publishers promised, as readers do, but chunk by chunk: content that
// this machine has from elsewhere does not prove that the service has the chunks.
//
// Each content is checked once, however many files and revisions have it. Chunks go through the cache on disk, so that
// each is fetched once, and nothing is held but one file at a time. Blocking; for one thread.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "app/fsck/faults.h"
#include "base/cancel.h"
#include "model/manifest.h"
#include "runtime/client_stack.h"

namespace playfs::app {

class ContentCheck {
 public:
  struct Options {
    ProjectId project;
    bool uses_cache = true;  ///< whether a chunk that the cache holds counts as being at the service
  };
  /// Everything must outlive this object.
  ContentCheck(runtime::ClientStack& stack, Faults& faults, Options options, CancelToken cancel)
      : stack_(stack), faults_(faults), options_(std::move(options)), cancel_(std::move(cancel)) {}

  /// Checks the file, now or in finish(). Fails if the service cannot be asked.
  Status check(const RevisionId& revision, const std::string& path, const FileEntry& entry);
  /// Checks what is waiting.
  Status finish();
  /// Reads content that is needed now; nullopt if it is faulty, which is reported.
  Result<std::optional<std::string>> read(const RevisionId& revision, const std::string& path, const FileEntry& entry);

  [[nodiscard]] std::uint64_t files() const { return files_; }         ///< those of all revisions
  [[nodiscard]] std::uint64_t chunks() const { return seen_.size(); }  ///< different chunks looked at

 private:
  struct Use {
    RevisionId revision;
    std::string path;
    FileMode mode = FileMode::regular;
  };
  /// The outcome for a content, by its origin_key().
  struct Verdict {
    std::optional<Fault> fault;
    bool is_head = false, is_link_to_head = false;  ///< of a repository, as a file or as a link
    std::optional<std::size_t> waiting;             ///< its place in waiting_, until it is checked
  };
  struct Waiting {
    std::string key;
    FileEntry entry;
    std::vector<Use> uses;
  };

  void judge(const Use& use, const Verdict& verdict);
  /// Leaves the chunks in the cache, and what is wrong with the others in faulty_.
  Status fetch(const std::vector<ChunkId>& chunks);
  /// Answers with the record if it is not in the cache yet.
  void request(const ChunkId& id, Callback<std::optional<Record>> done);
  [[nodiscard]] Result<FileChunk> chunk(const ChunkId& id) const;
  /// The content, or why it cannot be had. REQUIRES: its chunks were fetched.
  using Content = tl::expected<std::string, Fault>;
  Result<Content> content_of(const FileEntry& entry) const;
  Result<Content> assembled(const FileEntry& entry) const;

  runtime::ClientStack& stack_;
  Faults& faults_;
  const Options options_;
  const CancelToken cancel_;
  std::unordered_map<std::string, Verdict> verdicts_;
  std::vector<Waiting> waiting_;
  std::size_t waiting_chunks_ = 0, waiting_uses_ = 0;
  std::unordered_set<ChunkId> seen_;
  std::unordered_map<ChunkId, Fault> faulty_;
  std::uint64_t files_ = 0;
};

}  // namespace playfs::app
