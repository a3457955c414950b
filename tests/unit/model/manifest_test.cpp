#include "model/manifest.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/chunking.h"

namespace playfs {
namespace {

PublishedFile file(std::string path) {
  FileEntry entry;
  entry.inline_text = path;
  return {path, entry, Json("published " + path)};
}

std::vector<std::string> names(const Manifest& manifest) {
  std::vector<std::string> out;
  for (const auto& [path, entry] : manifest.files) out.push_back(path);
  return out;
}

TEST(MakeManifest, RefusesPathsThatCannotBeShown) {
  auto manifest = make_manifest({file("ok"), file("../up"), file(".git/config"), file("")});
  EXPECT_EQ(names(manifest), std::vector<std::string>{"ok"});
  ASSERT_EQ(manifest.refused.size(), 3u);
  for (const auto& refused : manifest.refused) {
    EXPECT_FALSE(refused.reason.empty());
    EXPECT_EQ(*refused.entry.string(), "published " + refused.path);
  }
}

TEST(MakeManifest, RefusesTheHeadOfARepository) {
  auto entry = [](std::string text, FileMode mode = FileMode::regular) {
    FileEntry entry;
    entry.inline_text = std::move(text);
    entry.mode = mode;
    return entry;
  };
  FileEntry encoded = entry(encode_content("ref: refs/heads/main\n", ContentEncoding::base64));
  encoded.encoding = ContentEncoding::base64;
  FileEntry chunked;
  chunked.chunks = {ChunkId("c")};
  Manifest manifest = make_manifest({{"HEAD", entry("ref: refs/heads/main\n"), "1"},
                                     {"a/head", entry(std::string(40, 'a')), "2"},
                                     {"b/HEAD", entry("refs/heads/main", FileMode::symlink), "3"},
                                     {"c/HEAD", encoded, "4"},
                                     {"d/HEAD", entry("Headlines"), "5"},
                                     {"e/HEAD", chunked, "6"},
                                     {"f", entry("ref: refs/heads/main\n"), "7"}});
  std::vector<std::string> refused;
  for (const auto& each : manifest.refused) refused.push_back(each.path);
  EXPECT_EQ(refused, (std::vector<std::string>{"HEAD", "a/head", "b/HEAD", "c/HEAD"}));
  EXPECT_EQ(names(manifest), (std::vector<std::string>{"d/HEAD", "e/HEAD", "f"}))
      << "what is in chunks is judged when it is read";
}

TEST(MakeManifest, ADirectoryWinsOverAFileOfItsName) {
  // "a-b" sorts between "a" and "a/b".
  auto manifest = make_manifest({file("a"), file("a-b"), file("a/b"), file("a/b/c"), file("ab")});
  EXPECT_EQ(names(manifest), (std::vector<std::string>{"a-b", "a/b/c", "ab"}));
  ASSERT_EQ(manifest.refused.size(), 2u);
  EXPECT_EQ(manifest.refused[0].path, "a");
  EXPECT_EQ(*manifest.refused[0].entry.string(), "published a");
  EXPECT_EQ(manifest.refused[1].path, "a/b");
}

TEST(MakeManifest, KeepsEveryEntryAndIgnoresOrder) {
  EXPECT_TRUE(rc::check([] {
    auto part = rc::gen::element<std::string>("a", "b", "a/", "b/", "-", "..", "");
    auto path = rc::gen::map(rc::gen::container<std::vector<std::string>>(part), [](const auto& parts) {
      std::string text;
      for (const auto& p : parts) text += p;
      return text;
    });
    auto paths = *rc::gen::unique<std::vector<std::string>>(path);
    std::vector<PublishedFile> files;
    for (const auto& p : paths) files.push_back(file(p));
    auto reversed = files;
    std::reverse(reversed.begin(), reversed.end());
    auto manifest = make_manifest(files);
    RC_ASSERT(manifest.files.size() + manifest.refused.size() == paths.size());
    RC_ASSERT(names(make_manifest(reversed)) == names(manifest));
    for (const auto& [one, entry] : manifest.files)
      for (const auto& [other, unused] : manifest.files) RC_ASSERT(!other.starts_with(one + "/"));
  }));
}

FileEntry with_inline(std::string text, ContentEncoding encoding = ContentEncoding::text) {
  FileEntry entry;
  entry.inline_text = std::move(text);
  entry.encoding = encoding;
  return entry;
}

FileEntry with_chunks(std::vector<std::string> ids, std::string claim = {}) {
  FileEntry entry;
  for (auto& id : ids) entry.chunks.emplace_back(std::move(id));
  entry.hash_claim = std::move(claim);
  return entry;
}

TEST(FileEntry, InlineContentIsDecoded) {
  EXPECT_EQ(with_inline("YQ==", ContentEncoding::base64).inline_content(), "a");
  EXPECT_FALSE(with_inline("!", ContentEncoding::base64).inline_content());
  EXPECT_EQ(with_inline("YQ==").inline_content(), "YQ==");
  EXPECT_FALSE(with_chunks({"1"}).inline_content());
}

TEST(FileEntry, SameContentIsJudgedByWhatIsCertain) {
  const std::string sha(64, 'a'), other_sha(64, 'b');
  EXPECT_TRUE(with_inline("a").same_content_and_mode(with_inline("YQ==", ContentEncoding::base64)));
  EXPECT_FALSE(with_inline("a").same_content_and_mode(with_inline("b")));
  EXPECT_TRUE(with_chunks({"1", "2"}).same_content_and_mode(with_chunks({"1", "2"})));
  EXPECT_FALSE(with_chunks({"1", "2"}).same_content_and_mode(with_chunks({"2", "1"})));
  EXPECT_TRUE(with_chunks({"1"}, sha).same_content_and_mode(with_chunks({"2"}, "sha256:" + sha)));
  EXPECT_FALSE(with_chunks({"1"}, sha).same_content_and_mode(with_chunks({"2"}, other_sha)));
  EXPECT_FALSE(with_chunks({"1"}, "v1").same_content_and_mode(with_chunks({"2"}, "v1")));

  // Available content overrides a claim.
  auto lie = with_inline("a"), truth = with_inline("b");
  lie.hash_claim = truth.hash_claim = sha;
  EXPECT_FALSE(lie.same_content_and_mode(truth));

  auto executable = with_inline("a");
  executable.mode = FileMode::executable;
  EXPECT_FALSE(executable.same_content_and_mode(with_inline("a")));
  EXPECT_TRUE(executable.same_content(with_inline("a")));
}

}  // namespace
}  // namespace playfs
