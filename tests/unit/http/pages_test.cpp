#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "model/content_hash.h"
#include "unit/http/pages_fixture.h"

namespace playfs::http {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// One record of every kind, with `word` for every text.
struct World {
  std::string project, first, second, thread, message, agent, mail, space;
};

class WorldTest : public PagesTest {
 protected:
  World make_world(const std::string& word) {
    World world;
    world.agent = create("agents", {{"handle", word}, {"bio", word}, {word, word}});
    world.project =
        create("projects", {{"name", word}, {"description", word}, {"tags", Json::Array{word}}, {word, word}});
    world.first = publish(world.project, {{"a.txt", inline_file("one\n")}}, {}, word);
    JsonObject files{{"README.md", inline_file(word)},
                     {"a.txt", inline_file("two\n")},
                     {"dir/" + word, inline_file(word + "\n")},
                     {"../" + word, inline_file("x")}};
    world.second = create("revisions", {{"project", world.project},
                                        {"parents", Json::Array{world.first}},
                                        {"agent", word},
                                        {"message", word},
                                        {"manifest", JsonObject{{"files", std::move(files)}}},
                                        {"state", JsonObject{{word, word}}},
                                        {word, word}});
    set_head(world.project, world.second);
    world.thread = create("threads", {{"title", word}, {"agent", word}, {"kind", "help"}, {word, word}});
    world.message = create("messages", {{"thread", world.thread},
                                        {"parent", ""},
                                        {"agent", word},
                                        {"body", word},
                                        {"mentions", Json::Array{word}},
                                        {"links", Json::Array{word, JsonObject{{"url", word}}}},
                                        {word, word}});
    create("messages", {{"thread", world.thread}, {"parent", world.message}, {"agent", word}, {"body", word}});
    world.mail =
        create("domain_mail", {{"agent", word}, {"kind", "idea"}, {"subject", word}, {"body", word}, {word, word}});
    world.space = create("spaces", {{"name", word}, {word, JsonObject{{word, word}}}});
    return world;
  }

  std::vector<std::string> pages_of(const World& world, const std::string& word) const {
    std::string project = "/projects/" + world.project, revision = project + "/revisions/" + world.second;
    return {"/",
            "/projects",
            project,
            project + "/log",
            revision,
            project + "/revisions/" + world.first,
            revision + "/files/a.txt",
            revision + "/files/README.md",
            revision + "/files/dir/" + percent_encode(word),
            project + "/diff/" + world.first + ".." + world.second,
            "/threads",
            "/threads/" + world.thread,
            "/agents",
            "/agents/" + world.agent,
            "/mail",
            "/mail/" + world.mail,
            "/spaces",
            "/spaces/" + world.space,
            "/records",
            "/records/messages",
            "/records/messages/" + world.message};
  }
};

TEST_F(WorldTest, EveryPageIsThere) {
  World world = make_world("word");
  for (const auto& target : pages_of(world, "word")) {
    auto markup = page(target);
    EXPECT_THAT(markup.outline, HasSubstr("h1")) << target;
    EXPECT_EQ(markup.outline.find(" h1", markup.outline.find(" h1") + 3), std::string::npos) << target << " has two h1";
    for (const char* landmark : {"header", "nav", "main", "footer"})
      EXPECT_THAT(markup.outline, HasSubstr(landmark)) << target;
  }
}

TEST_F(WorldTest, EveryLinkLeadsSomewhere) {
  make_world("word");
  auto seen = crawl();
  EXPECT_GT(seen.size(), 30u);
  for (const auto& target : seen) EXPECT_EQ(get(target).status, 200) << target;
}

TEST_F(WorldTest, PoliciesHoldForEveryPage) {
  World world = make_world("word");
  auto targets = pages_of(world, "word");
  targets.insert(targets.end(), {"/nope", "/projects/nope", "/projects?cursor=nope"});
  for (const auto& target : targets) {
    auto response = get(target);
    auto policy = std::string(response.headers.get("Content-Security-Policy").value_or(""));
    EXPECT_THAT(policy, HasSubstr("default-src 'none'")) << target;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe"))) << target;
    EXPECT_EQ(response.headers.get("X-Content-Type-Options"), "nosniff") << target;
    EXPECT_EQ(response.headers.get("Referrer-Policy"), "no-referrer") << target;
  }
}

// Whatever strangers write, a page has the same elements, and their words appear only as text.
class HostileTest : public WorldTest, public testing::WithParamInterface<std::string> {};

TEST_P(HostileTest, StaysText) {
  const std::string word = GetParam();
  World harmless = make_world("harmless"), hostile = make_world(word);
  auto expected = pages_of(harmless, "harmless"), targets = pages_of(hostile, word);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    auto markup = page(targets[i]);
    // Lists show both.
    EXPECT_EQ(markup.outline, page(expected[i]).outline) << targets[i];
    for (const auto& link : markup.links) EXPECT_TRUE(link.starts_with("/") || link.starts_with("#")) << link;
  }
  EXPECT_THAT(page("/threads/" + hostile.thread).text, HasSubstr(escape_for_terminal(word)));
}

INSTANTIATE_TEST_SUITE_P(Words, HostileTest,
                         testing::Values("<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>",
                                         "' onmouseover='alert(1)", "</title></main>", "--><!-- ]]>",
                                         "&lt;b&gt;&amp;&#x3c;", "javascript:alert(1)",
                                         "a\" style=\"position:fixed\" x=\"", "<svg%2Fonload=alert(1)>",
                                         "\u202Egnp.exe\u2066", "\x1b[31mred\x7f", "{{7*7}}${7*7}", "%3Cscript%3E",
                                         "</pre></code></td></table>", "data:text%2Fhtml,x", "\\u003cscript>"));

TEST_F(PagesTest, UnknownThingsAreNotFound) {
  std::string project = create("projects", {{"name", "p"}});
  std::string other = create("projects", {{"name", "q"}});
  std::string revision = publish(project, {{"a", inline_file("x")}});
  for (const std::string& target :
       std::vector<std::string>{"/nope",
                                "/projects/nope",
                                "/projects/" + project + "/nope",
                                "/projects/" + project + "/revisions/nope",
                                "/projects/" + other + "/revisions/" + revision,
                                "/projects/" + project + "/revisions/" + revision + "/files/nope",
                                "/projects/" + project + "/revisions/" + revision + "/raw/nope",
                                "/projects/" + project + "/diff/" + revision,
                                "/projects/" + project + "/diff/" + revision + "..nope",
                                "/threads/nope",
                                "/agents/" + project,
                                "/mail/nope",
                                "/spaces/nope",
                                "/records/nope",
                                "/records/projects/nope",
                                "/records/projects/nope/more",
                                "//",
                                "/projects//",
                                "/%zz",
                                "/assets/style-0.css"}) {
    auto response = get(target);
    EXPECT_EQ(response.status, 404) << target;
    EXPECT_EQ(Markup::of(response.body).problem, "") << target;
  }
  EXPECT_EQ(get("/projects?cursor=nonsense").status, 400);
}

TEST_F(PagesTest, LeavesTheServiceItsPaths) {
  for (const char* target : {"/.site/data", "/.site/data/projects?limit=1", "/.site/data?x", "/.site", "/.site/events",
                             "/.site/nothing", "/api/auth/agent/request-code"})
    EXPECT_FALSE(pages->serves(target)) << target;
  for (const char* target : {"/", "/projects", "/.sites", "/apiary", "/nope"})
    EXPECT_TRUE(pages->serves(target)) << target;
}

TEST_F(PagesTest, OnlyReads) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    auto response = get("/", {}, method);
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.headers.get("Allow"), "GET, HEAD");
  }
  EXPECT_EQ(get("/", {}, "HEAD").status, 200);
}

TEST_F(PagesTest, AnswersOnlyForItsHosts) {
  EXPECT_EQ(get("/", {{"Host", "evil.example"}}).status, 421);
  EXPECT_EQ(get("/", {{"Host", "127.0.0.1:8787"}}).status, 200);
  EXPECT_THAT(get("/", {{"Host", "127.0.0.1:8787"}}).body, HasSubstr("playfs mount http://127.0.0.1:8787 "));
  EXPECT_THAT(get("/", {{"X-Forwarded-Proto", "https"}}).body, HasSubstr("playfs mount https://play.test "));
}

TEST_F(PagesTest, PageThatDidNotChangeIsNotSentAgain) {
  create("projects", {{"name", "p"}});
  auto first = get("/projects");
  std::string tag(first.headers.get("ETag").value_or(""));
  EXPECT_EQ(first.headers.get("Cache-Control"), "public, no-cache");
  auto second = get("/projects", {{"If-None-Match", tag}});
  EXPECT_EQ(second.status, 304);
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(second.headers.get("ETag"), tag);
  create("projects", {{"name", "q"}});
  EXPECT_EQ(get("/projects", {{"If-None-Match", tag}}).status, 200);
}

TEST_F(PagesTest, AssetsAreNamedByTheirContentAndKept) {
  auto markup = page("/");
  std::size_t assets = 0;
  for (const auto& link : markup.links) {
    if (!link.starts_with("/assets/")) continue;
    ++assets;
    auto response = get(link);
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(std::string(response.headers.get("Cache-Control").value_or("")), HasSubstr("immutable"));
    EXPECT_FALSE(response.body.empty());
  }
  EXPECT_EQ(assets, 2u);
}

TEST_F(PagesTest, FileInChunksIsPutTogether) {
  std::string project = create("projects", {{"name", "p"}});
  std::string one = create("file_chunks", {{"content", "first line\nsec"}}),
              two = create("file_chunks", {{"content", "ond line\n"}});
  std::string content = "first line\nsecond line\n";
  JsonObject entry{{"h", ContentHash::of(content).hex()},
                   {"s", static_cast<std::int64_t>(content.size())},
                   {"c", Json::Array{one, two}}};
  std::string revision = publish(project, {{"dir/file.txt", entry}});
  std::string base = "/projects/" + project + "/revisions/" + revision;
  auto markup = page(base + "/files/dir/file.txt");
  EXPECT_THAT(markup.text, HasSubstr("second line"));
  EXPECT_THAT(markup.text, HasSubstr(ContentHash::of(content).hex() + " SHA-256, as published"));
  EXPECT_EQ(get(base + "/raw/dir/file.txt").body, content);
}

TEST_F(PagesTest, BytesThatAreNotAsPromisedAreMarked) {
  std::string project = create("projects", {{"name", "p"}});
  JsonObject wrong_hash = inline_file("these");
  wrong_hash.set("h", ContentHash::of("those").hex());
  JsonObject wrong_size = inline_file("these");
  wrong_size.set("s", 6);
  JsonObject characters = inline_file("äöü");
  characters.set("s", 3);
  JsonObject opaque = inline_file("these");
  opaque.set("h", "crc:12");
  std::string base =
      "/projects/" + project + "/revisions/" +
      publish(project, {{"hash", wrong_hash}, {"size", wrong_size}, {"characters", characters}, {"opaque", opaque}});
  for (const char* file : {"hash", "size"}) {
    EXPECT_THAT(page(base + "/files/" + file).text, HasSubstr("not the bytes that the manifest promises")) << file;
    EXPECT_EQ(get(base + "/raw/" + file).status, 422) << file;
  }
  for (const char* file : {"characters", "opaque"}) {
    EXPECT_THAT(page(base + "/files/" + file).text, Not(HasSubstr("not the bytes"))) << file;
    EXPECT_EQ(get(base + "/raw/" + file).status, 200) << file;
  }
}

TEST_F(PagesTest, RawFilesAreNeverPages) {
  std::string project = create("projects", {{"name", "p"}});
  std::string html = "<html><script>alert(1)</script></html>";
  std::string bytes("\x00\x01\xff", 3);
  JsonObject binary{{"h", ContentHash::of(bytes).hex()}, {"s", 3}, {"e", "base64"}, {"inline", to_base64(bytes)}};
  std::string base = "/projects/" + project + "/revisions/" +
                     publish(project, {{"page.html", inline_file(html)}, {"a\"b.bin", binary}}) + "/raw/";
  auto text = get(base + "page.html");
  EXPECT_EQ(text.body, html);
  EXPECT_EQ(text.headers.get("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_THAT(std::string(text.headers.get("Content-Security-Policy").value_or("")), HasSubstr("sandbox"));
  EXPECT_EQ(text.headers.get("X-Content-Type-Options"), "nosniff");
  auto download = get(base + "a%22b.bin");
  EXPECT_EQ(download.body, bytes);
  EXPECT_EQ(download.headers.get("Content-Type"), "application/octet-stream");
  EXPECT_EQ(download.headers.get("Content-Disposition"), "attachment; filename*=UTF-8''a%22b.bin");
}

TEST_F(PagesTest, WhatCannotBeShownSaysWhy) {
  std::string project = create("projects", {{"name", "p"}});
  JsonObject missing{{"h", "x"}, {"s", 4}, {"c", Json::Array{"nothere"}}};
  JsonObject bad{{"h", "x"}, {"s", 4}, {"e", "base64"}, {"inline", "!!!"}};
  std::string base = "/projects/" + project + "/revisions/" +
                     publish(project, {{"missing", missing}, {"bad", bad}, {"empty", inline_file("")}});
  EXPECT_THAT(page(base + "/files/missing").text, HasSubstr("chunk nothere: there is no such record"));
  EXPECT_THAT(page(base + "/files/bad").text, HasSubstr("not valid base64"));
  EXPECT_THAT(page(base + "/files/empty").text, HasSubstr("The file is empty"));
  std::string unreadable = create("revisions", {{"project", project}, {"manifest", "none"}});
  EXPECT_EQ(get("/projects/" + project + "/revisions/" + unreadable).status, 422);
  set_head(project, unreadable);
  EXPECT_THAT(page("/projects/" + project).text, HasSubstr("The latest revision cannot be read"));
  set_head(project, "nowhere");
  EXPECT_THAT(page("/projects/" + project).text, HasSubstr("which does not exist"));
}

TEST_F(PagesTest, LogShowsBranchesAndGoesOn) {
  std::string project = create("projects", {{"name", "p"}});
  std::string parent = publish(project, {}, {}, "the very first");
  for (int i = 0; i < 130; ++i) parent = publish(project, {}, {parent}, "step " + std::to_string(i));
  set_head(project, parent);
  publish(project, {}, {parent}, "a branch");
  publish(create("projects", {{"name", "q"}}), {}, {}, "of another project");
  std::string target = "/projects/" + project + "/log", text;
  std::size_t shown = 0;
  for (int pages_seen = 0; pages_seen < 10 && !target.empty(); ++pages_seen) {
    auto markup = page(target);
    text += markup.text;
    for (std::size_t at = 0; (at = markup.outline.find("circle", at)) != std::string::npos; at += 7) ++shown;
    target.clear();
    for (const auto& link : markup.links)
      if (link.find("/log?cursor=") != std::string::npos) target = link;
  }
  EXPECT_EQ(shown / 2, 132u);  // each circle has a start and an end tag
  EXPECT_THAT(text, HasSubstr("the very first"));
  EXPECT_THAT(text, HasSubstr("a branch"));
  EXPECT_THAT(text, Not(HasSubstr("of another project")));
}

TEST_F(PagesTest, DifferenceSaysWhatItKnowsOfARename) {
  std::string project = create("projects", {{"name", "p"}});
  auto moved = [](const char* text, const char* mode) {
    JsonObject entry = inline_file(text);
    entry.set("m", mode);
    return entry;
  };
  std::string before = publish(project, {{"kept", moved("1\n", "100644")}, {"old", inline_file("moved\n")}});
  std::string after = publish(project, {{"kept", moved("1\n", "100755")}, {"new", inline_file("moved\n")}}, {before});
  auto markup = page("/projects/" + project + "/diff/" + before + ".." + after);
  EXPECT_THAT(markup.text, HasSubstr("Was a plain file, is now an executable."));
  EXPECT_THAT(markup.text, Not(HasSubstr("publisher")));
  JsonObject elsewhere = inline_file("moved\n");
  elsewhere = JsonObject{{"h", *elsewhere.find("h")}, {"c", Json::Array{create("file_chunks", {{"content", "x"}})}}};
  std::string claimed = publish(project, {{"kept", moved("1\n", "100644")}, {"new", elsewhere}}, {before});
  const std::string target = "/projects/" + project + "/diff/" + before + ".." + claimed;
  EXPECT_THAT(page(target).text, HasSubstr("By its publisher's hash, the same content as old had."));
  EXPECT_THAT(page(target).text, HasSubstr("was old, according to its publisher"));
}

TEST_F(PagesTest, DifferenceShowsLinesAndRenames) {
  std::string project = create("projects", {{"name", "p"}});
  std::string before = publish(project, {{"a.txt", inline_file("one\ntwo\n")}, {"old", inline_file("moved\n")}});
  std::string after =
      publish(project, {{"a.txt", inline_file("one\nTWO\n")}, {"new", inline_file("moved\n")}}, {before});
  std::string target = "/projects/" + project + "/diff/" + before + ".." + after;
  auto markup = page(target);
  EXPECT_THAT(markup.text, HasSubstr("−two"));
  EXPECT_THAT(markup.text, HasSubstr("+TWO"));
  EXPECT_THAT(markup.text, HasSubstr("renamed"));
  EXPECT_THAT(page(target + "?file=a.txt").text, HasSubstr("+TWO"));
  auto chosen = get("/projects/" + project + "/diff?from=" + before + "&to=" + after);
  EXPECT_EQ(chosen.status, 303);
  EXPECT_EQ(chosen.headers.get("Location"), target);
}

TEST_F(PagesTest, DifferenceFindsRenamesOfEditedFiles) {
  std::string project = create("projects", {{"name", "p"}}), kept;
  for (int i = 0; i < 20; ++i) kept += "line " + std::to_string(i) + "\n";
  std::string before = publish(project, {{"old", inline_file(kept)}});
  std::string after = publish(project, {{"new", inline_file(kept + "more\n")}}, {before});
  auto markup = page("/projects/" + project + "/diff/" + before + ".." + after);
  EXPECT_THAT(markup.text, HasSubstr("% the same as old had."));
  EXPECT_THAT(markup.text, HasSubstr("+more"));
  EXPECT_THAT(markup.text, Not(HasSubstr("−line 0")));
  EXPECT_THAT(page("/projects/" + project + "/revisions/" + after).text, HasSubstr("was old"));

  // Too much to read: as before, what was deleted and what was added.
  std::string text;
  while (text.size() < 6000) text += kept;
  const std::string chunk = create("file_chunks", {{"content", text}});
  auto large = [&](const std::string& end) {
    Json::Array chunks(50, Json(chunk));
    chunks.emplace_back(create("file_chunks", {{"content", end}}));
    return publish(project, {{end + "1", JsonObject{{"h", "?"}, {"c", chunks}}},
                             {end + "2", JsonObject{{"h", "?"}, {"c", chunks}}}});
  };
  auto degraded = page("/projects/" + project + "/diff/" + large("a") + ".." + large("b"));
  EXPECT_THAT(degraded.text, HasSubstr("both renamed and edited"));
  EXPECT_THAT(degraded.text, HasSubstr("removed"));
}

TEST_F(PagesTest, DifferenceOfVeryMuchStaysBounded) {
  std::string project = create("projects", {{"name", "p"}});
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "x\n";
  JsonObject files, empty;
  Json::Array chunks;
  std::string chunk = create("file_chunks", {{"content", lines}});
  for (int i = 0; i < 60; ++i)
    files.append("f" + std::to_string(i), JsonObject{{"h", "?"}, {"c", Json::Array{chunk, chunk, chunk, chunk}}});
  std::string before = publish(project, {}), after = publish(project, files, {before});
  auto response = get("/projects/" + project + "/diff/" + before + ".." + after);
  EXPECT_EQ(response.status, 200);
  EXPECT_LT(response.body.size(), 2u << 20);
  EXPECT_THAT(response.body, HasSubstr("Show this file&#39;s lines"));
}

TEST_F(PagesTest, ThreadIsAConversation) {
  std::string thread = create("threads", {{"title", "t"}, {"agent", "wren"}, {"kind", "help"}});
  std::string first = create("messages", {{"thread", thread}, {"parent", ""}, {"agent", "wren"}, {"body", "question"}});
  create("messages", {{"thread", thread}, {"parent", ""}, {"agent", "owl"}, {"body", "aside"}});
  create("messages", {{"thread", thread},
                      {"parent", first},
                      {"agent", "otter"},
                      {"body", "answer"},
                      {"mentions", Json::Array{"wren"}},
                      {"links", Json::Array{"https://example.org/x", "javascript:alert(1)"}}});
  create("messages", {{"thread", "another"}, {"body", "elsewhere"}});
  auto markup = page("/threads/" + thread);
  auto question = markup.text.find("question"), answer = markup.text.find("answer"), aside = markup.text.find("aside");
  EXPECT_LT(question, answer);
  EXPECT_LT(answer, aside);
  EXPECT_EQ(markup.text.find("elsewhere"), std::string::npos);
  EXPECT_THAT(markup.links, Contains("https://example.org/x"));
  EXPECT_THAT(markup.links, Not(Contains(HasSubstr("javascript"))));
  EXPECT_THAT(markup.text, HasSubstr("javascript:alert(1)"));
}

/// Between the messages there is far more than one page may read.
TEST_F(PagesTest, ThreadIsWholeHoweverMuchIsSaidElsewhere) {
  std::string thread = create("threads", {{"title", "t"}});
  create("messages", {{"thread", thread}, {"body", "the very first"}});
  std::string moved = create("messages", {{"thread", "another"}, {"body", "it came over"}});
  std::string left = create("messages", {{"thread", thread}, {"body", "it went away"}});
  for (int i = 0; i < 2500; ++i) create("messages", {{"thread", "another"}, {"body", "elsewhere"}});
  record(send("PATCH", "/messages/" + moved, wire::to_text(JsonObject{{"thread", thread}})));
  record(send("PATCH", "/messages/" + left, wire::to_text(JsonObject{{"thread", "another"}})));
  auto markup = page("/threads/" + thread);
  EXPECT_THAT(markup.text, HasSubstr("the very first"));
  EXPECT_THAT(markup.text, HasSubstr("it came over"));
  EXPECT_THAT(markup.text, Not(HasSubstr("it went away")));
  EXPECT_THAT(markup.text, Not(HasSubstr("elsewhere")));
  EXPECT_THAT(markup.links, Not(Contains(HasSubstr("cursor="))));
}

TEST_F(PagesTest, LongListsPage) {
  std::set<std::string> names;
  for (int i = 0; i < 70; ++i) create("projects", {{"name", "project number " + std::to_string(i)}});
  std::string target = "/projects";
  for (int pages_seen = 0; pages_seen < 10 && !target.empty(); ++pages_seen) {
    auto markup = page(target);
    for (int i = 0; i < 70; ++i)
      if (std::string name = "project number " + std::to_string(i); markup.text.find(name) != std::string::npos)
        names.insert(name);
    target.clear();
    for (const auto& link : markup.links)
      if (link.starts_with("/projects?cursor=")) target = link;
  }
  EXPECT_EQ(names.size(), 70u);
}

}  // namespace
}  // namespace playfs::http
