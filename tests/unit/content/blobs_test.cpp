// Contents through a Site: fetched once, verified, cached, repaired.
#include <fcntl.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "base/fd.h"
#include "fixture.h"

namespace playfs::content {
namespace {

using testing::HasSubstr;
using testing::Not;

class BlobsTest : public SiteTest {
 protected:
  /// A revision "r" with one file "f".
  void put_file(JsonObject entry, JsonObject manifest_extra = {}) {
    put_revision("r", {{"f", std::move(entry)}}, std::move(manifest_extra));
  }
  static std::string lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "line " + std::to_string(i) + "\n";
    return text;
  }
};

TEST_F(BlobsTest, InlineContentNeedsNoRequest) {
  put_file({{"h", sha256("hello")}, {"s", 5}, {"inline", "hello"}});
  auto f = file("r", "f");
  service_.forget_requests();
  EXPECT_EQ(site_->size_of(f), 5U);
  ASSERT_TRUE(site_->try_blob(f));
  EXPECT_EQ(content(f), "hello");
  EXPECT_EQ(service_.requests(), 0);
}

TEST_F(BlobsTest, InlineBase64IsDecoded) {
  put_file({{"h", sha256(std::string("\0\1", 2))}, {"s", 2}, {"e", "base64"}, {"inline", "AAE="}});
  auto f = file("r", "f");
  EXPECT_EQ(site_->size_of(f), 2U);
  EXPECT_EQ(content(f), std::string("\0\1", 2));
}

TEST_F(BlobsTest, ChunksAreFetchedOnceForAllWhoAsk) {
  const std::string text = lines(100);
  put_file(chunked(text, sha256(text), {"c1", "c2", "c3"}));
  auto f = file("r", "f");
  EXPECT_FALSE(site_->try_blob(f));
  service_.hold();
  std::vector<Answer<Blob>> answers(20);
  for (auto& answer : answers) site_->blob(f, {}, answer.callback());
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 3) << "all chunks at once, each once";
  service_.release();
  run();
  for (auto& answer : answers) {
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->read(0, text.size()).value(), text);
  }
  EXPECT_EQ(service_.requests("file_chunks/"), 3);
}

TEST_F(BlobsTest, AChunkUsedTwiceIsFetchedOnce) {
  const std::string piece = lines(10);
  service_.put("file_chunks", "c", {{"content", piece}});
  put_file({{"h", sha256(piece + piece)}, {"s", 2 * piece.size()}, {"c", Json::Array{"c", "c"}}});
  EXPECT_EQ(content(file("r", "f")), piece + piece);
  EXPECT_EQ(service_.requests("file_chunks/"), 1);
}

TEST_F(BlobsTest, TwoFilesShareAChunkInFlight) {
  put_revision("r", {{"a", chunked("both", "opaque", {"shared"})},
                     {"b", JsonObject{{"s", 8}, {"c", Json::Array{"shared", "shared"}}}}});
  auto a = file("r", "a"), b = file("r", "b");
  service_.hold();
  Answer<Blob> first, second;
  site_->blob(a, {}, first.callback());
  site_->blob(b, {}, second.callback());
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 1);
  service_.release();
  run();
  EXPECT_EQ(first->read(0, 100).value(), "both");
  EXPECT_EQ(second->read(0, 100).value(), "bothboth");
}

TEST_F(BlobsTest, AnEmptyListOfChunksIsAnEmptyFile) {
  put_file({{"h", sha256("")}, {"s", 0}, {"c", Json::Array()}});
  auto f = file("r", "f");
  EXPECT_EQ(site_->size_of(f), 0U);
  EXPECT_EQ(content(f), "");
}

TEST_F(BlobsTest, AHashThatDoesNotMatchIsAnErrorWithAReasonAndNothingIsKept) {
  const std::string honest = "what the hash promises", evil = "what the service sent!";
  put_file(chunked(evil, sha256(honest), {"c1", "c2"}));
  auto f = file("r", "f");
  EXPECT_EQ(content(f), "error: corrupt");
  EXPECT_THAT(events_->errors_text(), HasSubstr(R"("code":"corrupt")"));
  EXPECT_THAT(events_->errors_text(), HasSubstr(R"("subject":"projects/p/revisions/r/f")"));
  EXPECT_THAT(events_->errors_text(), HasSubstr("chunks c1 c2"));
  EXPECT_THAT(events_->errors_text(), HasSubstr(sha256(honest)));
  EXPECT_EQ(objects_->find(ContentHash::of(honest)).value(), nullptr);
  EXPECT_EQ(objects_->find(ContentHash::of(evil)).value(), nullptr);
  EXPECT_FALSE(records_->record(client_->site(), "file_chunks", "c1"));
  EXPECT_FALSE(site_->try_blob(f));
}

TEST_F(BlobsTest, ARefusedFileIsNotAskedForAtEachReadAndHealsLater) {
  const std::string text = "right";
  put_file(chunked("wrong", sha256(text), {"c"}));
  auto f = file("r", "f");
  EXPECT_EQ(content(f), "error: corrupt");
  const std::string told = events_->errors_text();
  EXPECT_EQ(content(f), "error: corrupt");
  EXPECT_EQ(service_.requests("file_chunks/"), 1);
  EXPECT_EQ(events_->errors_text(), told) << "told once";
  service_.put("file_chunks", "c", {{"content", text}});
  advance(std::chrono::seconds(11));
  EXPECT_EQ(content(f), text);
}

TEST_F(BlobsTest, InlineContentThatDoesNotMatchIsAnError) {
  put_file({{"h", sha256("other")}, {"s", 5}, {"inline", "hello"}});
  auto f = file("r", "f");
  EXPECT_FALSE(site_->try_blob(f));
  EXPECT_EQ(content(f), "error: corrupt");
  EXPECT_THAT(events_->errors_text(), HasSubstr("projects/p/revisions/r/f"));
}

TEST_F(BlobsTest, AMissingChunkIsNotAnAbsentFile) {
  put_file({{"h", "opaque"}, {"s", 5}, {"c", Json::Array{"nowhere"}}});
  EXPECT_EQ(content(file("r", "f")), "error: corrupt");
  EXPECT_THAT(events_->errors_text(), HasSubstr("chunk nowhere"));
}

TEST_F(BlobsTest, AnotherRecordInTheResponseIsRejected) {
  put_file(chunked("right", "opaque", {"c"}));
  auto f = file("r", "f");
  service_.instead["/.site/data/file_chunks/c"] = R"({"record":{"id":"d","content":"wrong"}})";
  EXPECT_EQ(content(f), "error: protocol");
  EXPECT_FALSE(records_->record(client_->site(), "file_chunks", "d"));
}

TEST_F(BlobsTest, ProjectsWithTheSameOpaqueHashDoNotShareContent) {
  put_revision("r1", {{"f", chunked("content of one", "md5:same", {"c1"})}}, {}, "p1");
  put_revision("r2", {{"f", chunked("content of two", "md5:same", {"c2"})}}, {}, "p2");
  auto one = file("r1", "f"), two = file("r2", "f");
  EXPECT_EQ(content(one), "content of one");
  EXPECT_FALSE(site_->try_blob(two));
  EXPECT_EQ(content(two), "content of two");
  EXPECT_EQ(content(one), "content of one");
}

TEST_F(BlobsTest, VerifiedContentIsSharedWithoutFetchingChunks) {
  const std::string text = lines(50);
  put_revision("r1", {{"f", chunked(text, sha256(text), {"c1"})}}, {}, "p1");
  put_revision(
      "r2", {{"g", JsonObject{{"h", "sha256:" + sha256(text)}, {"s", text.size()}, {"c", Json::Array{"elsewhere"}}}}},
      {}, "p2");
  EXPECT_EQ(content(file("r1", "f")), text);
  auto other = file("r2", "g");
  service_.forget_requests();
  ASSERT_TRUE(site_->try_blob(other));
  EXPECT_EQ(content(other), text);
  EXPECT_EQ(service_.requests(), 0);
}

TEST_F(BlobsTest, OpaqueContentIsFoundAgainByItsOriginAfterARestart) {
  put_file(chunked("some text", "opaque", {"c"}));
  EXPECT_EQ(content(file("r", "f")), "some text");
  service_.forget_requests();
  restart();
  auto f = file("r", "f");
  ASSERT_TRUE(site_->try_blob(f));
  EXPECT_EQ(site_->size_of(f), 9U);
  EXPECT_EQ(content(f), "some text");
  EXPECT_EQ(service_.requests(), 0) << "neither revision nor chunk is asked for again";
}

TEST_F(BlobsTest, ASizeCountedInCharactersIsAcceptedAndTheTrueOneShown) {
  const std::string text = "Gr\u00fc\u00dfe \U0001F600";
  JsonObject entry = chunked(text, sha256(text), {"c"});
  entry.set("s", count_utf16_units(text));
  put_file(std::move(entry));
  auto f = file("r", "f");
  EXPECT_FALSE(site_->size_of(f)) << "another client's size is not believed unseen";
  EXPECT_EQ(content(f), text);
  EXPECT_EQ(site_->size_of(f), text.size());
  EXPECT_TRUE(site_->try_blob(f));
}

TEST_F(BlobsTest, ALieAboutTheSizeIsAnErrorEvenWhereTheContentIsHere) {
  const std::string text = lines(5);
  JsonObject honest = chunked(text, sha256(text), {"c"});
  JsonObject lie = honest;
  lie.set("s", text.size() - 1);
  put_revision("r", {{"honest", honest}, {"lie", lie}});
  EXPECT_EQ(content(file("r", "honest")), text);
  auto f = file("r", "lie");
  EXPECT_FALSE(site_->try_blob(f));
  EXPECT_EQ(content(f), "error: corrupt");
}

TEST_F(BlobsTest, SizesFromPlayfsClientsAreTrusted) {
  const std::string tx = "0123456789abcdef0123456789abcdef", text = lines(5);
  JsonObject opaque = chunked(text, "opaque", {"c2"});
  JsonObject endless = chunked(text, sha256(text), {"c3"});
  endless.set("s", std::uint64_t{1} << 62);
  put_revision("r", {{"f", chunked(text, sha256(text), {"c1"})}, {"opaque", opaque}, {"endless", endless}},
               {{"tx", tx}});
  EXPECT_EQ(site_->size_of(file("r", "f")), text.size());
  EXPECT_FALSE(site_->size_of(file("r", "opaque")));
  EXPECT_FALSE(site_->size_of(file("r", "endless")));
  EXPECT_EQ(service_.requests("file_chunks/"), 0);
  put_revision("foreign", {{"f", chunked(text, sha256(text), {"c1"})}});
  EXPECT_FALSE(site_->size_of(file("foreign", "f")));
}

TEST_F(BlobsTest, AWrongSizeIsNotTrustedAgain) {
  const std::string text = "größe\n";
  JsonObject counted = chunked(text, sha256(text), {"c"});
  counted.set("s", 6);
  put_file(std::move(counted), {{"tx", "0123456789abcdef0123456789abcdef"}});
  EXPECT_EQ(site_->size_of(file("r", "f")), 6U) << "nothing is known yet";
  ASSERT_EQ(content(file("r", "f")), text);
  EXPECT_EQ(site_->size_of(file("r", "f")), text.size());
  restart();
  EXPECT_EQ(site_->size_of(file("r", "f")), text.size()) << "nor by the next process";
}

TEST_F(BlobsTest, ContentThatOnlyItsOriginNamesIsFoundWithoutAnIndex) {
  put_file(chunked("text", "opaque", {"c"}));
  auto f = file("r", "f");
  std::filesystem::remove(directory_ / "records.db");
  std::filesystem::create_directories(directory_ / "records.db/in the way");
  ASSERT_EQ(content(f), "text");
  EXPECT_TRUE(site_->try_blob(f));
  EXPECT_EQ(content(f), "text");
  EXPECT_EQ(service_.requests("file_chunks/"), 1);
}

TEST_F(BlobsTest, AProjectThatHangsLeavesRoomForOthers) {
  constexpr int kFiles = 100;
  std::vector<RevisionTreePtr> trees;
  for (const std::string name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    JsonObject files;
    for (int i = 0; i < kFiles; ++i) {
      const std::string id = name + std::to_string(i);
      files.append(id, chunked("content of " + id, "opaque", {id}));
    }
    put_revision(name, std::move(files), {}, "project of " + name);
    trees.push_back(revision(name));
  }
  service_.hold();
  std::ptrdiff_t hanging = 0;
  for (const auto& tree : trees) {
    site_->prefetch(tree);
    for (const auto& [path, entry] : tree->tree.manifest().files)
      site_->blob({tree, path, &entry}, {}, Answer<Blob>().callback());
    run();
    const auto sent = service_.requests("file_chunks/");
    EXPECT_GT(sent, hanging) << tree->revision.id.text() << " finds room";
    if (hanging == 0) {
      EXPECT_EQ(sent, 64) << "alone it has all of it";
    }
    hanging = sent;
  }
  EXPECT_LE(hanging, 2 * 64 + 8);
  service_.release();
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 8 * kFiles) << "and all come in the end";
}

TEST_F(BlobsTest, FilesPastTheCeilingAreRefusedByWhatArrives) {
  restart({.file_ceiling = 100});
  put_revision("r", {{"big", chunked(std::string(101, 'x'), "opaque", {"c1", "c2", "c3"})},
                     {"lie",
                      [&] {
                        JsonObject entry = chunked(std::string(101, 'y'), "opaque", {"d1"});
                        entry.set("s", 3);
                        return entry;
                      }()},
                     {"fits", chunked(std::string(100, 'z'), "opaque", {"e1"})}});
  EXPECT_EQ(content(file("r", "big")), "error: refused_input");
  EXPECT_EQ(content(file("r", "lie")), "error: refused_input");
  EXPECT_EQ(content(file("r", "fits")), std::string(100, 'z'));
}

TEST_F(BlobsTest, AFileThatIsTooBigStopsAskingForItsOtherChunks) {
  restart({.file_ceiling = 100, .parallel_chunks = 1});
  std::vector<std::string> ids;
  for (int i = 0; i < 50; ++i) ids.push_back("c" + std::to_string(i));
  put_file(chunked(std::string(50 * 60, 'x'), "opaque", ids));
  EXPECT_EQ(content(file("r", "f")), "error: refused_input");
  EXPECT_LE(service_.requests("file_chunks/"), 3);
}

TEST_F(BlobsTest, AFlippedBitOnTheDiskIsFoundAndHealed) {
  const std::string text = lines(5'000);
  put_file(chunked(text, sha256(text), {"c1", "c2", "c3", "c4"}));
  ASSERT_EQ(content(file("r", "f")), text);
  {
    UniqueFd fd(open(object_file(text).c_str(), O_RDWR));
    auto byte = read_at(fd.get(), 20'000, 1);
    ASSERT_TRUE(byte && !byte->empty());
    ASSERT_TRUE(write_all_at(fd.get(), std::string(1, static_cast<char>((*byte)[0] ^ 1)), 20'000));
  }
  restart();
  auto f = file("r", "f");
  auto blob = site_->try_blob(f);
  ASSERT_TRUE(blob);
  EXPECT_EQ(blob->read(20'000, 100).error().code, ErrorCode::corrupt);
  EXPECT_FALSE(site_->try_blob(f)) << "never served again";
  EXPECT_EQ(content(f), text);
  ASSERT_TRUE(site_->try_blob(f));
  EXPECT_EQ(site_->try_blob(f)->read(0, text.size()).value(), text);
}

TEST_F(BlobsTest, TheCacheMayBeDeletedUnderneath) {
  const std::string text = lines(100);
  put_file(chunked(text, sha256(text), {"c1", "c2"}));
  auto f = file("r", "f");
  ASSERT_EQ(content(f), text);
  std::filesystem::remove_all(directory_.path());
  EXPECT_EQ(content(f), text);
  restart();
  EXPECT_EQ(content(file("r", "f")), text);
  restart();
  service_.forget_requests();
  EXPECT_EQ(content(file("r", "f")), text);
  EXPECT_EQ(service_.requests(), 0) << "it is a cache again";
}

TEST_F(BlobsTest, ACancelledReaderIsAnsweredWhileTheServiceIsSilent) {
  const std::string text = lines(10);
  put_file(chunked(text, sha256(text), {"c"}));
  auto f = file("r", "f");
  service_.hold();
  CancelSource cancel;
  Answer<Blob> impatient, patient;
  site_->blob(f, cancel.token(), impatient.callback());
  site_->blob(f, {}, patient.callback());
  run();
  cancel.cancel();
  EXPECT_EQ(impatient.code(), ErrorCode::interrupted);
  EXPECT_EQ(patient.calls(), 0);
  service_.release();
  run();
  EXPECT_EQ(impatient.calls(), 1);
  ASSERT_TRUE(patient.ok());
  EXPECT_EQ(service_.requests("file_chunks/"), 1);
}

TEST_F(BlobsTest, ASilentServiceDoesNotStopWhatIsHere) {
  put_revision("r", {{"here", chunked("cached", "opaque", {"c1"})}, {"away", chunked("not here", "opaque", {"c2"})}});
  auto here = file("r", "here"), away = file("r", "away");
  ASSERT_EQ(content(here), "cached");
  service_.hold();
  Answer<Blob> waits;
  site_->blob(away, {}, waits.callback());
  run();
  EXPECT_EQ(content(here), "cached");
  EXPECT_EQ(waits.calls(), 0);
}

TEST_F(BlobsTest, AFailedFetchIsTriedAgainByTheNextReader) {
  put_file(chunked("text", "opaque", {"c"}));
  auto f = file("r", "f");
  service_.away = true;
  EXPECT_EQ(content(f), "error: unreachable");
  service_.away = false;
  EXPECT_EQ(content(f), "text");
}

TEST_F(BlobsTest, ASlowFailureIsNotRepeatedForASecondRequest) {
  put_file(chunked("text", "opaque", {"c"}));
  auto f = file("r", "f");
  service_.away = true;
  service_.hold();
  Answer<Blob> ahead;
  site_->blob(f, {}, ahead.callback());
  run();
  clock_.advance(std::chrono::seconds(20));
  service_.release();
  run();
  EXPECT_EQ(ahead.code(), ErrorCode::unreachable);
  service_.away = false;
  EXPECT_EQ(content(f), "error: unreachable") << "the kernel, which asked ahead of a reader, asks for him";
  EXPECT_EQ(service_.requests("file_chunks/"), 1);
  advance(std::chrono::seconds(2));
  EXPECT_EQ(content(f), "text") << "that is somebody else";
}

TEST_F(BlobsTest, ClosingTheSiteAnswersAllWaiters) {
  put_file(chunked("text", "opaque", {"c"}));
  auto f = file("r", "f");
  service_.hold();
  Answer<Blob> blob;
  Answer<RevisionTreePtr> revision;
  Answer<Head> head, refreshed;
  Answer<ListPtr> list;
  Answer<Record> record;
  site_->blob(f, {}, blob.callback());
  run();
  site_->revision(RevisionId("other"), {}, revision.callback());
  site_->head(ProjectId("p"), {}, head.callback());
  site_->refresh_head(ProjectId("p"), {}, refreshed.callback());
  site_->list("projects", {}, list.callback());
  site_->record("threads", "t", {}, record.callback());
  site_.reset();
  EXPECT_EQ(blob.code(), ErrorCode::interrupted);
  EXPECT_EQ(revision.code(), ErrorCode::interrupted);
  EXPECT_EQ(head.code(), ErrorCode::interrupted);
  EXPECT_EQ(refreshed.code(), ErrorCode::interrupted);
  EXPECT_EQ(list.code(), ErrorCode::interrupted);
  EXPECT_EQ(record.code(), ErrorCode::interrupted);
  service_.release();
  run();  // late responses find no receiver
  EXPECT_EQ(blob.calls(), 1);
}

class PrefetchTest : public BlobsTest {
 protected:
  void put_files(int count) {
    JsonObject files;
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(1000 + i);
      files.append("f" + name, chunked("content " + name, "opaque", {"c" + name}));
    }
    put_revision("r", std::move(files));
  }
};

TEST_F(PrefetchTest, BringsAllContentsOnce) {
  put_files(200);
  auto tree = revision("r");
  site_->prefetch(tree);
  site_->prefetch(tree);
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 200);
  for (const auto& [path, entry] : tree->tree.manifest().files)
    EXPECT_TRUE(site_->try_blob({tree, path, &entry})) << path;
  site_->prefetch(tree);
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 200);
}

TEST_F(PrefetchTest, SkipsCachedContent) {
  put_files(10);
  auto f = file("r", "f1003");
  content(f);
  site_->prefetch(f.revision);
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 10);
}

TEST_F(PrefetchTest, IsBoundedAndYieldsToReaders) {
  put_files(300);
  auto tree = revision("r");
  service_.hold();
  site_->prefetch(tree);
  run();
  const auto ahead = service_.requests("file_chunks/");
  EXPECT_LT(ahead, 64);
  EXPECT_GT(ahead, 32);

  // One that nothing has requested yet, and one that is queued.
  Answer<Blob> demanded, queued;
  const std::string last = "f1299", middle = "f1100";
  site_->blob({tree, last, tree->tree.file_at(last)}, {}, demanded.callback());
  site_->blob({tree, middle, tree->tree.file_at(middle)}, {}, queued.callback());
  run();
  ASSERT_EQ(service_.requests("file_chunks/"), ahead + 2);
  EXPECT_EQ(service_.requests("file_chunks/c1299"), 1);
  EXPECT_EQ(service_.requests("file_chunks/c1100"), 1);
  service_.release();
  run();
  EXPECT_TRUE(demanded.ok());
  EXPECT_TRUE(queued.ok());
  EXPECT_EQ(service_.requests("file_chunks/"), 300);
}

TEST_F(PrefetchTest, AsksForAsMuchAtOnceAsTheTransportIsWide) {
  put_files(300);
  service_.breadth = 512;
  auto tree = revision("r");
  service_.hold();
  site_->prefetch(tree);
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 300);
  service_.release();
  run();
}

TEST_F(PrefetchTest, HasCeilingsByCountAndByBytes) {
  put_files(100);
  restart({.prefetch_chunks = 30});
  site_->prefetch(revision("r"));
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 30);
  EXPECT_EQ(content(file("r", "f1099")), "content 1099") << "what is beyond is fetched when it is read";
  restart({.prefetch_bytes = 40 * kMaxChunkText});
  site_->prefetch(revision("r"));
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 41) << "those before it are here already, but count";
}

TEST_F(PrefetchTest, CanBeTurnedOff) {
  restart({.prefetch = false});
  put_files(3);
  site_->prefetch(revision("r"));
  run();
  EXPECT_EQ(service_.requests("file_chunks/"), 0);
}

}  // namespace
}  // namespace playfs::content
