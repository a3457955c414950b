// Threads, messages, agents and mail as pages.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/pages/html.h"
#include "unit/http/pages_fixture.h"

namespace playfs::http {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

std::string link_with(const Markup& markup, std::string_view part) {
  for (const auto& link : markup.links)
    if (link.find(part) != std::string::npos) return link;
  return {};
}

class TalkTest : public PagesTest {
 protected:
  void SetUp() override {
    PagesTest::SetUp();
    service::ServiceOptions options;
    options.steward_key = "key";
    serve(std::move(options));
    thread = create("threads", {{"title", "t"}, {"agent", "wren"}, {"kind", "help"}});
  }

  std::string say(const std::string& body, const std::string& parent = "", const std::string& agent = "wren") {
    return create("messages", {{"thread", thread}, {"parent", parent}, {"agent", agent}, {"body", body}});
  }
  void change(const std::string& path, JsonObject fields) {
    clock.advance(std::chrono::seconds(60));
    record(send("PATCH", path, wire::to_text(Json(std::move(fields))), {{"Authorization", "Bearer key"}}));
  }
  [[nodiscard]] std::string url_of(const std::string& message) const {
    return "/threads/" + thread + "/messages/" + message;
  }

  std::string thread = {};
};

// Threads.

TEST_F(TalkTest, AMessageLinksToItsAuthorToWhomItMentionsAndToItself) {
  const std::string id =
      create("messages", {{"thread", thread},
                          {"agent", "owl"},
                          {"body", "ask @bob or @eve, not x@mallory; see (https://example.org/a_(b)). @ann"},
                          {"mentions", Json::Array{"ann", "@carl"}},
                          {"links", Json::Array{"/projects/p/log", "spaces"}}});
  auto markup = page("/threads/" + thread);
  for (const char* agent : {"owl", "bob", "eve", "ann", "carl", "wren"})
    EXPECT_THAT(markup.links, Contains(std::string("/agents/") + agent));
  EXPECT_THAT(markup.links, Not(Contains("/agents/mallory")));
  EXPECT_THAT(markup.links, Contains("https://example.org/a_(b)"));
  EXPECT_THAT(markup.links, Contains("/projects/p/log"));
  EXPECT_THAT(markup.links, Contains(url_of(id)));
  EXPECT_THAT(markup.text, HasSubstr("help"));
  const std::string body = get("/threads/" + thread).body;
  EXPECT_THAT(body, HasSubstr("id=\"message-" + id + "\""));
  EXPECT_THAT(body, HasSubstr("href=\"https://example.org/a_(b)\" rel=\"noopener noreferrer nofollow ugc\""));
}

TEST_F(TalkTest, WhatWasEditedSaysSo) {
  const std::string id = say("first");
  EXPECT_THAT(page("/threads/" + thread).text, Not(HasSubstr("edited")));
  change("/messages/" + id, {{"body", "second"}});
  EXPECT_EQ(count_of(page("/threads/" + thread).text, "edited"), 1u);
  change("/threads/" + thread, {{"title", "other"}});
  EXPECT_EQ(count_of(page("/threads/" + thread).text, "edited"), 2u);
}

TEST_F(TalkTest, AParentMayBeAnywhere) {
  const std::string elsewhere = create("messages", {{"thread", "gone"}, {"agent", "owl"}, {"body", "over there"}});
  say("reply to nothing", "nowhere");
  const std::string foreign = say("reply across", elsewhere);
  const std::string early = say("early one"), late = say("late one");
  change("/messages/" + early, {{"parent", late}});
  const std::string own = say("own parent");
  change("/messages/" + own, {{"parent", own}});
  auto markup = page("/threads/" + thread);
  for (const char* words : {"reply to nothing", "reply across", "own parent"})
    EXPECT_EQ(count_of(markup.text, words), 1u) << words;
  EXPECT_THAT(markup.text, HasSubstr("In reply to a message that does not exist: nowhere"));
  EXPECT_THAT(markup.text, HasSubstr("In reply to owl: over there in another thread"));
  EXPECT_THAT(markup.text, HasSubstr("In reply to wren: late one"));
  EXPECT_THAT(markup.links, Contains("#message-" + late));
  const std::string other = "/threads/gone/messages/" + elsewhere;
  EXPECT_THAT(markup.links, Contains(other));
  EXPECT_THAT(page(other).text, HasSubstr("A thread that does not exist"));
  EXPECT_THAT(page(url_of(foreign)).links, Contains(other));
  page(url_of(early));
  page(url_of(own));
  EXPECT_EQ(get("/threads/" + thread + "/messages/" + elsewhere).status, 404);
}

TEST_F(TalkTest, ALongConversationIsWholeAndKeepsItsContext) {
  constexpr int kChain = 250;
  std::vector<std::string> ids;
  for (int i = 0; i < kChain; ++i) ids.push_back(say("step <" + std::to_string(i) + ">", i ? ids.back() : ""));
  std::string target = "/threads/" + thread, text, body;
  std::vector<std::string> targets;
  for (int pages_seen = 0; pages_seen < 10 && !target.empty(); ++pages_seen) {
    targets.push_back(target);
    auto markup = page(target);
    text += markup.text;
    body += get(target).body;
    target = link_with(markup, "?cursor=");
  }
  EXPECT_EQ(targets.size(), 3u);
  for (const std::string& id : ids) EXPECT_EQ(count_of(body, "id=\"message-" + id + "\""), 1u);
  // The first on the newest page answers one of the page before.
  EXPECT_THAT(page(targets[0]).text, HasSubstr("In reply to wren: step <149>"));
  EXPECT_THAT(page(targets[0]).text, HasSubstr("100 messages of a longer conversation"));
  EXPECT_THAT(page(targets[0]).links, Contains(url_of(ids[149])));

  auto one = page(url_of(ids[149]));
  EXPECT_THAT(one.text, HasSubstr("step <148>"));
  EXPECT_THAT(one.text, HasSubstr("step <150>"));
  EXPECT_THAT(one.text, HasSubstr("And 75 more"));
  EXPECT_THAT(one.links, Contains(targets[1] + "#message-" + ids[149]));
}

TEST_F(TalkTest, AMessageShowsAllThatAnswersItAndNothingElse) {
  const std::string first = say("question"), aside = say("aside"), answer = say("answer", first);
  say("deeper", answer);
  say("unrelated", aside);
  auto markup = page(url_of(first));
  for (const char* words : {"question", "answer", "deeper"}) EXPECT_THAT(markup.text, HasSubstr(words));
  for (const char* words : {"aside", "unrelated"}) EXPECT_THAT(markup.text, Not(HasSubstr(words)));
  EXPECT_THAT(page(url_of(aside)).text, HasSubstr("unrelated"));
  EXPECT_THAT(page(url_of(say("last"))).text, HasSubstr("Nobody has answered it"));
}

TEST_F(TalkTest, AnOldMessageSaysHowFarItLooked) {
  const std::string first = say("first");
  say("early answer", first);
  for (int i = 0; i < 700; ++i) say("more");
  auto markup = page(url_of(first));
  EXPECT_THAT(markup.text, HasSubstr("Only the latest 600 messages of the thread were looked through"));
  EXPECT_THAT(markup.text, Not(HasSubstr("Nobody has answered")));
  EXPECT_THAT(markup.links, Contains("/threads/" + thread));
}

TEST_F(TalkTest, LargeMessagesHideNoOthers) {
  std::vector<std::string> ids;
  Json nested(Json::Array(6000, Json(1)));
  for (int depth = 0; depth < 58; ++depth) nested = Json(Json::Array{std::move(nested)});
  for (int i = 0; i < 50; ++i) {
    ids.push_back(create("messages", {{"thread", thread}, {"body", "b"}, {"nested", nested}}));
    ids.push_back(say(std::string(15'000, '&')));
  }
  const std::string body = get("/threads/" + thread).body;
  EXPECT_LT(body.size(), Html::kMostBytes);
  EXPECT_EQ(body.find("too large to show whole"), std::string::npos);
  EXPECT_EQ(page("/threads/" + thread).problem, "");
  for (const std::string& id : ids) EXPECT_EQ(count_of(body, "href=\"" + url_of(id) + "\">Read the whole message"), 1u);
  EXPECT_EQ(count_of(page(url_of(ids[1])).text, std::string(15'000, '&')), 1u);
  for (const std::string& id : {ids[0], ids[98]}) EXPECT_EQ(count_of(get(url_of(id)).body, "too large"), 0u);
}

TEST_F(TalkTest, ThreadsAreListedWithTheLastWord) {
  say("an early one");
  const std::string last = say("the last word", "", "owl");
  auto markup = page("/threads");
  EXPECT_THAT(markup.text, HasSubstr("the last word"));
  EXPECT_THAT(markup.text, Not(HasSubstr("an early one")));
  for (const std::string& link : {url_of(last), std::string("/agents/owl")}) EXPECT_THAT(markup.links, Contains(link));
}

// Agents.

TEST_F(TalkTest, AnAgentsPageShowsWhatItDid) {
  const std::string agent =
      create("agents", {{"handle", "wren"}, {"bio", "Careful."}, {"site", "https://example.org"}});
  const std::string project = create("projects", {{"name", "kiln"}});
  const std::string revision = publish(project, {{"a", inline_file("x")}}, {}, "a first step");
  const std::string message = say("hello all");
  say("by another", "", "owl");
  const std::string letter =
      create("domain_mail", {{"agent", "wren"}, {"kind", "idea"}, {"subject", "a board"}, {"body", "please"}});
  for (const std::string& target : {"/agents/" + agent, std::string("/agents/wren")}) {
    auto markup = page(target);
    EXPECT_EQ(count_of(markup.text, "A handle is a claim"), 1u);
    for (const char* words : {"Careful.", "a first step", "kiln", "hello all", "a board"})
      EXPECT_THAT(markup.text, HasSubstr(words)) << target;
    EXPECT_THAT(markup.text, Not(HasSubstr("by another")));
    EXPECT_EQ(count_of(markup.text, "to the beginning"), 4u);
    for (const std::string& link : {"/projects/" + project, "/projects/" + project + "/revisions/" + revision,
                                    "/threads/" + thread, url_of(message), "/mail/" + letter})
      EXPECT_THAT(markup.links, Contains(link)) << target;
  }
}

TEST_F(TalkTest, TheOldestRecordOfAHandleIsTheHandles) {
  create("agents", {{"handle", "wren"}, {"bio", "the first"}});
  std::string younger;
  for (int i = 0; i < 30; ++i) {
    clock.advance(std::chrono::seconds(120));  // the limit of writes
    younger = create("agents", {{"handle", "wren"}, {"bio", "the copy"}});
  }
  say("said under it");
  auto markup = page("/agents/wren");
  EXPECT_THAT(markup.text, HasSubstr("the first"));
  EXPECT_THAT(markup.text, Not(HasSubstr("the copy")));
  EXPECT_THAT(markup.links, Contains("/agents/" + younger));
  EXPECT_THAT(markup.text, HasSubstr("and 10 more"));
  auto copy = page("/agents/" + younger);
  EXPECT_THAT(copy.text, HasSubstr("This one is that of an older record"));
  EXPECT_THAT(copy.links, Contains("/agents/wren"));
  EXPECT_THAT(copy.text, Not(HasSubstr("said under it")));
}

TEST_F(TalkTest, AHandleMayBeUnregistered) {
  say("from nowhere", "", "ghost");
  auto markup = page("/agents/ghost");
  EXPECT_THAT(markup.text, HasSubstr("from nowhere"));
  EXPECT_THAT(markup.text, HasSubstr("Nobody has registered this one."));
  EXPECT_EQ(get("/agents/nobody").status, 404);
  EXPECT_EQ(get("/agents/nobody?in=messages&cursor=nonsense").status, 400);
}

TEST_F(TalkTest, AnAgentsPageSaysHowFarItLookedAndGoesOn) {
  say("longer ago", "", "elder");
  say("long ago", "", "ghost");
  say("just before", "", "ghost");
  for (int i = 0; i < 900; ++i) say("noise");
  say("today", "", "ghost");
  std::string target = "/agents/ghost";
  auto markup = page(target);
  EXPECT_THAT(markup.text, HasSubstr("today"));
  EXPECT_THAT(markup.text, Not(HasSubstr("long ago")));
  EXPECT_THAT(markup.text, HasSubstr("(400 of them)"));
  target = link_with(markup, "in=messages");
  ASSERT_NE(target, "");
  auto further = page(target);
  EXPECT_THAT(further.text, HasSubstr("long ago"));
  EXPECT_THAT(further.text, HasSubstr("just before"));
  EXPECT_THAT(further.text, HasSubstr("to the beginning"));
  EXPECT_THAT(further.text, Not(HasSubstr("Revisions")));
  EXPECT_NE(link_with(page("/agents/elder"), "in=messages"), "") << "a link from an old message leads somewhere";
}

TEST_F(TalkTest, AnAgentsPageEndsHoweverLargeEverythingIs) {
  const std::string large(15'000, '&');
  create("agents", {{"handle", "wren"}, {"bio", large}});
  for (int i = 0; i < 120; ++i) {
    say(large);
    create("agents", {{"handle", "other"}, {"bio", large}});
    create("domain_mail", {{"agent", "x"}, {"kind", "idea"}, {"subject", "s"}, {"body", large}});
    publish("p", {{"a", inline_file(std::string(7000, '&'))}});
  }
  auto response = get("/agents/wren");
  EXPECT_EQ(response.status, 200);
  EXPECT_LT(response.body.size(), Html::kMostBytes);
  auto markup = page("/agents/wren");
  for (const char* collection : {"revisions", "messages", "domain_mail"})
    EXPECT_NE(link_with(markup, std::string("in=") + collection), "") << collection;
}

TEST_F(TalkTest, HandlesThatBrowsersWouldResolveAreNoLinks) {
  for (const char* handle : {"..", "."}) say(handle, "", handle);
  say("long", "", std::string(300, 'x'));
  const auto links = page("/threads/" + thread).links;
  EXPECT_THAT(links, Not(Contains("/agents/..")));
  EXPECT_THAT(links, Not(Contains("/agents/.")));
  EXPECT_THAT(links, Not(Contains(HasSubstr("xxxx"))));
}

// Mail.

TEST_F(TalkTest, AMailShowsTheStewardsAnswerApart) {
  const std::string letter =
      create("domain_mail", {{"agent", "wren"}, {"kind", "question"}, {"subject", "May I?"}, {"body", "ask the sky"}});
  EXPECT_THAT(page("/mail/" + letter).text, HasSubstr("The steward has not answered"));
  change("/domain_mail/" + letter, {{"state", "closed"}, {"owner_reply", "yes, you may"}});
  const std::string body = get("/mail/" + letter).body;
  EXPECT_LT(body.find("ask the sky"), body.find("<section class=\"reply\""));
  EXPECT_LT(body.find("<section class=\"reply\""), body.find("yes, you may"));
  for (const std::string& target : {std::string("/mail"), "/mail/" + letter}) {
    auto markup = page(target);
    for (const char* words : {"question", "closed", "answered", "May I?", "edited"})
      EXPECT_THAT(markup.text, HasSubstr(words)) << target;
    EXPECT_THAT(markup.links, Contains("/agents/wren"));
  }
}

}  // namespace
}  // namespace playfs::http
