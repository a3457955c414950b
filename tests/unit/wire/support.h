// JSON for tests: parsed from text, and generators for property tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/json.h"
#include "wire/json.h"

namespace playfs::wire {

inline Json json(std::string_view text) {
  auto parsed = parse_json(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(Json());
}

inline rc::Gen<std::string> any_text() {
  auto piece = rc::gen::element<std::string>("a", "Z", " ", "/", ".", "\"", "\\", "\n", "\t", "\b", "\x01", "\x1f",
                                             "\x7f", std::string(1, '\0'), "ä", "€", "😀", "\u2028");
  return rc::gen::map(rc::gen::resize(8, rc::gen::container<std::vector<std::string>>(piece)), [](const auto& pieces) {
    std::string text;
    for (const auto& p : pieces) text += p;
    return text;
  });
}

inline rc::Gen<Json> any_number() {
  return rc::gen::oneOf(rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](std::int64_t n) { return Json(n); }),
                        rc::gen::map(rc::gen::element<std::string>("-0", "1.0", "3e0", "1E-7", "18446744073709551616",
                                                                   "0.10", "-5", "100755"),
                                     [](std::string text) { return Json(Json::Number{std::move(text)}); }));
}

/// An object with these values under distinct names from `name`.
inline rc::Gen<JsonObject> object_of(rc::Gen<std::string> name, rc::Gen<Json> value) {
  return rc::gen::map(rc::gen::resize(6, rc::gen::container<std::vector<std::pair<std::string, Json>>>(
                                             rc::gen::pair(std::move(name), std::move(value)))),
                      [](const std::vector<std::pair<std::string, Json>>& members) {
                        JsonObject object;
                        for (const auto& [name, value] : members) object.set(name, value);
                        return object;
                      });
}

inline rc::Gen<Json> any_json(int depth = 3) {
  auto leaf = rc::gen::oneOf(rc::gen::just(Json()), rc::gen::element(Json(true), Json(false)), any_number(),
                             rc::gen::map(any_text(), [](std::string text) { return Json(std::move(text)); }));
  if (depth == 0) return leaf;
  auto array = rc::gen::map(rc::gen::resize(5, rc::gen::container<std::vector<Json>>(any_json(depth - 1))),
                            [](std::vector<Json> items) { return Json(std::move(items)); });
  auto object =
      rc::gen::map(object_of(any_text(), any_json(depth - 1)), [](JsonObject o) { return Json(std::move(o)); });
  return rc::gen::oneOf(leaf, leaf, array, object);
}

}  // namespace playfs::wire

namespace playfs {
inline void showValue(const Json& json, std::ostream& out) { out << wire::to_text(json); }
inline void showValue(const JsonObject& object, std::ostream& out) { showValue(Json(object), out); }
}  // namespace playfs
