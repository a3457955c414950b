#include "app/fsck/content_check.h"

#include <utility>

#include "base/await.h"
#include "base/parallel.h"
#include "content/verify.h"
#include "model/chunking.h"
#include "model/repository.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr const char* kChunks = "file_chunks";
/// Together they keep every connection busy, and need little memory: files wait without their contents.
constexpr std::size_t kMostWaitingChunks = 1024, kMostWaitingUses = 20'000;

/// nullopt if the error says nothing about the chunk, as the service could not be asked.
std::optional<Fault> fault_of_chunk(const ChunkId& id, const Error& error) {
  const std::string chunk = "chunk " + id.text();
  switch (error.code) {
    case ErrorCode::not_found: return Fault{Severity::damage, "missing_chunk", chunk + " does not exist"};
    case ErrorCode::permission_denied:
    case ErrorCode::protocol:
    case ErrorCode::refused_input:
    case ErrorCode::corrupt:
    case ErrorCode::record_too_large:
      return Fault{Severity::damage, "unreadable_chunk", chunk + " cannot be read: " + error.message};
    default: return std::nullopt;
  }
}

Fault wrong_content(const Error& error) {
  return {Severity::damage, error.code == ErrorCode::refused_input ? "too_large" : "wrong_content", error.message};
}

bool is_immediate_entry(const FileEntry& entry) { return entry.inline_text || entry.chunks.empty(); }

}  // namespace

Status ContentCheck::check(const RevisionId& revision, const std::string& path, const FileEntry& entry) {
  ++files_;
  Use use{revision, path, entry.mode};
  if (is_immediate_entry(entry)) {
    PLAYFS_TRY(const Content content, content_of(entry));
    if (!content) faults_.add(revision, path, content.error());
    return {};
  }
  auto [found, is_new] = verdicts_.try_emplace(content::origin_key(entry));
  Verdict& verdict = found->second;
  if (is_new) {
    verdict.waiting = waiting_.size();
    waiting_chunks_ += entry.chunks.size();
    waiting_.push_back({found->first, entry, {}});
  }
  if (!verdict.waiting) {
    judge(use, verdict);
    return {};
  }
  waiting_.at(*verdict.waiting).uses.push_back(std::move(use));
  ++waiting_uses_;
  return waiting_chunks_ < kMostWaitingChunks && waiting_uses_ < kMostWaitingUses ? Status() : finish();
}

Status ContentCheck::finish() {
  std::vector<ChunkId> chunks;
  for (const Waiting& each : waiting_) chunks.insert(chunks.end(), each.entry.chunks.begin(), each.entry.chunks.end());
  PLAYFS_CHECK(fetch(chunks));
  for (const Waiting& each : waiting_) {
    Verdict& verdict = verdicts_[each.key];
    PLAYFS_TRY(const Content content, content_of(each.entry));
    if (!content) {
      verdict.fault = content.error();
    } else {
      const std::string_view beginning = std::string_view(*content).substr(0, kReadOfHead);
      verdict.is_head = is_content_of_head(FileMode::regular, beginning);
      verdict.is_link_to_head = is_content_of_head(FileMode::symlink, beginning);
    }
    verdict.waiting.reset();
    for (const Use& use : each.uses) judge(use, verdict);
  }
  waiting_.clear();
  waiting_chunks_ = waiting_uses_ = 0;
  return {};
}

void ContentCheck::judge(const Use& use, const Verdict& verdict) {
  if (verdict.fault) return faults_.add(use.revision, use.path, *verdict.fault);
  if (is_named_as_head(use.path) && (use.mode == FileMode::symlink ? verdict.is_link_to_head : verdict.is_head))
    faults_.add(use.revision, use.path, refused_name(std::string(kWhyNoHead)));
}

Result<std::optional<std::string>> ContentCheck::read(const RevisionId& revision, const std::string& path,
                                                      const FileEntry& entry) {
  PLAYFS_CHECK(fetch(entry.chunks));
  PLAYFS_TRY(Content content, content_of(entry));
  if (content) return std::optional(std::move(*content));
  faults_.add(revision, path, content.error());
  return std::optional<std::string>();
}

Status ContentCheck::fetch(const std::vector<ChunkId>& chunks) {
  std::vector<ChunkId> fresh;
  for (const ChunkId& id : chunks)
    if (!seen_.contains(id)) {
      seen_.insert(id);
      fresh.push_back(id);
    }
  return run_parallel<std::optional<Record>>(
      fresh.size(), stack_.client().width(),
      [&](std::size_t index, Callback<std::optional<Record>> done) { request(fresh[index], std::move(done)); },
      [&](auto answers) -> Status {
        for (const auto& [index, result] : answers) {
          if (result) {
            if (*result) stack_.site().relearn(kChunks, **result);
            continue;
          }
          auto fault = fault_of_chunk(fresh[index], result.error());
          if (!fault) return fail(result.error());
          faulty_.emplace(fresh[index], *std::move(fault));
        }
        return {};
      });
}

void ContentCheck::request(const ChunkId& id, Callback<std::optional<Record>> done) {
  using Answer = Result<std::optional<Record>>;
  if (options_.uses_cache)
    return stack_.site().record_text(kChunks, id.text(), cancel_,
                                     [done = std::move(done)](Result<content::RecordTextPtr> text) mutable {
                                       done(text ? Answer(std::nullopt) : Answer(fail(std::move(text).error())));
                                     });
  stack_.client().get_record(
      kChunks, id.text(), cancel_,
      [done = std::move(done)](Result<Record> record) mutable {
        done(record ? Answer(*std::move(record)) : Answer(fail(std::move(record).error())));
      },
      options_.project.text());
}

Result<FileChunk> ContentCheck::chunk(const ChunkId& id) const {
  auto record = stack_.site().try_record(kChunks, id.text());
  if (!record) {
    // The cache could not keep it.
    PLAYFS_TRY(record,
               await<Record>([&](auto done) { stack_.site().record(kChunks, id.text(), cancel_, std::move(done)); }));
  }
  return wire::decode_chunk(*std::move(record));
}

Result<ContentCheck::Content> ContentCheck::content_of(const FileEntry& entry) const {
  if (!is_immediate_entry(entry)) return assembled(entry);
  auto text = entry.inline_text ? entry.inline_content() : std::string();
  if (!text) return Content(tl::unexpected(wrong_content({ErrorCode::corrupt, "its text is not valid base64"})));
  if (auto sound = content::check_content(entry, *text); !sound)
    return Content(tl::unexpected(wrong_content(sound.error())));
  return Content(*std::move(text));
}

Result<ContentCheck::Content> ContentCheck::assembled(const FileEntry& entry) const {
  std::unordered_map<ChunkId, FileChunk> chunks;
  std::vector<const FileChunk*> in_order;
  std::uint64_t size = 0;
  for (const ChunkId& id : entry.chunks) {
    if (auto faulty = faulty_.find(id); faulty != faulty_.end()) return Content(tl::unexpected(faulty->second));
    auto [found, is_new] = chunks.try_emplace(id);
    if (is_new) {
      auto here = chunk(id);
      if (!here) {
        auto fault = fault_of_chunk(id, here.error());
        if (!fault) return fail(here.error());
        return Content(tl::unexpected(*std::move(fault)));
      }
      found->second = *std::move(here);
    }
    in_order.push_back(&found->second);
    size += found->second.content.size();
    // assemble() says so, too, but only with all of it in memory.
    if (size > content::text_ceiling(entry, kMaxFileSize)) break;
  }
  auto content = content::assemble(entry, in_order, kMaxFileSize);
  if (!content) return Content(tl::unexpected(wrong_content(content.error())));
  return Content(*std::move(content));
}

}  // namespace playfs::app
