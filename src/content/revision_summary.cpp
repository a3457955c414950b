#include "content/revision_summary.h"

namespace playfs::content {
namespace {

/// More than are shown: the others still tell which revisions have been merged.
constexpr std::size_t kMostKeptParents = 1'024;

std::size_t bytes_of(const RevisionSummary& summary) {
  std::size_t bytes = sizeof summary + summary.id.text().size() + summary.project.text().size() + summary.agent.size() +
                      summary.message.size();
  for (const RevisionId& parent : summary.parents) bytes += sizeof parent + parent.text().size();
  return bytes;
}

}  // namespace

std::string shown_text(std::string_view text) {
  if (text.size() <= kMaxRecordSize) return std::string(text);
  std::size_t end = kMaxRecordSize;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // inside a character
  return std::string(text.substr(0, end)) + "…";
}

SummaryPtr summary_of(const RevisionTree& tree) {
  const Revision& revision = tree.revision;
  const auto& parents = revision.parents;
  auto summary = std::make_shared<RevisionSummary>();
  summary->id = revision.id;
  summary->project = revision.project;
  summary->parents.assign(parents.begin(),
                          parents.begin() + static_cast<std::ptrdiff_t>(std::min(parents.size(), kMostKeptParents)));
  summary->parent_count = parents.size();
  summary->agent = shown_text(revision.agent);
  summary->message = shown_text(revision.message);
  summary->created_at = revision.created_at;
  summary->is_automatic_merge = tree.tree.manifest().is_automatic && parents.size() > 1;  // as link_of()
  return summary;
}

SummaryPtr Summaries::find(const RevisionId& id) {
  MutexLock lock(mutex_);
  auto* found = kept_.find(id);
  return found ? *found : nullptr;
}

void Summaries::add(const SummaryPtr& summary) {
  std::vector<SummaryPtr> evicted;  // destroyed after the lock is released
  const std::size_t bytes = bytes_of(*summary);
  MutexLock lock(mutex_);
  evicted = kept_.insert(summary->id, summary, bytes);
}

}  // namespace playfs::content
