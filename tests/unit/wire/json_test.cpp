#include "wire/json.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string_view>

#include <gtest/gtest.h>

#include "support.h"

namespace playfs::wire {
namespace {

using namespace std::string_literals;

TEST(ParseJson, KeepsNumbersAndOrder) {
  const std::string text = R"({"z":1.50,"a":[-0,1e5,123456789012345678901234567890,true,false,null],"":{}})";
  auto json = parse_json(text);
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(to_text(*json), text);
}

TEST(ParseJson, RefusesWhatIsNoDocument) {
  for (const auto& text : {""s,
                           " "s,
                           "{"s,
                           "[1,]"s,
                           "{\"a\":1,}"s,
                           "01"s,
                           "NaN"s,
                           "'a'"s,
                           "{}{}"s,
                           "1 2"s,
                           "{}\0"s,
                           "\"\n\""s,
                           "\"\\x\""s,
                           "\"\xff\""s,
                           "\"\xc0\x80\""s,
                           R"("\ud800")"s,
                           R"("\udc00")"s,
                           R"("\ud800A")"s,
                           "tru"s,
                           "// c\n1"s,
                           "\"\0\""s}) {
    auto json = parse_json(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code, ErrorCode::protocol);
  }
  EXPECT_TRUE(parse_json(" \t\r\n1\n "));
  EXPECT_EQ(*parse_json(R"("\ud83d\ude00\u0000")")->string(), "😀\0"s);
}

TEST(ParseJson, HoldsItsLimits) {
  auto message = [](const std::string& text, JsonLimits limits) {
    auto json = parse_json(text, limits);
    return json ? std::string() : json.error().message;
  };
  EXPECT_EQ(message("[[1]]", {.depth = 2}), "");
  EXPECT_NE(message("[[[1]]]", {.depth = 2}).find("deeper"), std::string::npos);
  EXPECT_EQ(message("[1,2]", {.values = 3}), "");
  EXPECT_NE(message("[1,2,3]", {.values = 3}).find("values"), std::string::npos);
  EXPECT_EQ(message("\"\\n\\n\"", {.string_size = 2}), "");
  EXPECT_NE(message("\"abc\"", {.string_size = 2}).find("string"), std::string::npos);
  EXPECT_NE(message("{\"abc\":1}", {.string_size = 2}).find("string"), std::string::npos);
  EXPECT_NE(message("123", {.string_size = 2}).find("string"), std::string::npos);
  EXPECT_NE(message("[1]", {.document_size = 2}), "");
  // Neither the parser nor its results may recurse as deep as the text says.
  EXPECT_FALSE(parse_json(std::string(2'000'000, '[')));
}

TEST(ParseJson, SeesNamesGivenTwice) {
  auto json = parse_json(R"({"a":1,"b":{"c":1},"a":2})");
  ASSERT_TRUE(json);
  EXPECT_TRUE(json->object()->had_duplicate_names);
  EXPECT_EQ(*json->object()->find("a")->integer(), 2);
  EXPECT_EQ(json->object()->size(), 2u);
  EXPECT_FALSE(json->object()->find("b")->object()->had_duplicate_names);
}

TEST(ParseJson, NoArrayOrObjectHasAnythingOfTheOneBefore) {
  std::string text = "[";
  for (const int members : {3, 20, 20, 0, 16, 17, 1}) {
    std::string object, array;
    for (int i = 0; i < members; ++i) {
      object += (i ? ",\"" : "\"") + std::to_string(i) + "\":[" + std::to_string(i) + "]";
      array += (i ? ",{" : "{") + ("\"" + std::to_string(i)) + "\":null}";
    }
    text += "{" + object + "},[" + array + "],{\"a\":1,\"a\":2},";
  }
  text.back() = ']';
  auto json = parse_json(text);
  ASSERT_TRUE(json) << json.error().message;
  std::string expected = text;
  for (auto at = expected.find("\"a\":1,"); at != std::string::npos; at = expected.find("\"a\":1,"))
    expected.erase(at, 6);
  EXPECT_EQ(to_text(*json), expected);
  for (const Json& each : *json->array()) {
    if (const JsonObject* object = each.object()) {
      EXPECT_EQ(object->had_duplicate_names, object->find("a") != nullptr);
    }
  }
}

TEST(ParseJson, SeesThemInLargeObjectsInLinearTime) {
  std::string text = "{";
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 100'000; ++i) text += "\"" + std::to_string(i) + "\":" + std::to_string(round) + ",";
  text.back() = '}';
  auto json = parse_json(text);
  ASSERT_TRUE(json);
  EXPECT_TRUE(json->object()->had_duplicate_names);
  EXPECT_EQ(json->object()->size(), 100'000u);
  EXPECT_EQ(*json->object()->begin()->value.integer(), 1);
}

/// ASCII names of 16 bytes with one std::hash, as libstdc++ 12 computes it: MurmurHash64A, whose last block can be
/// chosen for any hash.
std::vector<std::string> names_with_one_hash(std::size_t count) {
  constexpr std::uint64_t mul = 0xc6a4a7935bd1e995;
  std::uint64_t inverse = mul;
  for (int i = 0; i < 6; ++i) inverse *= 2 - mul * inverse;
  auto mixed = [](std::uint64_t v) { return v ^ (v >> 47); };  // its own inverse
  auto is_plain = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  };
  // Tens of millions are tried, also by instrumented code: no string is made of those that are not ASCII.
  constexpr std::uint64_t varied = 0x0f0f0f0f0f0f0f0f, letters = 0x4040404040404040, beyond_ascii = 0x8080808080808080;
  std::vector<std::string> names;
  for (std::uint64_t bits = 0; names.size() < count; bits = ((bits | ~varied) + 1) & varied) {
    const std::uint64_t first = bits | letters;
    const std::uint64_t state = (0xc70f6907 ^ (16 * mul) ^ (mixed(first * mul) * mul)) * mul;
    const std::uint64_t last = mixed((state ^ 0x1234567) * inverse) * inverse;
    if ((last & beyond_ascii) != 0) continue;
    std::string name(16, ' ');
    std::memcpy(name.data(), &first, 8);
    std::memcpy(name.data() + 8, &last, 8);
    if (is_plain(name)) names.push_back(std::move(name));
  }
  return names;
}

TEST(ParseJson, NamesThatCollideCostNoMoreThanOthers) {
  static constexpr std::size_t count = 16'000;
  auto seconds_for = [](const std::vector<std::string>& names) {
    std::string text = "{";
    for (const std::string& name : names) text += "\"" + name + "\":1,";
    text.back() = '}';
    const std::clock_t begin = std::clock();
    auto json = parse_json(text);
    EXPECT_TRUE(json);
    EXPECT_EQ(json->object()->size(), count);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  std::vector<std::string> others;
  for (std::size_t i = 0; i < count; ++i) others.push_back(std::to_string(1'000'000'000'000'000 + i * 7919));
  const auto collide = names_with_one_hash(count);
  EXPECT_EQ(std::hash<std::string>()(collide[0]), std::hash<std::string>()(collide[1])) << "a test of nothing";
  EXPECT_LT(seconds_for(collide), 10 * seconds_for(others) + 0.05);
}

TEST(ParseAnswer, MendsWhatAStrangerMayHaveWritten) {
  auto mended = [](const std::string& text) {
    EXPECT_FALSE(parse_json(text)) << text;
    auto json = parse_answer(text);
    return json ? to_text(*json) : json.error().message;
  };
  EXPECT_EQ(mended(R"(["\ud800","\udc00x","\ud800\ud800","\ud83d\ude00","\\ud800"])"),
            "[\"\uFFFD\",\"\uFFFDx\",\"\uFFFD\uFFFD\",\"😀\",\"\\\\ud800\"]");
  EXPECT_EQ(mended("[\"a\xff\",\"\xed\xa0\x80\",\"ä\"]"), "[\"a\uFFFD\",\"\uFFFD\uFFFD\uFFFD\",\"ä\"]");
  EXPECT_EQ(mended("[1e400,-1E+309,0e999,1e0400,5,1e300,1e-400,\"1e400\"]"),
            "[null,null,null,null,5,1e300,1e-400,\"1e400\"]");
  EXPECT_EQ(mended("[" + std::string(400, '9') + ",2]"), "[null,2]");
  // Broken text stays broken.
  for (const std::string& text : {""s, "["s, "{\"a\":\"\\"s, "\"\\ud800"s, "1e400 2"s, "[1e]"s, "\"\\u12\""s})
    EXPECT_FALSE(parse_answer(text)) << text;
}

TEST(ParseAnswer, DropsOnlyTheRecordThatIsTooDeep) {
  auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  auto page = [&](const std::string& deep) {
    return R"({"records":[{"id":"a"},{"id":"b","x":)" + deep + R"(,"y":[{}]},{"id":"c"}],"nextCursor":"n"})";
  };
  EXPECT_EQ(to_text(*parse_answer(page(nested(61)))), page(nested(61)));
  EXPECT_EQ(to_text(*parse_answer(page(nested(5000)))), R"({"records":[{"id":"a"},null,{"id":"c"}],"nextCursor":"n"})");
  EXPECT_FALSE(parse_answer(R"({"record":{"id":"b","state":)" + nested(100) + "}}"));
  EXPECT_FALSE(parse_answer(R"({"other":[{"id":"b","state":)" + nested(100) + "}]}"));
  EXPECT_FALSE(parse_answer(page(nested(1'000'000))));
}

TEST(ParseAnswer, AgreesWithTheStrictReading) {
  EXPECT_TRUE(rc::check([] {
    Json json = *any_json();
    RC_ASSERT(parse_answer(to_text(json)).value() == json);
  }));
}

TEST(ToText, EscapesOnlyWhatItMust) {
  EXPECT_EQ(to_text(Json("\"\\/\b\f\n\r\t\x01\x1f\x7fä😀\0"s)),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\x7fä😀\\u0000\"");
  EXPECT_EQ(to_text(Json("a\xff\xe2\x82z")), "\"a\uFFFD\uFFFD\uFFFDz\"");
  // Files of a mount end up on terminals.
  EXPECT_EQ(to_pretty_text(Json("\x1b[2J\x7f\u009b2J\u202e\u202c\u2028ä")),
            "\"\\u001B[2J\\u007f\\u009b2J\\u202e\\u202c\\u2028ä\"\n");
  EXPECT_EQ(to_pretty_text(JsonObject{{"a", Json::Array{1, JsonObject{}}}}), "{\n  \"a\": [\n    1,\n    {}\n  ]\n}\n");
}

TEST(ToText, IsReadBackAndHasTheSizeThatWasCounted) {
  EXPECT_TRUE(rc::check([] {
    Json json = *any_json();
    std::string text = to_text(json);
    RC_ASSERT(text.size() == json_size(json));
    auto back = parse_json(text);
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == json);
    RC_ASSERT(to_text(*back) == text);
    RC_ASSERT(parse_json(to_pretty_text(json)).value() == json);
  }));
}

}  // namespace
}  // namespace playfs::wire
