#include "wire/server_events.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "wire/ids.h"
#include "wire/json.h"

namespace playfs::wire {

namespace {

constexpr std::size_t kMaxWord = 64;  // bytes of a collection's name or a time
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string word_in(const JsonObject& fields, std::string_view name) {
  const Json* value = fields.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text && text->size() <= kMaxWord ? *text : std::string();
}

std::string id_in(const JsonObject& fields, std::string_view name) {
  const Json* value = fields.find(name);
  return value ? read_id(*value).value_or("") : std::string();
}

}  // namespace

void ServerEvents::feed(std::string_view piece, const std::function<void(const ServerEvent&)>& take) {
  while (!piece.empty()) {
    if (std::exchange(after_cr_, false) && piece.front() == '\n') {
      piece.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(piece.find_first_of("\r\n"), piece.size());
    const std::string_view more = piece.substr(0, end);
    if (!is_skipping_ && more.size() > kLongestLine - line_.size()) {
      is_skipping_ = true;
      line_.clear();
      drop_event();
    }
    if (!is_skipping_) line_ += more;
    if (end == piece.size()) return;
    after_cr_ = piece[end] == '\r';
    piece.remove_prefix(end + 1);
    end_line(take);
  }
}

void ServerEvents::drop_event() {
  ++dropped_;
  is_dropped_ = true;
  event_.data = {};
}

void ServerEvents::end_line(const std::function<void(const ServerEvent&)>& take) {
  std::string_view line = line_;
  if (std::exchange(is_first_line_, false) && line.starts_with(kByteOrderMark))
    line.remove_prefix(kByteOrderMark.size());
  if (std::exchange(is_skipping_, false)) {
    // Nothing of it is left.
  } else if (!line.empty()) {
    take_field(line);
  } else {
    if (has_data_ && !is_dropped_) {
      if (event_.name.empty()) event_.name = "message";
      take(event_);
    }
    event_.name.clear();
    event_.data.clear();
    has_data_ = is_dropped_ = false;
  }
  line_.clear();
}

void ServerEvents::take_field(std::string_view line) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "event") {
    event_.name = value;
  } else if (name == "data" && !is_dropped_) {
    if (event_.data.size() + value.size() + 1 > kLargestEvent) return drop_event();
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    event_.id = value;
  } else if (name == "retry") {
    std::uint32_t delay = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), delay);
    if (error == std::errc() && end == value.data() + value.size()) retry_ = std::chrono::milliseconds(delay);
  }
}

std::optional<Change> decode_change(std::string_view data) {
  auto json = parse_answer(data, {.document_size = 8 << 10, .depth = 8, .values = 100, .string_size = 4 << 10});
  const JsonObject* fields = json ? json->object() : nullptr;
  if (!fields) return std::nullopt;
  Change change{word_in(*fields, "collection"), id_in(*fields, "id"), word_in(*fields, "updated_at"),
                id_in(*fields, "thread")};
  if (change.belongs_to.empty()) change.belongs_to = id_in(*fields, "project");
  if (change.collection.empty() || change.id.empty()) return std::nullopt;
  return change;
}

}  // namespace playfs::wire
