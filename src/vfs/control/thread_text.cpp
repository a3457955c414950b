#include "vfs/control/thread_text.h"

#include <algorithm>
#include <vector>

#include "content/record_line.h"
#include "vfs/control/control_text.h"

namespace playfs::vfs {
namespace {

/// Messages are left out in steps: of many by their number, of large ones by their size.
constexpr std::size_t kStep = kMostMessages / 2, kStepOfLarge = 32;
/// A message counts as changed if its two times differ by more than this: services may not set them at the same moment.
constexpr std::int64_t kChangedLater = 1'000'000'000;

constexpr const char* kLine = "line";

std::size_t up_to_step(std::size_t count, std::size_t step) { return (count + step - 1) / step * step; }

WallTime time_of(const std::string& text) { return parse_iso8601(text).value_or(WallTime{}); }

}  // namespace

std::size_t left_out(std::size_t count, std::size_t fit) {
  const std::size_t older = count <= kMostMessages ? 0 : up_to_step(count - kMostMessages, kStep);
  if (count - older <= fit) return older;
  const std::size_t larger = up_to_step(count - fit, kStepOfLarge);
  return larger < count ? larger : count - fit;
}

std::size_t size_of_message(const Record& message) {
  std::size_t size = message.id.size() + message.created_at.size();
  for (const auto& [name, value] : message.fields)
    if (const std::string* text = value.string()) size += text->size();
  return size;
}

content::Reduced line_of_message(Record record) {
  std::string line = content::record_line(record, "messages/");
  Record shown{std::move(record.id), std::move(record.created_at), std::move(record.updated_at), {}, {}};
  shown.fields.set(kLine, std::move(line));
  return {std::move(shown), {}};
}

namespace {

struct WrittenLine {
  WallTime at;
  const Record* record;
};

std::vector<WrittenLine> written_lines(std::span<const content::RecordPartPtr> messages) {
  std::vector<WrittenLine> lines;
  for (const auto& message : messages) {
    const Record& record = message->record;
    const WallTime created = time_of(record.created_at), updated = time_of(record.updated_at);
    lines.push_back({created, &record});
    if (updated.nanoseconds - created.nanoseconds > kChangedLater) lines.push_back({updated, &record});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const WrittenLine& a, const WrittenLine& b) { return a.at < b.at; });
  return lines;
}

}  // namespace

std::string messages_ndjson(std::span<const content::RecordPartPtr> messages) {
  std::string text;
  for (const WrittenLine& line : written_lines(messages)) text += text_field(line.record->fields, kLine) + "\n";
  return text;
}

LineTimes times_of_lines(std::span<const content::RecordPartPtr> messages) {
  const std::vector<WrittenLine> lines = written_lines(messages);
  return lines.empty() ? LineTimes() : LineTimes{lines.front().at, lines.back().at};
}

std::optional<std::size_t> messages_after(const ThreadPart& was, const std::vector<content::Listed>& now,
                                          bool is_whole) {
  const std::span<const content::Listed> before = std::span(*was.list).subspan(was.begin);
  if (before.empty()) return now.size();
  const auto seam = std::find_if(now.begin(), now.end(), [&](const auto& each) { return each.id == before[0].id; });
  const auto left = static_cast<std::size_t>(now.end() - seam);
  if (left == 0 || left > before.size() || (is_whole && left < before.size())) return std::nullopt;
  const bool is_same = std::equal(
      seam, seam + static_cast<std::ptrdiff_t>(std::min(left, before.size() - was.older)), before.begin(),
      [](const content::Listed& a, const content::Listed& b) { return a.id == b.id && a.updated_at == b.updated_at; });
  return is_same ? std::optional(static_cast<std::size_t>(seam - now.begin())) : std::nullopt;
}

ThreadPart part_with(const ThreadPart& was, content::ListPtr now, std::size_t after, std::size_t begin) {
  const std::size_t lost = was.list->size() - was.begin - (now->size() - after);
  return {std::move(now), begin, was.older - std::min(was.older, lost)};
}

}  // namespace playfs::vfs
