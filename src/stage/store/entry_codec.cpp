#include "stage/store/entry_codec.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace playfs::stage {

namespace {

// Everything is a byte, a 64-bit number, or a string with its length in front. The format's version is the database's.
constexpr int kMaxDepth = 200;  // of JSON; wire never produces deeper documents

void put_number(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

enum class Tag : char { null, falsity, truth, number, string, array, object };

void put_object(std::string& out, const JsonObject& object);

void put_json(std::string& out, const Json& value) {
  auto tag = [&](Tag kind) { out += static_cast<char>(kind); };
  if (auto truth = value.boolean()) {
    tag(*truth ? Tag::truth : Tag::falsity);
  } else if (const auto* number = value.number()) {
    tag(Tag::number);
    put_text(out, number->text);
  } else if (const auto* text = value.string()) {
    tag(Tag::string);
    put_text(out, *text);
  } else if (const auto* array = value.array()) {
    tag(Tag::array);
    put_number(out, array->size());
    for (const auto& item : *array) put_json(out, item);
  } else if (const auto* object = value.object()) {
    tag(Tag::object);
    put_object(out, *object);
  } else {
    tag(Tag::null);
  }
}

void put_object(std::string& out, const JsonObject& object) {
  put_number(out, object.size());
  for (const auto& member : object) {
    put_text(out, member.name);
    put_json(out, member.value);
  }
}

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool ended_well() const { return good_ && rest_.empty(); }

  std::uint8_t byte() {
    if (rest_.empty()) good_ = false;
    if (!good_) return 0;
    auto value = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8) value |= std::uint64_t{byte()} << shift;
    return value;
  }

  /// A count of items that take at least a byte each.
  std::uint64_t count() {
    std::uint64_t value = number();
    if (value > rest_.size()) good_ = false;
    return good_ ? value : 0;
  }

  std::string text() {
    std::uint64_t size = count();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }

  Json json(int depth) {
    if (depth > kMaxDepth) good_ = false;
    if (!good_) return {};
    switch (static_cast<Tag>(byte())) {
      case Tag::null: return {};
      case Tag::falsity: return false;
      case Tag::truth: return true;
      case Tag::number: return Json::Number{text()};
      case Tag::string: return text();
      case Tag::array: {
        Json::Array items;
        for (std::uint64_t left = count(); left > 0 && good_; --left) items.push_back(json(depth + 1));
        return items;
      }
      case Tag::object: return object(depth + 1);
    }
    good_ = false;
    return {};
  }

  JsonObject object(int depth) {
    JsonObject members;
    for (std::uint64_t left = count(); left > 0 && good_; --left) {
      std::string name = text();
      members.append(std::move(name), json(depth));
    }
    return members;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

std::string encode_entry(const FileEntry& entry) {
  std::string out;
  put_text(out, entry.hash_claim);
  out += static_cast<char>(entry.size_claim.has_value());
  put_number(out, entry.size_claim.value_or(0));
  out += static_cast<char>(entry.mode);
  out += static_cast<char>(entry.encoding);
  out += static_cast<char>(entry.inline_text.has_value());
  put_text(out, entry.inline_text.value_or(""));
  put_number(out, entry.chunks.size());
  for (const auto& chunk : entry.chunks) put_text(out, chunk.text());
  put_object(out, entry.extra);
  return out;
}

std::optional<FileEntry> decode_entry(std::string_view bytes) {
  FieldReader reader(bytes);
  FileEntry entry;
  entry.hash_claim = reader.text();
  bool has_size = reader.byte() != 0;
  std::uint64_t size = reader.number();
  if (has_size) entry.size_claim = size;
  std::uint8_t mode = reader.byte();
  std::uint8_t encoding = reader.byte();
  if (mode > static_cast<std::uint8_t>(FileMode::symlink)) return std::nullopt;
  if (encoding > static_cast<std::uint8_t>(ContentEncoding::base64)) return std::nullopt;
  entry.mode = static_cast<FileMode>(mode);
  entry.encoding = static_cast<ContentEncoding>(encoding);
  bool is_inline = reader.byte() != 0;
  std::string text = reader.text();
  if (is_inline) entry.inline_text = std::move(text);
  for (std::uint64_t left = reader.count(); left > 0; --left) entry.chunks.emplace_back(reader.text());
  entry.extra = reader.object(0);
  if (!reader.ended_well()) return std::nullopt;
  return entry;
}

// One line each: the path in base64, since it may hold any byte; " s" if it was only staged, which older versions did
// not record; " d" if it was discarded.

std::string encode_tracked(const Tracked& paths) {
  std::string text;
  for (const auto& [path, as] : paths)
    text += to_base64(path) + (as == TrackedAs::staged ? " s\n" : as == TrackedAs::discarded ? " d\n" : "\n");
  return text;
}

std::optional<Tracked> decode_tracked(std::string_view text) {
  Tracked paths;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    const TrackedAs as = line.ends_with(" s")   ? TrackedAs::staged
                         : line.ends_with(" d") ? TrackedAs::discarded
                                                : TrackedAs::taken_in;
    if (as != TrackedAs::taken_in) line.remove_suffix(2);
    auto path = from_base64(line);
    if (!path) return std::nullopt;
    paths.emplace(*std::move(path), as);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return paths;
}

// One line each: path and reason in base64; "m" (markers), "k" (local-only) or "-", then the inode number; hash or "-";
// `beside` in base64, if any.

std::string encode_conflicted(const std::vector<Conflicted>& list) {
  std::string text;
  for (const auto& each : list)
    text += to_base64(each.path) + ' ' + to_base64(each.reason) +
            (each.has_markers    ? " m"
             : each.is_kept_here ? " k"
                                 : " -") +
            (each.ino == 0 ? "" : std::to_string(each.ino)) + ' ' + (each.left ? each.left->hex() : "-") +
            (each.beside.empty() ? "" : ' ' + to_base64(each.beside)) + '\n';
  return text;
}

std::optional<std::vector<Conflicted>> decode_conflicted(std::string_view text) {
  std::vector<Conflicted> list;
  auto take = [&](char until) -> std::string_view {
    auto end = std::min(text.find(until), text.size());
    auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  while (!text.empty()) {
    auto path = from_base64(take(' ')), reason = from_base64(take(' '));
    std::string_view kind = take(' '), line = take('\n');
    std::string_view left = line.substr(0, line.find(' '));
    auto beside = from_base64(line.substr(std::min(left.size() + 1, line.size())));
    if (!path || !reason || !beside || kind.empty()) return std::nullopt;
    // Lists of older versions have no inode number.
    auto ino = kind.size() == 1 ? std::optional<std::uint64_t>(0) : parse_number<std::uint64_t>(kind.substr(1));
    if (!ino) return std::nullopt;
    auto hash = ContentHash::parse(left);
    if (!hash && left != "-") return std::nullopt;
    // In lists of older versions the state and the manifest's fields have no slash. A file had markers or a number.
    const bool is_old_name = *path == "(state)" || path->starts_with("(state) ") || path->starts_with("(manifest) ");
    if (is_old_name && kind == "-" && beside->empty()) path->insert(0, 1, '/');
    list.push_back({*std::move(path), *std::move(reason), kind.front() == 'm', hash, *std::move(beside), *ino,
                    kind.front() == 'k'});
  }
  return list;
}

}  // namespace playfs::stage
