// The writable tree: staging, committing, following head.
#include <fcntl.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace playfs::vfs::test {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

struct Project {
  explicit Project(Service& service)
      : id(service.project("demo")),
        revision(service.publish(id, {{"a.txt", Service::file("alpha\n")}, {"dir/b.txt", Service::file("beta\n")}})),
        at("projects/" + id.text()),
        work(at + "/work") {}
  ProjectId id;
  RevisionId revision;
  std::string at, work;
};

Status remove(Mounted& mount, const std::string& directory, const std::string& name) {
  PLAYFS_TRY(Entry parent, mount.walk(directory));
  return await<void>([&](auto done) { mount.fs().unlink(mount.caller, parent.node, name, std::move(done)); });
}

Status rename(Mounted& mount, const std::string& from, const std::string& name, const std::string& to,
              const std::string& new_name, unsigned flags = 0) {
  PLAYFS_TRY(Entry parent, mount.walk(from));
  PLAYFS_TRY(Entry other, mount.walk(to));
  return await<void>([&](auto done) {
    mount.fs().rename(mount.caller, parent.node, name, other.node, new_name, flags, std::move(done));
  });
}

TEST(Work, ShowsHeadAndTakesChanges) {
  Service service;
  Project project(service);
  Mounted mount(service);
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "alpha\n");
  ASSERT_TRUE(mount.write_file(project.work + "/new.txt", "new\n"));
  EXPECT_EQ(mount.read_file(project.work + "/new.txt"), "new\n");
  EXPECT_THAT(*mount.list(project.work), UnorderedElementsAre("a.txt", "dir", "new.txt"));
  auto file = mount.walk(project.work + "/new.txt");
  EXPECT_EQ(file->entry_timeout, kEndless);
  EXPECT_EQ(file->attributes_timeout, kEndless);
  EXPECT_EQ(mount.xattr(project.work + "/new.txt", "user.playfs.staged"), "staged");
  EXPECT_EQ(mount.xattr(project.work + "/a.txt", "user.playfs.staged"), "published");
}

TEST(Work, OneByteInTheMiddleKeepsTheRest) {
  Service service;
  Project project(service);
  Mounted mount(service);
  auto file = mount.walk(project.work + "/a.txt");
  ASSERT_TRUE(file);
  EXPECT_EQ(mount.write(file->node, "L", 1), 1u);
  EXPECT_EQ(mount.read(file->node), "aLpha\n");
  SetAttributes longer;
  longer.size = 8;
  auto after = await<AttributesReply>(
      [&](auto done) { mount.fs().set_attributes(mount.caller, file->node, longer, std::move(done)); });
  ASSERT_TRUE(after);
  EXPECT_EQ(after->attributes.size, 8u);
  EXPECT_EQ(mount.read(file->node), std::string("aLpha\n\0\0", 8));
}

TEST(Work, TruncatingToNothingFetchesNothing) {
  Service service;
  ProjectId project = service.project("demo");
  const std::string text = "chunked\n";
  std::string chunk = service.create("file_chunks", {{"path", "f"}, {"seq", 0}, {"hash", "x"}, {"content", text}}).id;
  service.publish(project,
                  {{"f", JsonObject{{"h", ContentHash::of(text).hex()}, {"s", 8}, {"c", Json::Array{Json(chunk)}}}}});
  Mounted mount(service);
  auto file = mount.walk("projects/" + project.text() + "/work/f");
  ASSERT_TRUE(file);
  const int before = mount.network.count("/file_chunks/");
  SetAttributes empty;
  empty.size = 0;
  auto after = await<AttributesReply>(
      [&](auto done) { mount.fs().set_attributes(mount.caller, file->node, empty, std::move(done)); });
  ASSERT_TRUE(after);
  EXPECT_EQ(after->attributes.size, 0u);
  EXPECT_EQ(mount.read(file->node), "");
  EXPECT_EQ(mount.network.count("/file_chunks/"), before);
}

TEST(Work, AnUnlinkedFileIsReadUntilItIsForgotten) {
  Service service;
  Project project(service);
  Mounted mount(service);
  ASSERT_TRUE(mount.write_file(project.work + "/gone.txt", "still here\n"));
  Entry file = mount.walk(project.work + "/gone.txt").value();
  Entry published = mount.walk(project.work + "/a.txt").value();
  ASSERT_TRUE(remove(mount, project.work, "gone.txt"));
  ASSERT_TRUE(remove(mount, project.work, "a.txt"));
  EXPECT_EQ(mount.read(file.node), "still here\n");
  EXPECT_EQ(mount.read(published.node), "alpha\n");
  EXPECT_EQ(mount.walk(project.work + "/gone.txt").error().code, ErrorCode::not_found);
}

TEST(Work, RenamesWithinATreeOnly) {
  Service service;
  Project one(service), other(service);
  Mounted mount(service);
  EXPECT_TRUE(rename(mount, one.work, "a.txt", one.work + "/dir", "c.txt"));
  EXPECT_EQ(mount.read_file(one.work + "/dir/c.txt"), "alpha\n");
  EXPECT_EQ(rename(mount, one.work + "/dir", "c.txt", one.work + "/dir", "b.txt", RENAME_NOREPLACE).error().code,
            ErrorCode::already_exists);
  EXPECT_EQ(rename(mount, one.work, "dir", other.work, "dir").error().code, ErrorCode::cross_device);
}

TEST(Work, LinksThatLeaveTheTreeAreRefusedWhereverTheyCameFrom) {
  Service service;
  ProjectId project = service.project("demo");
  JsonObject link{{"h", ContentHash::of("../a").hex()}, {"s", 4}, {"m", "120000"}, {"inline", "../a"}};
  service.publish(project, {{"dir/in", link}, {"dir/moved", link}, {"a", Service::file("a")}});
  const std::string work = "projects/" + project.text() + "/work";
  Mounted safe(service, [](FileSystemOptions& options) { options.safe_symlinks = true; });
  auto make_link = [&](const std::string& name, const std::string& target) {
    const NodeId parent = safe.walk(work)->node;
    return await<Entry>([&](auto done) { safe.fs().make_symlink(safe.caller, parent, name, target, std::move(done)); });
  };
  ASSERT_TRUE(make_link("out", "/etc/passwd"));
  ASSERT_TRUE(make_link("beside", "dir/in"));
  ASSERT_TRUE(rename(safe, work + "/dir", "moved", work, "moved"));
  EXPECT_EQ(safe.read_link(work + "/dir/in"), "../a");
  EXPECT_EQ(safe.read_link(work + "/beside"), "dir/in");
  EXPECT_EQ(safe.read_link(work + "/out").error().code, ErrorCode::permission_denied);
  EXPECT_EQ(safe.read_link(work + "/moved").error().code, ErrorCode::permission_denied);
}

TEST(Work, NamesThatNoRevisionCanHoldAreRefusedAtOnce) {
  Service service;
  Project project(service);
  Mounted mount(service);
  EXPECT_EQ(mount.write_file(project.work + "/bad\xff", "").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(mount.write_file(project.work + "/" + std::string(256, 'x'), "").error().code, ErrorCode::name_too_long);
}

TEST(Work, IsCommittedAndSeenByAnotherMount) {
  Service service;
  Project project(service);
  Mounted mount(service), other(service);
  EXPECT_EQ(other.read_file(project.work + "/a.txt"), "alpha\n");
  NodeId other_work = other.walk(project.work)->node;
  NodeId other_project = other.walk(project.at)->node;
  ASSERT_TRUE(other.walk(project.at + "/head"));
  Entry old = other.walk(project.work + "/a.txt").value();

  ASSERT_TRUE(mount.write_file(project.work + "/a.txt", "changed\n"));
  ASSERT_TRUE(mount.write_file(project.work + "/new.txt", "new\n"));
  auto result = mount.commit(project.work, "change a and add new");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(result->files_changed, 2u);
  EXPECT_TRUE(mount.told.of_entry(mount.walk(project.at)->node, "head"));
  EXPECT_EQ(mount.read_link(project.at + "/head"), "revisions/" + result->revision.text());
  EXPECT_THAT(*mount.read_file(project.at + "/log"), HasSubstr("change a and add new"));
  EXPECT_EQ(mount.xattr(project.work + "/a.txt", "user.playfs.staged"), "published");
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "changed\n");

  EXPECT_TRUE(eventually([&] { return other.told.of_entry(other_project, "head"); }));
  EXPECT_TRUE(eventually([&] { return other.told.of_entry(other_work, "a.txt") && other.told.of_node(other_work); }));
  EXPECT_EQ(other.read_file(project.work + "/a.txt"), "changed\n");
  EXPECT_EQ(other.read_file(project.work + "/new.txt"), "new\n");
  // A process that has the old one open keeps reading it.
  EXPECT_NE(other.walk(project.work + "/a.txt")->node, old.node);
  EXPECT_EQ(other.walk(project.work + "/a.txt")->attributes.ino, old.attributes.ino);
  EXPECT_EQ(other.read(old.node), "alpha\n");
}

TEST(Work, ANameThatOthersReplaceIsALinkLess) {
  Service service;
  Project project(service);
  Mounted mount(service);
  Entry directory = mount.walk(project.work).value();
  Entry file = mount.walk(project.work + "/a.txt").value();
  auto linked = await<Entry>(
      [&](auto done) { mount.fs().link(mount.caller, file.node, directory.node, "same.txt", std::move(done)); });
  ASSERT_TRUE(linked);
  EXPECT_EQ(linked->attributes.links, 2u);
  auto result = mount.commit(project.work, "link");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(mount.told.of_node(file.node));
  service.publish(project.id, {{"a.txt", Service::file("theirs\n")}, {"same.txt", Service::file("alpha\n")}},
                  result->revision.text());
  EXPECT_TRUE(eventually([&] { return mount.told.of_node(file.node); }));
  Entry kept = mount.walk(project.work + "/same.txt").value();
  EXPECT_EQ(kept.node, file.node);
  EXPECT_EQ(kept.attributes.links, 1u);
  EXPECT_EQ(mount.walk(project.work + "/a.txt")->attributes.links, 1u);
}

TEST(Work, ACommitOfNothingSaysSo) {
  Service service;
  Project project(service);
  Mounted mount(service);
  auto result = mount.commit(project.work + "/dir", "nothing");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, Outcome::nothing);
}

TEST(Work, StaysWhereItIsWhileSomethingIsStaged) {
  Service service;
  Project project(service);
  Mounted mount(service);
  ASSERT_TRUE(mount.write_file(project.work + "/mine.txt", "mine\n"));
  RevisionId newer = service.publish(project.id, {{"a.txt", Service::file("theirs\n")}}, project.revision.text());
  EXPECT_TRUE(eventually([&] { return mount.read_link(project.at + "/head") == "revisions/" + newer.text(); }));
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "alpha\n");
  auto updated = await<UpdateResult>([&](auto done) {
    mount.fs().update(mount.caller, mount.walk(project.work)->node, RevisionId(), std::move(done));
  });
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->conflicts, 0u);
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "theirs\n");
  EXPECT_EQ(mount.read_file(project.work + "/mine.txt"), "mine\n");

  auto discarded = await<DiscardResult>(
      [&](auto done) { mount.fs().discard(mount.caller, mount.walk(project.work)->node, {}, std::move(done)); });
  ASSERT_TRUE(discarded) << discarded.error().message;
  EXPECT_EQ(discarded->paths, 1u);
  EXPECT_FALSE(mount.walk(project.work + "/mine.txt"));
  EXPECT_TRUE(eventually([&] { return mount.read_file(project.work + "/a.txt") == "theirs\n"; }));
  EXPECT_EQ(mount.xattr(project.work, "user.playfs.revision"), newer.text());
}

TEST(Work, ABranchIsLeftByAnUpdate) {
  Service service;
  Project project(service);
  Mounted mount(service);
  ASSERT_TRUE(mount.write_file(project.work + "/a.txt", "mine\n"));
  RevisionId theirs = service.publish(project.id, {{"a.txt", Service::file("theirs\n")}}, project.revision.text());
  auto result = mount.commit(project.work, "mine");
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->outcome, Outcome::branched);
  EXPECT_EQ(mount.read_link(project.at + "/head"), "revisions/" + theirs.text());
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "mine\n");
  EXPECT_THAT(*mount.read_file(project.at + "/status.json"), HasSubstr("\"branch\": true"));
  // Head moves; the work tree does not.
  RevisionId later = service.publish(project.id, {{"a.txt", Service::file("later\n")}}, theirs.text());
  EXPECT_TRUE(eventually([&] { return mount.read_link(project.at + "/head") == "revisions/" + later.text(); }));
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "mine\n");
  auto updated = await<UpdateResult>([&](auto done) {
    mount.fs().update(mount.caller, mount.walk(project.work)->node, RevisionId(), std::move(done));
  });
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->base, later.text());
  EXPECT_EQ(updated->conflicts, 1u);
  EXPECT_THAT(*mount.read_file(project.work + "/a.txt"), HasSubstr("<<<<<<< "));
  auto refused = mount.commit(project.work, "too early");
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  ASSERT_TRUE(mount.write_file(project.work + "/a.txt", "both\n"));
  auto merged = mount.commit(project.work, "both");
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->outcome, Outcome::published);
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "both\n");
}

TEST(Work, IsKeptAcrossMounts) {
  Service service;
  Project project(service);
  playfs::test::TemporaryDirectory state;
  Entry before;
  {
    Mounted mount(service, {}, state.path());
    ASSERT_TRUE(mount.write_file(project.work + "/a.txt", "staged\n"));
    before = mount.walk(project.work + "/a.txt").value();
  }
  Mounted again(service, {}, state.path());
  EXPECT_THAT(*again.read_file(project.at + "/status.json"), HasSubstr("\"path\": \"a.txt\""));
  EXPECT_EQ(again.read_file(project.work + "/a.txt"), "staged\n");
  EXPECT_EQ(again.walk(project.work + "/a.txt")->attributes.ino, before.attributes.ino);
}

TEST(Work, OfAnotherProcessIsShownAsHead) {
  Service service;
  Project project(service);
  playfs::test::TemporaryDirectory state;
  Mounted holder(service, {}, state.path());
  ASSERT_TRUE(holder.write_file(project.work + "/a.txt", "staged\n"));
  Mounted second(service, {}, state.path());
  EXPECT_EQ(second.read_file(project.work + "/a.txt"), "alpha\n");
  EXPECT_EQ(second.write_file(project.work + "/new.txt", "x").error().code, ErrorCode::busy);
  EXPECT_EQ(second.commit(project.work, "no").error().code, ErrorCode::not_supported);
  EXPECT_THAT(*second.read_file(project.at + "/status"), HasSubstr("another process"));
}

TEST(Work, InAReadOnlyMountIsHead) {
  Service service;
  Project project(service);
  Mounted mount(service, [](FileSystemOptions& options) { options.read_only = true; });
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "alpha\n");
  EXPECT_EQ(mount.write_file(project.work + "/a.txt", "x").error().code, ErrorCode::read_only);
  NodeId work = mount.walk(project.work)->node;
  service.publish(project.id, {{"a.txt", Service::file("next\n")}}, project.revision.text());
  EXPECT_TRUE(eventually([&] { return mount.told.of_entry(work, "a.txt"); }));
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "next\n");
  EXPECT_EQ(mount.walk(project.work)->node, work) << "whoever is in it stays in it";
}

TEST(Work, AStrangerMayNotCommit) {
  Service service;
  Project project(service);
  Mounted mount(service);
  ASSERT_TRUE(mount.write_file(project.work + "/a.txt", "mine\n"));
  NodeId work = mount.walk(project.work)->node;
  Caller stranger;
  stranger.uid = mount.caller.uid + 1;
  stranger.gid = mount.caller.gid + 1;
  auto result = await<CommitResult>([&](auto done) { mount.fs().commit(stranger, work, {}, std::move(done)); });
  EXPECT_EQ(result.error().code, ErrorCode::permission_denied);
  auto discarded = await<DiscardResult>([&](auto done) { mount.fs().discard(stranger, work, {}, std::move(done)); });
  EXPECT_EQ(discarded.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(mount.read_file(project.work + "/a.txt"), "mine\n");
}

TEST(Work, SetIdBitsDoNotSurviveAWrite) {
  Service service;
  Project project(service);
  Mounted mount(service);
  ASSERT_TRUE(mount.write_file(project.work + "/tool", "#!/bin/sh\n"));
  Entry file = mount.walk(project.work + "/tool").value();
  SetAttributes mode;
  mode.mode = 06755;
  ASSERT_TRUE(await<AttributesReply>(
      [&](auto done) { mount.fs().set_attributes(mount.caller, file.node, mode, std::move(done)); }));
  EXPECT_EQ(mount.walk(project.work + "/tool")->attributes.mode & 07777, 06755u);
  Caller plain = mount.caller;
  plain.uid = 12345;
  ASSERT_TRUE(await<std::size_t>([&](auto done) { mount.fs().write(plain, file.node, 0, "x", std::move(done)); }));
  EXPECT_TRUE(mount.told.of_node(file.node)) << "before the answer, which brings no attributes";
  EXPECT_EQ(mount.walk(project.work + "/tool")->attributes.mode & 07777, 0755u);
}

TEST(Work, CanBeTheWholeMount) {
  Service service;
  Project project(service);
  Mounted mount(service, [&](FileSystemOptions& options) { options.project = project.id; });
  EXPECT_EQ(mount.read_file("a.txt"), "alpha\n");
  EXPECT_THAT(*mount.list(""), UnorderedElementsAre("a.txt", "dir"));
  ASSERT_TRUE(mount.write_file("new.txt", "new\n"));
  EXPECT_THAT(*mount.read_file(".playfs/status.json"), HasSubstr(project.id.text()));
  auto result = mount.commit("", "from the root");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  service.publish(project.id, {{"a.txt", Service::file("next\n")}}, result->revision.text());
  EXPECT_TRUE(eventually([&] { return mount.told.of_entry(kRootNode, "a.txt"); }));
  EXPECT_EQ(mount.read_file("a.txt"), "next\n");
}

TEST(Work, ARevisionCanBeTheWholeMount) {
  Service service;
  Project project(service);
  Mounted mount(service, [&](FileSystemOptions& options) {
    options.project = project.id;
    options.revision = project.revision;
  });
  EXPECT_EQ(mount.read_file("dir/b.txt"), "beta\n");
  EXPECT_EQ(mount.write_file("a.txt", "x").error().code, ErrorCode::read_only);
  EXPECT_EQ(mount.commit("", "no").error().code, ErrorCode::not_supported);
}

}  // namespace
}  // namespace playfs::vfs::test
