// What one page may cost, whatever is stored.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "http/pages/html.h"
#include "http/pages/layout.h"
#include "model/content_hash.h"
#include "unit/http/pages_fixture.h"

namespace playfs::http {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

class PageBounds : public PagesTest {
 protected:
  std::string chunk(const std::string& text, JsonObject more = {}) {
    more.set("content", text);
    return create("file_chunks", std::move(more));
  }
  /// A file of these chunks, without claims about its content.
  static JsonObject file(const std::string& chunk, std::size_t times, bool base64 = false) {
    Json::Array chunks;
    for (std::size_t i = 0; i < times; ++i) chunks.emplace_back(chunk);
    JsonObject entry{{"h", "none of " + chunk}, {"c", std::move(chunks)}};
    if (base64) entry.set("e", "base64");
    return entry;
  }
  std::string project = {};
  void SetUp() override {
    PagesTest::SetUp();
    project = create("projects", {{"name", "p"}});
  }
  std::string diff(const std::string& before, const std::string& after) const {
    return "/projects/" + project + "/diff/" + before + ".." + after;
  }
};

TEST_F(PageBounds, TooManyLinesAreNotComparedAndTheFileIsLinked) {
  const std::string before = publish(project, {{"f", file(chunk(repeated("a\n", 4000)), 6)}, {"g", inline_file("1")}});
  const std::string after = publish(project, {{"f", file(chunk(repeated("b\n", 4000)), 6)}, {"g", inline_file("2")}});
  auto markup = page(diff(before, after));
  EXPECT_THAT(markup.text, HasSubstr("it has too many lines to compare here"));
  EXPECT_THAT(markup.text, HasSubstr("playfs diff " + before + ".." + after));
  for (const std::string& side : {before, after})
    EXPECT_THAT(markup.links, testing::Contains("/projects/" + project + "/revisions/" + side + "/raw/f"));
  EXPECT_EQ(get("/projects/" + project + "/revisions/" + after + "/raw/f").body, repeated("b\n", 24'000));
}

TEST_F(PageBounds, WhatIsLeftOfAPageIsLinkedToAPageOfItsOwn) {
  JsonObject before, after;
  for (const char* name : {"1", "2", "3", "4"}) {
    before.set(name, file(chunk(repeated("a\n", 4000)), 2));
    after.set(name, file(chunk(repeated("b\n", 4000)), 2));
  }
  const std::string range = diff(publish(project, before), publish(project, after));
  auto markup = page(range);
  EXPECT_THAT(markup.links, Not(testing::Contains(range + "?file=1")));
  EXPECT_THAT(markup.links, testing::Contains(range + "?file=3"));
  EXPECT_THAT(markup.text, Not(HasSubstr("too many lines")));
  EXPECT_THAT(page(range + "?file=3").text, HasSubstr("Too many lines differ to show them all"));
}

TEST_F(PageBounds, EachFileHasItsSectionHoweverMuchTheLinesTake) {
  // Long lines full of characters that grow when escaped.
  const std::string lines = repeated(repeated("&", 1000) + "\n", 7);
  auto side = [&](const std::string& end) {
    JsonObject files{{"a", file(chunk(lines + end), 30)}};
    for (int i = 0; i < 60; ++i) files.set("f" + std::to_string(i), inline_file(end + std::to_string(i) + "\n"));
    return publish(project, std::move(files));
  };
  const std::string before = side("1"), after = side("2");
  const std::string body = get(diff(before, after)).body;
  for (int i = 1; i <= 61; ++i) {
    const std::string name = "file-" + std::to_string(i) + "\"";
    EXPECT_THAT(body, HasSubstr("href=\"#" + name));
    EXPECT_THAT(body, HasSubstr("id=\"" + name));
  }
  EXPECT_THAT(body, HasSubstr("Show this file"));
}

TEST_F(PageBounds, RecordsOfNothingAreReadOnlySoFar) {
  Json::Array nothing;
  for (int i = 0; i < 7000; ++i) nothing.emplace_back(1);
  const std::string record = chunk("x", {{"nothing", nothing}});
  JsonObject files;
  for (const char* name : {"1", "2", "3"}) files.set(name, file(record, 200));
  const std::string range = diff(publish(project, {}), publish(project, files));
  auto markup = page(range);
  EXPECT_THAT(markup.links, testing::Contains(range + "?file=3"));
  EXPECT_THAT(page(range + "?file=3").text, HasSubstr("(no line break at the end)"));
  const std::string whole = publish(project, {{"f", file(record, 600)}});
  EXPECT_THAT(page("/projects/" + project + "/revisions/" + whole + "/files/f").text,
              HasSubstr("it needs more records than one page may read"));
}

TEST_F(PageBounds, LookingForRenamesLeavesEnoughToShowLines) {
  const Json padding(Json::Array(7000, Json(1)));
  const std::string gone = chunk("x", {{"padding", padding}}), come = chunk("x", {{"padding", padding}});
  for (const bool undecodable : {false, true}) {
    auto side = [&](const std::string& name, const std::string& record, const std::string& line) {
      return publish(project, {{name + "1", file(record, 99, undecodable)},
                               {name + "2", file(record, 99, undecodable)},
                               {name + "3", file(record, 99, undecodable)},
                               {"same", file(chunk(line + "\n"), 1)}});
    };
    const std::string before = side("gone", gone, "old"), after = side("come", come, "new");
    const std::string range = diff(before, after);
    for (const std::string& target : {range, range + "?file=same"}) {
      EXPECT_THAT(page(target).text, HasSubstr("both renamed and edited"));
      EXPECT_THAT(get(target).body, HasSubstr("id=\"file-7\""));
    }
    EXPECT_THAT(page(range + "?file=same").text, HasSubstr("+new"));
  }
}

TEST_F(PageBounds, APageSaysThatTooMuchWasAddedAndRemovedToCompare) {
  auto side = [](const std::string& name) {
    JsonObject files;
    for (int i = 0; i < 101; ++i) files.set(name + std::to_string(i), inline_file(name + std::to_string(i)));
    return files;
  };
  const std::string before = publish(project, side("a")), after = publish(project, side("b"), {before});
  for (const std::string& target : {diff(before, after), "/projects/" + project + "/revisions/" + after})
    EXPECT_THAT(page(target).text, HasSubstr("Too much was added and removed"));
  const std::string moved = publish(project, JsonObject{{"c", *side("a").find("a0")}}, {before});
  EXPECT_THAT(page(diff(before, moved)).text, Not(HasSubstr("Too much was added and removed")));
}

TEST(PageBoundsOfLayout, APageEndsWhereItIsFull) {
  Document document{.title = "t", .crumbs = {}, .main = Html(1000)};
  while (!document.main.is_full()) document.main.element("p", "words");
  auto markup = Markup::of(print(document, {}));
  EXPECT_EQ(markup.problem, "");
  EXPECT_THAT(markup.text, HasSubstr("this page is too large to show whole"));
  EXPECT_THAT(markup.text, HasSubstr("All times are UTC")) << "its frame is there";
}

TEST_F(PageBounds, RawFilesComeInPieces) {
  std::string bytes;
  for (int i = 0; i < 3000; ++i) bytes += static_cast<char>(i * 7);
  const std::string encoded = to_base64(bytes);
  // Cut inside a group of four characters, with a line break there.
  const std::string one = chunk(encoded.substr(0, 1001) + "\n"), two = chunk(encoded.substr(1001));
  JsonObject entry{{"h", ContentHash::of(bytes).hex()}, {"s", 3000}, {"e", "base64"}, {"c", Json::Array{one, two}}};
  JsonObject ends_inside = entry, goes_on = file(chunk("QQ=="), 2, true);
  ends_inside.set("c", Json::Array{one});
  const std::string text = repeated("x", 12'000);
  const std::string revision =
      publish(project, {{"bytes", entry}, {"inside", ends_inside}, {"on", goes_on}, {"large", file(chunk(text), 600)}});
  const std::string base = "/projects/" + project + "/revisions/" + revision + "/raw/";
  EXPECT_EQ(get(base + "bytes").body, bytes);
  EXPECT_EQ(get(base + "inside").status, 422);
  EXPECT_EQ(get(base + "on").status, 422);

  auto answer = pages->handle({"GET", base + "large", {{"Host", "play.test"}}, {}});
  ASSERT_TRUE(answer.source);
  EXPECT_EQ(answer.response.body, "");
  EXPECT_EQ(answer.size(), 600u * text.size());
  auto piece = answer.source->next();
  ASSERT_TRUE(piece);
  EXPECT_LT(piece->size(), 100'000u);
  const std::string tag(answer.response.headers.get("ETag").value_or(""));
  EXPECT_EQ(tag, '"' + ContentHash::of(repeated(text, 600)).hex() + '"');
  auto again = pages->handle({"GET", base + "large", {{"Host", "play.test"}, {"If-None-Match", tag}}, {}});
  EXPECT_EQ(again.response.status, 304);
  EXPECT_FALSE(again.source);
}

TEST(HtmlBounds, WhatIsOpenIsClosedAndNothingElseFollows) {
  Html html(40);
  {
    auto list = html.open("ul");
    html.element("li", "one");
    html.element("li", repeated("long ", 20));
    html.element("li", "two");
  }
  EXPECT_TRUE(html.is_full());
  EXPECT_EQ(html.fragment(), "<ul><li>one</li><li></li></ul>");
}

}  // namespace
}  // namespace playfs::http
