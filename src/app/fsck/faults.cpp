#include "app/fsck/faults.h"

#include <utility>

#include <fmt/format.h>

namespace playfs::app {

namespace {

/// More are counted, but not kept: anybody can publish any number.
constexpr std::size_t kMostFaults = 10'000;

const char* severity_word(Severity severity) {
  switch (severity) {
    case Severity::damage: return "damage";
    case Severity::notice: return "notice";
    case Severity::branch: return "branch";
  }
  return "";
}

}  // namespace

Fault refused_name(const std::string& why) {
  return {Severity::notice, "refused_name", "mounts do not show it: " + why,
          "ask its publisher to rename it; commits carry it forward untouched"};
}

void Faults::add(const RevisionId& revision, const std::string& path, const Fault& fault) {
  add(Key(fault.kind, path, fault.message), Finding{fault, revision, path, revision});
}

void Faults::add_group(const RevisionId& revision, const std::string& path, std::uint64_t files, const Fault& fault) {
  add(Key(fault.kind, "", fault.message), Finding{fault, revision, path, revision, 1, files});
}

void Faults::add(const Key& key, Finding finding) {
  finding.is_in_head = !head_.empty() && finding.revision == head_;
  if (auto known = by_key_.find(key); known != by_key_.end()) {
    Finding& same = *known->second;
    if (same.first != finding.revision) ++same.revisions;
    same.first = finding.revision;
    same.is_in_head = same.is_in_head || finding.is_in_head;
    return;
  }
  ++counts_[finding.fault.severity];
  if (findings_.size() == kMostFaults) return;
  findings_.push_back(std::move(finding));
  by_key_.emplace(key, &findings_.back());
}

std::uint64_t Faults::count(Severity severity) const {
  auto found = counts_.find(severity);
  return found == counts_.end() ? 0 : found->second;
}

std::string Faults::line(const Finding& finding) {
  std::string text = fmt::format("{:<7}", severity_word(finding.fault.severity));
  if (!finding.revision.empty()) text += " " + safe(finding.revision.text());
  if (!finding.path.empty()) text += " " + safe(finding.path);
  if (finding.files > 1) text += fmt::format(" and {} more files", finding.files - 1);
  text += ": " + safe(finding.fault.message);
  if (finding.revisions > 1)
    text += fmt::format(" (in {} revisions, since {})", finding.revisions, safe(finding.first.text()));
  return text;
}

std::string Faults::hint(const Finding& finding) {
  if (!finding.fault.hint.empty()) return finding.fault.hint;
  if (finding.is_in_head) return "write the file again in a work tree, or delete it; then playfs commit -m MESSAGE";
  return "head does not have it any more: nothing to do, unless you need this revision";
}

void Faults::print(Output& out) const {
  for (const Finding& finding : findings_) {
    out.line(line(finding));
    out.line("        → " + safe(hint(finding)));
  }
  std::uint64_t all = 0;
  for (const auto& [severity, count] : counts_) all += count;
  if (all > findings_.size()) out.line(fmt::format("… and {} more findings.", all - findings_.size()));
}

Json::Array Faults::documents() const {
  Json::Array list;
  for (const Finding& finding : findings_) {
    JsonObject fields{{"severity", severity_word(finding.fault.severity)}, {"kind", finding.fault.kind}};
    if (!finding.revision.empty()) fields.append("revision", finding.revision.text());
    if (!finding.path.empty()) fields.append("path", finding.path);
    fields.append("message", finding.fault.message);
    fields.append("hint", hint(finding));
    fields.append("in_head", finding.is_in_head);
    fields.append("files", finding.files);
    fields.append("revisions", finding.revisions);
    if (!finding.first.empty()) fields.append("first_revision", finding.first.text());
    list.emplace_back(std::move(fields));
  }
  return list;
}

}  // namespace playfs::app
