#include "service/postgres_values.h"

namespace playfs::service {

namespace {

// The numbers of PostgreSQL's types are part of its protocol (pg_type.dat).
constexpr Oid kBytes = 17, kInteger = 20, kText = 25, kByteArray = 1001, kTextArray = 1009, kIntegerArray = 1016;

template <class Number>
void put(std::string& out, Number number) {
  for (int shift = static_cast<int>(sizeof(Number)) * 8 - 8; shift >= 0; shift -= 8)
    out += static_cast<char>(static_cast<std::uint64_t>(number) >> shift);
}

std::string network_order(std::int64_t value) {
  std::string bytes;
  put(bytes, value);
  return bytes;
}

void put_element(std::string& out, std::string_view element) {
  put(out, static_cast<std::int32_t>(element.size()));
  out += element;
}

/// The head of an array of one dimension, whose elements follow.
std::string array_of(Oid element, std::size_t count, bool has_null) {
  std::string out;
  put(out, std::int32_t{count > 0});
  put(out, std::int32_t{has_null});
  put(out, static_cast<std::int32_t>(element));
  if (count == 0) return out;
  put(out, static_cast<std::int32_t>(count));
  put(out, std::int32_t{1});
  return out;
}

template <class Element, class Put>
std::string array_with_nulls(Oid type, const std::vector<std::optional<Element>>& values, Put put_value) {
  bool has_null = false;
  for (const auto& value : values) has_null = has_null || !value;
  std::string out = array_of(type, values.size(), has_null);
  for (const auto& value : values) {
    if (value) put_element(out, put_value(*value));
    else put(out, std::int32_t{-1});
  }
  return out;
}

}  // namespace

Parameters& Parameters::add(Oid type, std::string value) {
  types_.push_back(type);
  values_.push_back(std::move(value));
  return *this;
}

Parameters& Parameters::integer(std::int64_t value) { return add(kInteger, network_order(value)); }
Parameters& Parameters::text(std::string_view value) { return add(kText, std::string(value)); }
Parameters& Parameters::bytes(std::string_view value) { return add(kBytes, std::string(value)); }

Parameters& Parameters::integers(const std::vector<std::optional<std::int64_t>>& values) {
  return add(kIntegerArray, array_with_nulls(kInteger, values, network_order));
}

Parameters& Parameters::texts(const std::vector<std::string_view>& values) {
  std::string out = array_of(kText, values.size(), false);
  for (std::string_view value : values) put_element(out, value);
  return add(kTextArray, std::move(out));
}

Parameters& Parameters::byte_strings(const std::vector<std::optional<std::string_view>>& values) {
  return add(kByteArray, array_with_nulls(kBytes, values, [](std::string_view value) { return value; }));
}

std::int64_t PostgresRows::integer(int row, int column) const {
  std::uint64_t value = 0;
  for (char byte : bytes(row, column)) value = value << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

std::string_view PostgresRows::bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

}  // namespace playfs::service
