#include "content/inbox_lines.h"

#include <utility>

namespace playfs::content {

InboxLines::Place InboxLines::find(const std::string& record) {
  auto number = numbers_.find(record);
  return number == numbers_.end() ? lines_.end() : lines_.find(number->second);
}

void InboxLines::remove(Place line) {
  bytes_ -= line->second.bytes();
  numbers_.erase(line->second.record);
  lines_.erase(line);
}

void InboxLines::append(const std::string& record, std::string line) {
  if (auto former = find(record); former != lines_.end()) {
    if (former->second.bytes() > 0) begin_anew();
    remove(former);
  }
  line += '\n';
  bytes_ += line.size();
  numbers_.emplace(record, next_);
  lines_.emplace(next_++, Line{record, std::move(line)});
  if (bytes_ <= most_) return;
  is_cut_ = true;
  while (bytes_ > most_ / 2 && lines_.size() > 1) {
    begin_ += lines_.begin()->second.bytes();
    remove(lines_.begin());
  }
}

void InboxLines::replace(const std::string& record, std::string line) {
  auto found = find(record);
  if (!line.empty()) line += '\n';
  if (found == lines_.end() || found->second.text == line) return;
  if (found->second.is_shown) begin_anew();
  bytes_ -= found->second.bytes();
  found->second.text = std::move(line);
  bytes_ += found->second.bytes();
}

void InboxLines::show(const std::string& record, bool is_shown) {
  auto found = find(record);
  if (found == lines_.end() || found->second.is_shown == is_shown) return;
  if (!found->second.text.empty()) begin_anew();
  bytes_ -= found->second.bytes();
  found->second.is_shown = is_shown;
  bytes_ += found->second.bytes();
}

std::string InboxLines::text() const {
  std::string text;
  text.reserve(bytes_);
  for (const auto& [number, line] : lines_)
    if (line.is_shown) text += line.text;
  return text;
}

std::optional<std::string> InboxLines::text_from(std::uint64_t place) const {
  if (place < begin_) return std::nullopt;
  auto first = lines_.end();
  for (std::uint64_t at = end(); at > place && first != lines_.begin();) at -= (--first)->second.bytes();
  std::string text;
  for (; first != lines_.end(); ++first)
    if (first->second.is_shown) text += first->second.text;
  return text;
}

}  // namespace playfs::content
