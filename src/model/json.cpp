#include "model/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace playfs {

JsonObject::JsonObject(std::initializer_list<JsonMember> members) : members_(members) {}
JsonObject::JsonObject(std::vector<JsonMember> members) : members_(std::move(members)) {}
JsonObject::JsonObject(const JsonObject&) = default;
JsonObject& JsonObject::operator=(const JsonObject&) = default;

const Json* JsonObject::find(std::string_view name) const {
  for (const auto& member : members_)
    if (member.name == name) return &member.value;
  return nullptr;
}

Json* JsonObject::find(std::string_view name) { return const_cast<Json*>(std::as_const(*this).find(name)); }

void JsonObject::set(std::string_view name, Json value) {
  if (Json* found = find(name)) *found = std::move(value);
  else append(std::string(name), std::move(value));
}

void JsonObject::erase(std::string_view name) {
  std::erase_if(members_, [&](const JsonMember& member) { return member.name == name; });
}

void JsonObject::append(std::string name, Json value) { members_.push_back({std::move(name), std::move(value)}); }

bool JsonObject::empty() const { return members_.empty(); }
std::size_t JsonObject::size() const { return members_.size(); }
std::vector<JsonMember>::const_iterator JsonObject::begin() const { return members_.begin(); }
std::vector<JsonMember>::const_iterator JsonObject::end() const { return members_.end(); }

bool operator==(const JsonObject& a, const JsonObject& b) {
  if (a.members_.size() != b.members_.size()) return false;
  auto sorted = [](const JsonObject& object) {
    std::vector<const JsonMember*> members;
    for (const auto& member : object.members_) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](auto* x, auto* y) { return x->name < y->name; });
    return members;
  };
  auto left = sorted(a), right = sorted(b);
  return std::equal(left.begin(), left.end(), right.begin(),
                    [](auto* x, auto* y) { return x->name == y->name && x->value == y->value; });
}

Json::Json(std::int64_t value) : value_(Number{std::to_string(value)}) {}
Json::Json(std::uint64_t value) : value_(Number{std::to_string(value)}) {}
Json::Json(double value) : value_(Number{fmt::format("{}", value)}) {}

std::optional<bool> Json::boolean() const {
  if (auto* value = std::get_if<bool>(&value_)) return *value;
  return std::nullopt;
}

std::optional<std::int64_t> Json::integer() const {
  const Number* value = number();
  if (!value) return std::nullopt;
  const char* begin = value->text.data();
  const char* end = begin + value->text.size();
  std::int64_t whole = 0;
  if (auto [stop, error] = std::from_chars(begin, end, whole); error == std::errc() && stop == end) return whole;
  double real = 0;
  auto [stop, error] = std::from_chars(begin, end, real);
  // Above 2^53 a double no longer identifies one integer.
  constexpr double limit = 9007199254740992.0;
  if (error != std::errc() || stop != end || std::trunc(real) != real || std::abs(real) > limit) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::size_t json_size_of_string(std::string_view text) {
  // The length of each byte in a JSON string. A table, because planning scans every byte of a project several times.
  static constexpr auto kLengths = [] {
    std::array<std::uint8_t, 256> lengths{};
    for (std::size_t c = 0; c < lengths.size(); ++c) lengths[c] = c < 0x20 ? 6 : 1;
    for (unsigned char c : {'"', '\\', '\b', '\f', '\n', '\r', '\t'}) lengths[c] = 2;
    return lengths;
  }();
  std::size_t size = 2;
  for (char c : text) size += kLengths[static_cast<unsigned char>(c)];
  return size;
}

std::size_t json_size(const Json& value) {
  if (auto* text = value.string()) return json_size_of_string(*text);
  if (auto* number = value.number()) return number->text.size();
  if (auto flag = value.boolean()) return *flag ? 4 : 5;
  if (auto* array = value.array()) {
    std::size_t size = 2 + (array->empty() ? 0 : array->size() - 1);
    for (const Json& item : *array) size += json_size(item);
    return size;
  }
  if (auto* object = value.object()) {
    std::size_t size = 2 + (object->empty() ? 0 : object->size() - 1);
    for (const auto& member : *object) size += json_size_of_string(member.name) + 1 + json_size(member.value);
    return size;
  }
  return 4;  // null
}

}  // namespace playfs
