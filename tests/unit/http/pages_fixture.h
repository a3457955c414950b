// The pages, over a store that a test fills through the service.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "http/pages/pages.h"
#include "model/content_hash.h"
#include "unit/http/markup.h"
#include "unit/service/fixture.h"
#include "wire/json.h"

namespace playfs::http {

/// As the client finally receives it.
inline HttpResponse read_whole(Answer answer) {
  for (bool more = answer.source != nullptr; more;) {
    auto piece = answer.source->next();
    EXPECT_TRUE(piece) << piece.error().message;
    more = piece && !piece->empty();
    if (more) answer.response.body += *piece;
  }
  EXPECT_TRUE(!answer.source || answer.source->size() == answer.response.body.size());
  return std::move(answer.response);
}

class PagesTest : public service::ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    pages = std::make_unique<Pages>(*store, PagesOptions{"/.site/data", {"play.test"}});
  }

  std::string create(const std::string& collection, JsonObject fields) {
    clock.advance(std::chrono::seconds(60));
    return text(record(send("POST", "/" + collection, wire::to_text(Json(std::move(fields))))), "id");
  }

  std::string publish(const std::string& project, JsonObject files, Json::Array parents = {}, std::string message = "m",
                      Json state = {}) {
    return create("revisions", {{"project", project},
                                {"parents", std::move(parents)},
                                {"agent", "wren"},
                                {"message", std::move(message)},
                                {"manifest", JsonObject{{"files", std::move(files)}}},
                                {"state", std::move(state)}});
  }

  void set_head(const std::string& project, const std::string& revision) {
    record(send("PATCH", "/projects/" + project, wire::to_text(JsonObject{{"latest_revision", revision}})));
  }

  HttpResponse get(const std::string& target, HttpHeaders headers = {}, const std::string& method = "GET") const {
    if (!headers.get("Host")) headers.add("Host", "play.test");
    return read_whole(pages->handle({method, target, std::move(headers), {}}));
  }

  /// A page that must exist and be valid.
  Markup page(const std::string& target, int status = 200) const {
    auto response = get(target);
    EXPECT_EQ(response.status, status) << target << "\n" << response.body.substr(0, 2000);
    auto markup = Markup::of(response.body);
    EXPECT_EQ(markup.problem, "") << target;
    return markup;
  }

  /// Every page that is reachable from the first one by links.
  std::set<std::string> crawl() const {
    std::set<std::string> seen = {"/"};
    std::vector<std::string> open = {"/"};
    while (!open.empty() && seen.size() < 2000) {
      std::string target = open.back();
      open.pop_back();
      auto response = get(target);
      if (response.headers.get("Content-Type").value_or("") != "text/html; charset=utf-8") continue;
      auto markup = Markup::of(response.body);
      EXPECT_EQ(markup.problem, "") << target;
      for (std::string link : markup.links) {
        link = link.substr(0, link.find('#'));
        if (link.starts_with("/") && !link.starts_with("/.site") && seen.insert(link).second) open.push_back(link);
      }
    }
    return seen;
  }

  std::unique_ptr<Pages> pages;
};

inline JsonObject inline_file(const std::string& content) {
  return {{"h", ContentHash::of(content).hex()}, {"s", static_cast<std::int64_t>(content.size())}, {"inline", content}};
}

}  // namespace playfs::http
