#include "wire/json.h"

#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

// RapidJSON's stack compares an address past nullptr before its first allocation. It is harmless and not our code, but
// UBSan would report it for every document.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/reader.h>
#include <rapidjson/writer.h>
#if defined(__clang__)
#pragma clang attribute pop
#endif

#include "base/text.h"
#include "wire/json_parser.h"
#include "wire/json_repair.h"

namespace playfs::wire {

namespace {

/// Builds the value from RapidJSON's events. Returning false ends the parse; `refusal` gives the reason.
class Builder {
 public:
  Builder(const JsonLimits& limits, bool drop_deep_records) : limits_(limits), drop_deep_records_(drop_deep_records) {
    open_.reserve(kUsualDepth);
  }

  std::string refusal;
  Json take() { return std::move(root_); }
  /// Call before each document.
  void begin() {
    refusal.clear();
    root_ = Json();
    depth_ = skipping_ = values_ = 0;
  }

  bool Null() { return add(Json()); }
  bool Bool(bool value) { return add(Json(value)); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    return check_string(length) && add(Json::Number{std::string(text, length)});
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return check_text({text, length}) && add(Json(std::string(text, length)));
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    if (!check_text({text, length})) return false;
    if (skipping_ == 0) innermost().name.assign(text, length);
    return true;
  }
  bool StartObject() { return open(true); }
  bool StartArray() { return open(false); }
  bool EndObject(rapidjson::SizeType) {
    if (skipping_ > 0) return end_skipped();
    Open& closed = close();
    JsonObject object(taken(closed.members));
    object.had_duplicate_names = closed.had_duplicate_names;
    place(std::move(object));
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    if (skipping_ > 0) return end_skipped();
    place(taken(close().items));
    return true;
  }
  // kParseNumbersAsStringsFlag makes all numbers arrive as text, but the reader's template requires these.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  /// An array or object that is not closed yet.
  struct Open {
    bool is_object = false;
    Json::Array items;
    std::vector<JsonMember> members;
    std::string name;                              // of the member whose value comes next
    std::map<std::string, std::size_t> positions;  // members by name, once there are many; strangers choose them
    bool had_duplicate_names = false;

    void begin(bool as_object) {
      is_object = as_object;
      items.clear();
      members.clear();
      positions.clear();
      had_duplicate_names = false;
      if (as_object) members.reserve(kUsualMembers);
    }
    JsonMember* find(const std::string& wanted) {
      constexpr std::size_t few = 16;
      if (members.size() > few) {
        if (positions.empty())
          for (std::size_t i = 0; i < members.size(); ++i) positions.emplace(members[i].name, i);
        auto found = positions.find(wanted);
        return found == positions.end() ? nullptr : &members[found->second];
      }
      for (auto& member : members)
        if (member.name == wanted) return &member;
      return nullptr;
    }
    void put(Json&& value) {
      if (JsonMember* earlier = find(name)) {
        had_duplicate_names = true;
        earlier->value = std::move(value);
        return;
      }
      if (!positions.empty()) positions.emplace(name, members.size());
      JsonMember& added = members.emplace_back();
      added.name.swap(name);
      added.value = std::move(value);
    }
  };

  bool refuse(std::string reason) {
    refusal = std::move(reason);
    return false;
  }
  bool check_string(std::size_t length) {
    return length <= limits_.string_size || refuse(fmt::format("a string longer than {} bytes", limits_.string_size));
  }
  // Checks the unescaped text, to catch escaped lone surrogates, which RapidJSON accepts.
  bool check_text(std::string_view text) {
    return check_string(text.size()) && (is_valid_utf8(text) || refuse("a string that is not valid UTF-8"));
  }
  bool count() { return ++values_ <= limits_.values || refuse(fmt::format("more than {} values", limits_.values)); }
  bool open(bool is_object) {
    if (!count()) return false;
    if (skipping_ > 0) return ++skipping_ <= kDeepestSkipped || refuse("nested too deeply");
    if (depth_ >= limits_.depth) {
      if (!drop_deep_records_ || !in_record_of_page())
        return refuse(fmt::format("nested deeper than {} levels", limits_.depth));
      skipping_ = depth_ - kRecordLevel + 1;
      depth_ = kRecordLevel;
      return true;
    }
    if (depth_ == open_.size()) open_.emplace_back();
    open_[depth_++].begin(is_object);
    return true;
  }
  bool add(Json&& value) {
    if (!count()) return false;
    if (skipping_ == 0) place(std::move(value));
    return true;
  }
  bool in_record_of_page() const {
    return depth_ > kRecordLevel && open_[0].is_object && open_[0].name == "records" && !open_[1].is_object;
  }
  bool end_skipped() {
    if (--skipping_ == 0) innermost().items.emplace_back();  // null, in the page's list
    return true;
  }
  void place(Json&& value) {
    if (depth_ == 0) root_ = std::move(value);
    else if (innermost().is_object) innermost().put(std::move(value));
    else innermost().items.push_back(std::move(value));
  }
  Open& innermost() { return open_[depth_ - 1]; }
  Open& close() { return open_[--depth_]; }
  /// Few values get exactly the memory that they need, and leave theirs to the next array or object at this level. Many
  /// are not moved.
  template <class T>
  static std::vector<T> taken(std::vector<T>& values) {
    constexpr std::size_t few = 16;
    if (values.size() > few) return std::exchange(values, {});
    std::vector<T> exact(std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
    values.clear();
    return exact;
  }

  static constexpr std::size_t kUsualDepth = 8, kUsualMembers = 8;
  // Nesting level of a page's records: inside the page and its list.
  static constexpr std::size_t kRecordLevel = 2;
  static constexpr std::size_t kDeepestSkipped = 100'000;  // RapidJSON keeps some bytes per level

  const JsonLimits& limits_;
  const bool drop_deep_records_;
  std::size_t skipping_ = 0;  // open containers of a record being dropped
  std::vector<Open> open_;    // the first `depth_`, from the outermost; the others are there to be used again
  std::size_t depth_ = 0;
  Json root_;
  std::size_t values_ = 0;
};

Result<Json> parse(rapidjson::Reader& reader, Builder& builder, std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.document_size)
    return fail(ErrorCode::protocol, fmt::format("JSON of {} bytes, more than {}", text.size(), limits.document_size));
  constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::MemoryStream stream(text.data(), text.size());
  builder.begin();
  auto outcome = reader.Parse<flags>(stream, builder);
  if (outcome.IsError()) {
    std::string reason = builder.refusal.empty() ? rapidjson::GetParseError_En(outcome.Code()) : builder.refusal;
    return fail(ErrorCode::protocol, fmt::format("JSON at offset {}: {}", outcome.Offset(), reason));
  }
  // The stream signals its end by NUL, so a NUL in the text looks the same.
  if (stream.Tell() != text.size())
    return fail(ErrorCode::protocol, fmt::format("JSON at offset {}: text after the document", stream.Tell()));
  return builder.take();
}

Result<Json> parse(std::string_view text, const JsonLimits& limits, bool drop_deep_records) {
  rapidjson::Reader reader;
  Builder builder(limits, drop_deep_records);
  return parse(reader, builder, text, limits);
}

/// Output stream for RapidJSON's writers.
struct StringStream {
  using Ch = char;
  std::string text;
  void Put(char c) { text += c; }
  void Flush() {}
};

template <class Writer>
void write_string(Writer& writer, const std::string& text, bool is_name) {
  auto write = [&](const std::string& valid) {
    auto length = static_cast<rapidjson::SizeType>(valid.size());
    is_name ? writer.Key(valid.data(), length) : writer.String(valid.data(), length);
  };
  if (is_valid_utf8(text)) write(text);
  else write(with_bad_bytes_replaced(text));
}

template <class Writer>
void write(Writer& writer, const Json& value) {
  if (auto* text = value.string()) {
    write_string(writer, *text, false);
  } else if (auto* number = value.number()) {
    writer.RawValue(number->text.data(), number->text.size(), rapidjson::kNumberType);
  } else if (auto flag = value.boolean()) {
    writer.Bool(*flag);
  } else if (auto* array = value.array()) {
    writer.StartArray();
    for (const Json& item : *array) write(writer, item);
    writer.EndArray();
  } else if (auto* object = value.object()) {
    writer.StartObject();
    for (const auto& member : *object) {
      write_string(writer, member.name, true);
      write(writer, member.value);
    }
    writer.EndObject();
  } else {
    writer.Null();
  }
}

}  // namespace

struct JsonParser::State {
  explicit State(const JsonLimits& of) : limits(of), builder(limits, false) {}
  const JsonLimits limits;
  rapidjson::Reader reader;
  Builder builder;
};

JsonParser::JsonParser(const JsonLimits& limits) : state_(std::make_unique<State>(limits)) {}
JsonParser::~JsonParser() = default;

Result<Json> JsonParser::parse(std::string_view text) {
  return wire::parse(state_->reader, state_->builder, text, state_->limits);
}

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) { return parse(text, limits, false); }

Result<Json> parse_answer(std::string_view text, const JsonLimits& limits) {
  auto json = parse(text, limits, true);
  if (json || text.size() > limits.document_size) return json;
  return parse(repair_json(text), limits, true);
}

std::string to_text(const Json& value) {
  StringStream out;
  out.text.reserve(json_size(value));
  rapidjson::Writer<StringStream> writer(out);
  write(writer, value);
  return std::move(out.text);
}

std::string to_pretty_text(const Json& value) {
  StringStream out;
  rapidjson::PrettyWriter<StringStream> writer(out);
  writer.SetIndent(' ', 2);
  write(writer, value);
  out.text += '\n';
  return escape_json_for_terminal(out.text);
}

}  // namespace playfs::wire
