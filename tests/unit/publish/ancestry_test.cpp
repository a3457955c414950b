// Merging requires a known common base, and head is only moved to what is seen to contain all of it: histories that are
// unreadable, cut short by others, or carry along fields of ours.
#include <utility>

#include <gtest/gtest.h>

#include "base/await.h"
#include "base/text.h"
#include "support/publish_world.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

class AncestryTest : public testing::Test {
 protected:
  AncestryTest() : project(world.create("projects", R"({"name":"p"})").id) {
    root = publish({}, files_of({{"keep", "k"}, {"victim", "v"}}));
    world.set_head(project, root);
  }

  static JsonObject files_of(const Contents& contents) {
    JsonObject files;
    for (const auto& [path, content] : contents) files.set(path, JsonObject{{"inline", content}});
    return JsonObject{{"files", std::move(files)}};
  }
  std::string publish(const std::vector<std::string>& parents, Json manifest) {
    Json::Array ids;
    for (const auto& parent : parents) ids.emplace_back(parent);
    return world
        .create("revisions", wire::to_text(JsonObject{
                                 {"project", project}, {"parents", std::move(ids)}, {"manifest", std::move(manifest)}}))
        .id;
  }
  std::string publish_files(const std::vector<std::string>& parents, const Contents& contents) {
    return publish(parents, files_of(contents));
  }
  /// Like a client that does not understand the other fields.
  std::string publish_edited(const std::vector<std::string>& parents, const std::string& of, const std::string& path,
                             const std::string& content) {
    JsonObject manifest = *world.get("revisions", of).fields.find("manifest")->object();
    JsonObject files = *manifest.find("files")->object();
    files.set(path, JsonObject{{"inline", content}});
    manifest.set("files", std::move(files));
    return publish(parents, std::move(manifest));
  }
  /// A work tree on the present head.
  void open() { work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree"); }
  RevisionTreePtr revision(const std::string& id) {
    auto tree = await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(id), {}, std::move(done)); });
    EXPECT_TRUE(tree);
    return *tree;
  }
  Result<Integrated> update(const std::string& to) {
    return await<Integrated>([&](auto done) { work->publisher->update(revision(to), CancelToken(), std::move(done)); });
  }
  Result<Integrated> merge(const std::string& with) {
    return await<Integrated>(
        [&](auto done) { work->publisher->merge(revision(with), CancelToken(), std::move(done)); });
  }
  void expect_branched(const std::string& head) {
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::branched);
    EXPECT_EQ(world.head(project), head);
  }
  void expect_head(const Contents& contents) {
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_NE(result->outcome, Outcome::branched);
    EXPECT_EQ(world.contents(world.head(project)), contents);
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project, root;
  std::unique_ptr<WorkTree> work;
};

TEST_F(AncestryTest, ARevisionWhoseFilesCannotBeReadStillHasParents) {
  open();
  work->write("mine", "m");
  std::string middle = publish({root}, "no manifest at all");
  world.set_head(project, publish_files({middle}, {{"keep", "k"}, {"theirs", "t"}}));
  expect_head({{"keep", "k"}, {"theirs", "t"}, {"mine", "m"}});
}

class UnknownBaseTest : public AncestryTest {
 protected:
  UnknownBaseTest() {
    open();
    work->write("mine", "m");
    theirs = publish_files({}, {{"keep", "k"}, {"theirs", "t"}});
    world.set_head(project, theirs);
  }
  std::string theirs;
};

TEST_F(UnknownBaseTest, ACommitBecomesABranch) { expect_branched(theirs); }

TEST_F(UnknownBaseTest, AnUpdateIsRefusedWithAHint) {
  auto updated = update(theirs);
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().code, ErrorCode::refused_input);
  EXPECT_NE(updated.error().message.find("no common base"), std::string::npos) << updated.error().message;
  EXPECT_NE(updated.error().hint.find("playfs merge " + theirs), std::string::npos) << updated.error().hint;
  EXPECT_EQ(work->stage->base()->revision.id, RevisionId(root));
  EXPECT_TRUE(work->stage->conflicted().empty());

  // Following the hint succeeds.
  expect_branched(theirs);
  auto merged = merge(theirs);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->conflicts, 3u) << "mine, theirs, victim: what one side alone has";
  EXPECT_FALSE(work->commit()) << "before it is decided";
  work->remove("victim");
  ASSERT_TRUE(work->stage->record_conflicted({}));
  expect_head({{"keep", "k"}, {"theirs", "t"}, {"mine", "m"}});
}

TEST_F(AncestryTest, CrissCrossMergesUseAllMergeBases) {
  Contents all = {{"base", "0"}};
  root = publish_files({}, all);
  std::vector<std::string> tips;
  for (int i = 1; i <= 8; ++i) tips.push_back(publish_files({root}, {{"base", "0"}, {"f" + std::to_string(i), "f"}}));
  for (int i = 1; i <= 8; ++i) all["f" + std::to_string(i)] = "f";
  JsonObject merge = files_of(all);
  merge.set("auto", true);
  std::string one = publish(tips, merge), other = publish(tips, merge);
  Contents added = all, without = all;
  added["a"] = "a";
  without.erase("f8");
  world.set_head(project, publish_files({one}, added));
  publish_files({other}, without);
  open();
  work->write("mine", "m");
  without["a"] = "a";
  without["mine"] = "m";
  expect_head(without);
}

TEST_F(AncestryTest, ACrissCrossMergeLeavesAConflictToNeitherSide) {
  const std::string zero("\0", 1);  // so that no file is text
  root = publish_files({}, {{"image", zero}, {"gone", zero}, {"keep", "k"}});
  auto one = publish_files({root}, {{"image", zero + "1"}, {"gone", zero + "1"}, {"new", zero + "1"}, {"keep", "k"}});
  auto other = publish_files({root}, {{"image", zero + "2"}, {"new/file", "2"}, {"keep", "k"}});
  // Each author decided for his own version.
  auto ours =
      publish_files({one, other}, {{"image", zero + "1"}, {"gone", zero + "1"}, {"new", zero + "1"}, {"keep", "k"}});
  auto theirs = publish_files({other, one}, {{"image", zero + "2"}, {"new/file", "2"}, {"keep", "k"}});
  world.set_head(project, ours);
  open();
  auto merged = merge(theirs);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->conflicts, 3u) << "image, gone and new: nobody's version wins unasked";
}

TEST_F(AncestryTest, AFileADirectoryAndSomethingBelowInThreeMergeBases) {
  root = publish_files({}, {{"keep", "k"}});
  auto a = publish_files({root}, {{"keep", "k"}, {"p", "1"}});
  auto b = publish_files({root}, {{"keep", "k"}, {"p/x/y", "2"}});
  auto c = publish_files({root}, {{"keep", "k"}, {"p/x", "3"}});
  auto ours = publish_files({a, b, c}, {{"keep", "k"}, {"p", "1"}});
  auto theirs = publish_files({c, b, a}, {{"keep", "k"}, {"p/x", "3"}});
  world.set_head(project, ours);
  open();
  auto merged = merge(theirs);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->conflicts, 1u);
}

TEST_F(AncestryTest, AModeIsMergedAcrossACrissCrossConflict) {
  auto binary = [](const std::string& content, const char* mode) {
    JsonObject entry{{"inline", to_base64(std::string("\0", 1) + content)}, {"e", "base64"}, {"m", mode}};
    return JsonObject{{"files", JsonObject{{"tool", std::move(entry)}}}};
  };
  root = publish({}, binary("0", "100755"));
  auto one = publish({root}, binary("1", "100755")), other = publish({root}, binary("2", "100755"));
  auto ours = publish({one, other}, binary("1", "100644")), theirs = publish({other, one}, binary("1", "100755"));
  world.set_head(project, ours);
  open();
  auto merged = merge(theirs);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(work->stage->attributes(work->stage->find("tool"))->permissions & 0111, 0u) << "chmod -x stays";
}

class CrissCrossStateTest : public AncestryTest {
 protected:
  std::string with_state(const std::vector<std::string>& parents, const std::string& a, const std::string& k,
                         const Contents& files = {{"keep", "k"}}) {
    Json::Array ids;
    for (const auto& parent : parents) ids.emplace_back(parent);
    return world
        .create("revisions", wire::to_text(JsonObject{{"project", project},
                                                      {"parents", std::move(ids)},
                                                      {"manifest", files_of(files)},
                                                      {"state", JsonObject{{"a", a}, {"k", k}}}}))
        .id;
  }
};

TEST_F(CrissCrossStateTest, AConflictIsLeftToNeitherSide) {
  root = with_state({}, "0", "0");
  auto one = with_state({root}, "1", "0"), other = with_state({root}, "2", "0");
  auto ours = with_state({one, other}, "1", "0"), theirs = with_state({other, one}, "2", "0");
  world.set_head(project, ours);
  open();
  auto merged = merge(theirs);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->conflicts, 1u);
}

TEST_F(CrissCrossStateTest, AKeyThatGoesBackToAnOldValueStays) {
  const std::string zero("\0", 1);
  const Contents before = {{"keep", "k"}, {"image", zero}}, after = {{"keep", "k"}, {"image", zero + "1"}};
  root = with_state({}, "0", "0", before);
  auto one = with_state({root}, "1", "1", after), other = with_state({root}, "2", "0", {{"keep", "k"}});
  auto ours = with_state({one, other}, "1", "1", after), theirs = with_state({other, one}, "1", "1", after);
  // Ours returns to what everybody began with.
  world.set_head(project, with_state({ours}, "1", "0", before));
  auto beside = with_state({theirs}, "1", "1", {{"keep", "theirs"}, {"image", zero + "1"}});
  open();
  auto merged = merge(beside);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->conflicts, 1u) << "image: ours and theirs differ from anything before";
  auto state = wire::parse_json(work->stage->staged_state().value_or(R"({"a":"1","k":"0"})"));
  ASSERT_TRUE(state);
  EXPECT_EQ(*state->object()->find("k"), Json("0"));
}

// What is staged, and what is written while a merge reads.

TEST_F(AncestryTest, AnUpdateLeavesWhatIsStagedElsewhereAlone) {
  open();
  work->write("mine", "m");
  auto head = publish_files({root}, {{"keep", "theirs"}, {"victim", "v"}});
  auto updated = update(head);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(work->read("keep"), "theirs");
  EXPECT_EQ(work->read("mine"), "m");
  EXPECT_EQ(work->stage->base()->revision.id, RevisionId(head));
}

TEST_F(AncestryTest, WhatIsStagedGetsTheModeThatHeadGaveTheFile) {
  auto beside = std::make_unique<WorkTree>(world, project, directory.path() + "/beside");
  const std::string large(20'000, 'x');  // too large to be inline
  beside->write("run", large);
  ASSERT_TRUE(beside->commit());
  open();
  work->write("run", large + "mine");
  beside->write("run", large, 0755);
  auto head = beside->commit();
  ASSERT_TRUE(head) << head.error().message;
  auto updated = update(head->revision.text());
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->conflicts, 0u);
  EXPECT_TRUE(work->read("run") == large + "mine");
  EXPECT_EQ(work->stage->attributes(work->stage->find("run"))->permissions & 0111, 0111u);
}

TEST_F(AncestryTest, AnUpdateGoesBackToAHeadThatWasMovedBack) {
  open();
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  world.set_head(project, root);
  auto updated = update(root);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->base, RevisionId(root));
  EXPECT_EQ(work->stage->base()->revision.id, RevisionId(root));
  EXPECT_EQ(work->read("mine"), "m");
}

TEST_F(AncestryTest, AnyEditResolvesADeletionByHead) {
  open();
  work->write("victim", "mine");
  auto updated = update(publish_files({root}, {{"keep", "k"}}));
  ASSERT_TRUE(updated) << updated.error().message;
  auto conflicts = work->stage->conflicted();
  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_FALSE(conflicts[0].has_markers);
  EXPECT_FALSE(work->commit()) << "nothing was decided";
  work->write("victim", "what a conflict looks like:\n<<<<<<< a\n=======\n>>>>>>> b\n");
  EXPECT_TRUE(work->commit());
}

TEST_F(AncestryTest, WritesDuringAMergeAreMergedToo) {
  auto beside = std::make_unique<WorkTree>(world, project, directory.path() + "/beside");
  beside->write("a", std::string(20'000, 'x'));  // in chunks, which have to be fetched
  beside->write("keep", "theirs\n");
  auto branch = beside->commit();
  ASSERT_TRUE(branch) << branch.error().message;
  world.set_head(project, root);
  open();
  bool is_written = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.target.find("/file_chunks") != std::string::npos && !std::exchange(is_written, true))
      work->write("keep", "mine\n");
    return test::Fault();
  });
  auto merged = merge(branch->revision.text());
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_TRUE(is_written);
  EXPECT_EQ(merged->conflicts, 1u);
  const std::string both = work->read("keep");
  EXPECT_NE(both.find("mine\n"), std::string::npos) << both;
  EXPECT_NE(both.find("theirs\n"), std::string::npos) << both;
}

// Their directory conflicts with our file and is put beside it.
TEST_F(AncestryTest, AFileWrittenMeanwhileIsNotOverwritten) {
  auto beside = std::make_unique<WorkTree>(world, project, directory.path() + "/beside");
  beside->write("a/b", std::string(20'000, 'x'));  // in chunks, which have to be fetched
  auto branch = beside->commit();
  ASSERT_TRUE(branch) << branch.error().message;
  world.set_head(project, publish_files({root}, {{"keep", "k"}, {"victim", "v"}, {"a", "ours"}}));
  open();
  bool is_written = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.target.find("/file_chunks") != std::string::npos && !std::exchange(is_written, true))
      work->write("a.branch/b", "mine");
    return test::Fault();
  });
  auto merged = merge(branch->revision.text());
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_TRUE(is_written);
  EXPECT_EQ(work->read("a"), "ours");
  EXPECT_EQ(work->read("a.branch/b"), "mine");
  EXPECT_EQ(work->read("a.branch-2/b"), std::string(20'000, 'x'));
}

TEST_F(AncestryTest, ALocalOnlyFileStaysWhenHeadHasAFileOfThatName) {
  Contents files = {{".gitignore", "*.o\n"}, {"keep", "k"}};
  root = publish_files({root}, files);
  world.set_head(project, root);
  open();
  work->write("x.o", "ours");
  work->write("mine", "m");
  files["other"] = "o";
  files["x.o"] = "theirs";
  world.set_head(project, publish_files({root}, files));
  files["mine"] = "m";
  expect_head(files);
  EXPECT_EQ(work->read("x.o"), "ours");
  EXPECT_EQ(work->read("x.o.head"), "theirs");
  EXPECT_EQ(work->read("other"), "o");
  auto conflicts = work->stage->conflicted();
  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_EQ(conflicts[0].path, "x.o");
}

TEST_F(AncestryTest, ALocalOnlyFileStaysWhenHeadHasAFileForItsDirectory) {
  Contents files = {{".gitignore", "*.o\n"}, {"keep", "k"}};
  root = publish_files({root}, files);
  world.set_head(project, root);
  open();
  work->write("d/x.o", "ours");
  work->write("mine", "m");
  files["d"] = "theirs";
  world.set_head(project, publish_files({root}, files));
  files["mine"] = "m";
  expect_head(files);
  EXPECT_EQ(work->read("d/x.o"), "ours");
  EXPECT_EQ(work->read("d.head"), "theirs");
}

TEST_F(AncestryTest, ALocalOnlyFileDoesNotMakeAnUpdateDropADirectory) {
  root = publish_files({root}, {{"p", "a file"}, {"keep", "k"}});
  world.set_head(project, root);
  open();
  work->remove("p");
  ASSERT_TRUE(work->stage->make_special(work->stage->root(), "p", stage::Kind::fifo, {}));
  std::string head = publish_files({root}, {{"p/precious", "theirs"}, {"keep", "k"}});
  world.set_head(project, head);
  auto updated = update(head);
  ASSERT_FALSE(updated) << "what is to become of p/precious was decided by nobody";
  EXPECT_NE(updated.error().message.find("p is local-only"), std::string::npos) << updated.error().message;
  ASSERT_TRUE(work->stage->unlink(work->stage->root(), "p"));
  ASSERT_TRUE(update(head));
  work->write("mine", "m");
  expect_head({{"p/precious", "theirs"}, {"keep", "k"}, {"mine", "m"}});
}

TEST_F(AncestryTest, AnUpdateDoesNotDeleteALocalOnlyFileThatHeadChanges) {
  root = publish_files({root}, {{"p", "a file"}, {"q", "another"}, {"keep", "k"}});
  world.set_head(project, root);
  open();
  for (const char* path : {"p", "q"}) {
    work->remove(path);
    ASSERT_TRUE(work->stage->make_special(work->stage->root(), path, stage::Kind::fifo, {}));
  }
  std::string head = publish_files({root}, {{"p", "theirs"}, {"q/in", "theirs"}, {"keep", "k"}});
  world.set_head(project, head);
  for (const std::string path : {"p", "q"}) {
    auto updated = update(head);
    ASSERT_FALSE(updated);
    EXPECT_NE(updated.error().message.find(path + " is local-only"), std::string::npos) << updated.error().message;
    EXPECT_EQ(work->stage->attributes(work->stage->find(path))->kind, stage::Kind::fifo);
    ASSERT_TRUE(work->stage->unlink(work->stage->root(), path));
  }
  ASSERT_TRUE(update(head));
  EXPECT_EQ(work->stage->conflicted().size(), 1u) << "p was deleted here and changed there";
}

// Head.

TEST_F(AncestryTest, HeadStaysOnARevisionThatCannotBeRead) {
  open();
  work->write("mine", "m");
  std::string newer = publish({root}, "a form of years to come");
  world.set_head(project, newer);
  expect_branched(newer);
}

TEST_F(AncestryTest, HeadStaysOnAHiddenRevision) {
  open();
  for (auto [status, code] : {std::pair(403, "forbidden"), std::pair(404, "not_found")}) {
    work->write("mine", code);
    std::string hidden = publish({root}, "not to be seen");
    work->faults.set_plan([&, status = status, code = code](const HttpRequest& request) {
      bool is_it = request.method == "GET" && request.target.ends_with("/revisions/" + hidden);
      return is_it ? test::answer_with(status, std::string(R"({"error":"x","code":")") + code + "\"}") : test::Fault();
    });
    world.set_head(project, hidden);
    expect_branched(hidden);
  }
}

// Fields carried along by others.

class CarriedAlongTest : public AncestryTest {
 protected:
  CarriedAlongTest() {
    open();
    work->write("doc", "old");
    commit = published();
  }
  std::string published() {
    auto result = work->commit();
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_NE(result->outcome, Outcome::branched);
    return world.head(project);
  }
  std::string merge_of_two() {
    publish_files({root}, {{"keep", "k"}, {"victim", "v"}, {"b", "b"}});
    work->write("c", "c");
    std::string merge = published();
    EXPECT_TRUE(wire::decode_revision(world.get("revisions", merge))->manifest.is_automatic);
    return merge;
  }
  std::string commit;
};

TEST_F(CarriedAlongTest, TheSameTxWithOtherFilesIsAnotherCommit) {
  work->write("mine", "m");
  world.set_head(project, publish_edited({commit}, commit, "doc", "theirs"));
  expect_head({{"keep", "k"}, {"victim", "v"}, {"doc", "theirs"}, {"mine", "m"}});
}

TEST_F(CarriedAlongTest, ARevisionThatIsEditedIsNoAutomaticMerge) {
  std::string merge = merge_of_two();
  world.set_head(project, publish_edited({merge}, merge, "doc", "theirs"));
  work->write("d", "d");
  expect_head({{"keep", "k"}, {"victim", "v"}, {"doc", "theirs"}, {"b", "b"}, {"c", "c"}, {"d", "d"}});
}

TEST_F(CarriedAlongTest, ARevisionOfTwoParentsThatIsNotTheirMergeIsNotAutomatic) {
  std::string merge = merge_of_two();
  auto parents = wire::decode_revision(world.get("revisions", merge))->parents;
  ASSERT_EQ(parents.size(), 2u);
  std::string edited = publish_edited({parents[0].text(), parents[1].text()}, merge, "doc", "theirs");
  world.set_head(project, edited);
  work->write("d", "d");
  expect_head({{"keep", "k"}, {"victim", "v"}, {"doc", "theirs"}, {"b", "b"}, {"c", "c"}, {"d", "d"}});
}

TEST_F(CarriedAlongTest, AMergeThatDiffersAtAHiddenPathIsNotAutomatic) {
  world.set_head(project, publish_edited({commit}, commit, "../up", "one"));
  std::string merge = merge_of_two();
  auto parents = wire::decode_revision(world.get("revisions", merge))->parents;
  ASSERT_EQ(parents.size(), 2u);
  publish_edited({parents[0].text(), parents[1].text()}, merge, "../up", "other");
  work->write("d", "d");
  auto refused = wire::decode_revision(world.get("revisions", published()))->manifest.refused;
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(wire::to_text(refused[0].entry).find("other"), std::string::npos);
}

TEST_F(CarriedAlongTest, WhatWasEditedInACopyOfAMergeIsMergedToo) {
  // Head is that merge, and contains both parents; the copy's other claims are false.
  std::string merge = merge_of_two();
  auto parents = wire::decode_revision(world.get("revisions", merge))->parents;
  ASSERT_EQ(parents.size(), 2u);
  publish_edited({parents[0].text(), parents[1].text()}, merge, "doc", "theirs");
  work->write("d", "d");
  expect_head({{"keep", "k"}, {"victim", "v"}, {"doc", "theirs"}, {"b", "b"}, {"c", "c"}, {"d", "d"}});
}

}  // namespace
}  // namespace playfs::publish
