// JSON as a value, for unknown fields, `state` and whole records that pass through playfs.
//
// Parsing and printing are in wire. Numbers keep their text, so that a carried-forward record is reproduced exactly,
// and members keep their order. Plain values, safe to copy between threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace playfs {

class Json;
struct JsonMember;

class JsonObject {
 public:
  JsonObject();
  JsonObject(std::initializer_list<JsonMember> members);
  /// REQUIRES: distinct names.
  explicit JsonObject(std::vector<JsonMember> members);
  JsonObject(const JsonObject&);
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(const JsonObject&);
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  /// The member's value, or nullptr.
  [[nodiscard]] const Json* find(std::string_view name) const;
  [[nodiscard]] Json* find(std::string_view name);
  /// Replaces the member in place, or appends it.
  void set(std::string_view name, Json value);
  void erase(std::string_view name);
  /// Appends without a lookup. REQUIRES: no member with that name.
  void append(std::string name, Json value);

  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::vector<JsonMember>::const_iterator begin() const;
  [[nodiscard]] std::vector<JsonMember>::const_iterator end() const;

  /// Whether the parsed text had duplicate names (the last one wins). A manifest must not.
  bool had_duplicate_names = false;

  /// Equal if both have the same members with equal values, in any order.
  friend bool operator==(const JsonObject& a, const JsonObject& b);

 private:
  std::vector<JsonMember> members_;
};

class Json {
 public:
  struct Number {
    std::string text;
    bool operator==(const Number&) const = default;
  };
  using Array = std::vector<Json>;

  Json() = default;  ///< null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : Json(static_cast<std::int64_t>(value)) {}
  Json(std::int64_t value);
  Json(std::uint64_t value);
  Json(double value);  ///< REQUIRES: finite
  Json(Number value) : value_(std::move(value)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(Array values) : value_(std::move(values)) {}
  Json(JsonObject object) : value_(std::move(object)) {}
  template <class T>
  Json(T*) = delete;  // keeps pointers from converting to bool

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  /// Each returns nullptr or nullopt for a value of another type.
  [[nodiscard]] const std::string* string() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* array() const { return std::get_if<Array>(&value_); }
  [[nodiscard]] Array* array() { return std::get_if<Array>(&value_); }
  [[nodiscard]] const JsonObject* object() const { return std::get_if<JsonObject>(&value_); }
  [[nodiscard]] JsonObject* object() { return std::get_if<JsonObject>(&value_); }
  [[nodiscard]] const Number* number() const { return std::get_if<Number>(&value_); }
  [[nodiscard]] std::optional<bool> boolean() const;
  /// The number as an integer, if it is one and in range (3.0 and 3e0 count).
  [[nodiscard]] std::optional<std::int64_t> integer() const;

  bool operator==(const Json& other) const { return value_ == other.value_; }

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, JsonObject> value_;
};

struct JsonMember {
  std::string name;
  Json value;
};

// Inline, since parsing moves every value a few times.
inline JsonObject::JsonObject() = default;
inline JsonObject::JsonObject(JsonObject&&) noexcept = default;
inline JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
inline JsonObject::~JsonObject() = default;

/// The length of `text` as a JSON string with quotes and escapes: exactly what wire::to_text prints.
std::size_t json_size_of_string(std::string_view text);
/// The length of a value in compact form: exactly what wire::to_text prints. REQUIRES: strings are valid UTF-8.
std::size_t json_size(const Json& value);

}  // namespace playfs
