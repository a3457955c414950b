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

std::string messages_ndjson(std::span<const content::RecordPartPtr> messages) {
  struct Written {
    WallTime at;
    const Record* record;
  };
  std::vector<Written> lines;
  for (const auto& message : messages) {
    const Record& record = message->record;
    const WallTime created = time_of(record.created_at), updated = time_of(record.updated_at);
    lines.push_back({created, &record});
    if (updated.nanoseconds - created.nanoseconds > kChangedLater) lines.push_back({updated, &record});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Written& a, const Written& b) { return a.at < b.at; });
  std::string text;
  for (const Written& line : lines) text += text_field(line.record->fields, kLine) + "\n";
  return text;
}

}  // namespace playfs::vfs
