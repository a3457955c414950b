#include "http/pages/html.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "http/pages/prose.h"

namespace playfs::http {
namespace {

TEST(Html, EscapesTextAndAttributes) {
  Html html;
  html.element("p", {{"title", "a\"b'c<d>&"}}, "<script>&\"'");
  EXPECT_EQ(html.fragment(), "<p title=\"a&quot;b&#39;c&lt;d&gt;&amp;\">&lt;script&gt;&amp;&quot;&#39;</p>");
}

TEST(Html, ShowsWhatWouldHideOrReorderText) {
  Html html;
  html.text("a\u202Egnp.exe\x1b[31m\x80 \u05e9");
  EXPECT_EQ(html.fragment(), "a\\u202egnp.exe\\x1b[31m\\x80 \u05e9");
}

TEST(Html, KeepsLineBreaksAndTabs) {
  Html html;
  html.text("one\n\ttwo");
  EXPECT_EQ(html.fragment(), "one\n\ttwo");
}

TEST(Html, ClosesElementsInnermostFirst) {
  Html html;
  {
    auto list = html.open("ul");
    auto item = html.open("li", {{"class", "x"}});
    html.lone("br");
  }
  EXPECT_EQ(html.fragment(), "<ul><li class=\"x\"><br></li></ul>");
}

TEST(Url, EncodesSegmentsWhole) {
  EXPECT_EQ((Url() / "projects" / "a/../b?#\"").text(), "/projects/a%2F..%2Fb%3F%23%22");
  EXPECT_EQ((Url() / "x").below("dir/sub dir/ü").text(), "/x/dir/sub%20dir/%C3%BC");
  EXPECT_EQ((Url() / "x").with("cursor", "a&b").with("n", "1").at("L1").text(), "/x?cursor=a%26b&n=1#L1");
}

TEST(Url, TakesPlainWebAddressesOfOthers) {
  for (std::string_view address : {"https://example.org", "http://example.org:8080/a?b=c#d", "HTTPS://EXAMPLE.org/"}) {
    auto url = Url::external(address);
    ASSERT_TRUE(url) << address;
    EXPECT_EQ(url->text(), address);
  }
}

TEST(Url, RefusesEverythingElse) {
  for (std::string_view address :
       {"javascript:alert(1)", "JaVaScRiPt://example.org/%0aalert(1)", "data:text/html,x", "//example.org",
        "https:", "https://", "https:///path", "https://bank.example@evil.example/",
        "https://example.org/\" onclick=\"x", "https://example.org/a b", "https://ex\u0430mple.org",
        "https://example.org/\n", " https://example.org", "", "ftp://example.org", "example.org"})
    EXPECT_FALSE(Url::external(address)) << address;
  EXPECT_FALSE(Url::external("https://example.org/" + std::string(3000, 'a')));
}

TEST(Url, TakesPagesOfThisSite) {
  EXPECT_EQ(Url::internal("projects/p/log")->text(), "/projects/p/log");
  EXPECT_EQ(Url::internal("/threads/a b")->text(), "/threads/a%20b");
  for (std::string_view path : {"//evil.example", "projects", "/", "", "projects/../mail", "assets/x", "nope/x",
                                "projects//x", "/projects/.", "javascript:alert(1)", "projects?x"})
    EXPECT_FALSE(Url::internal(path)) << path;
}

std::string prose(std::string_view text, const std::vector<std::string>& handles = {}) {
  Html html;
  show_prose(html, text, handles);
  std::string shown = html.fragment().substr(std::string_view("<div class=\"prose\" dir=\"auto\">").size());
  return shown.substr(0, shown.size() - std::string_view("</div>").size());
}

TEST(Prose, LinksWhatIsAnAddressAndNothingElse) {
  auto link = [](const std::string& address) {
    return "<a href=\"" + address + "\" rel=\"noopener noreferrer nofollow ugc\">" + address + "</a>";
  };
  EXPECT_EQ(prose("see https://example.org/x."), "see " + link("https://example.org/x") + ".");
  EXPECT_EQ(prose("(http://example.org)"), "(" + link("http://example.org") + ")");
  EXPECT_EQ(prose("https://e.org/a_(b), c"), link("https://e.org/a_(b)") + ", c");
  EXPECT_EQ(prose("<https://e.org/>"), "&lt;" + link("https://e.org/") + "&gt;");
  for (const char* text : {"javascript:alert(1)", "xhttp://e.org", "https://", "http://.", "https://a@evil.example/",
                           "https:/e.org", "h", "@", "mailto:x@e.org"})
    EXPECT_EQ(prose(text, {"e"}), text);
}

TEST(Prose, LinksMentionsOfThoseHandlesOnly) {
  EXPECT_EQ(prose("@ann @annie @bob", {"ann", "annie"}),
            "<a href=\"/agents/ann\">@ann</a> <a href=\"/agents/annie\">@annie</a> @bob");
  EXPECT_EQ(prose("x@ann @annx @..", {"ann", ".."}), "x@ann @annx @..");
}

TEST(Prose, HasABoundedNumberOfLinks) {
  std::string text;
  for (std::size_t i = 0; i < 2 * kMostLinks; ++i) text += "http://e.org ";
  const std::string shown = prose(text);
  std::size_t links = 0;
  for (auto at = shown.find("<a "); at != std::string::npos; at = shown.find("<a ", at + 1)) ++links;
  EXPECT_EQ(links, kMostLinks);
  EXPECT_TRUE(shown.ends_with("http://e.org "));
}

}  // namespace
}  // namespace playfs::http
