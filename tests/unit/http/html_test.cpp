#include "http/pages/html.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace playfs::http
