// Reading: revisions, head, times, sizes, errors.
#include <sys/stat.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "vfs/published/revision_tree.h"

namespace playfs::vfs::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

TEST(Trees, ShowARevision) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId revision =
      service.publish(project, {{"src/main.c", Service::file("int main;\n")}, {"README", Service::file("read\n")}});
  Mounted mount(service);
  const std::string at = "projects/" + project.text();
  EXPECT_EQ(mount.read_link(at + "/head"), "revisions/" + revision.text());
  EXPECT_EQ(mount.read_link("projects/by-name/demo"), "../" + project.text());
  const std::string tree = at + "/revisions/" + revision.text();
  EXPECT_THAT(*mount.list(tree), UnorderedElementsAre("src", "README"));
  EXPECT_EQ(mount.read_file(tree + "/src/main.c"), "int main;\n");
  auto file = mount.walk(tree + "/README");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->attributes.mode, static_cast<mode_t>(S_IFREG | 0644));
  EXPECT_EQ(file->entry_timeout, kEndless);
  EXPECT_EQ(file->attributes_timeout, kEndless);
  EXPECT_THAT(*mount.list("projects"), IsSupersetOf({std::string("new"), std::string("by-name"), project.text()}));
  EXPECT_THAT(*mount.list(at + "/revisions"), UnorderedElementsAre(revision.text()));
}

TEST(Trees, MissingNamesAreKeptWithoutEnd) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId revision = service.publish(project, {{"a", Service::file("a")}});
  Mounted mount(service);
  auto root = mount.walk("projects/" + project.text() + "/revisions/" + revision.text());
  ASSERT_TRUE(root);
  auto nothing = mount.lookup(root->node, "b");
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->node, 0u);
  EXPECT_EQ(nothing->entry_timeout, kEndless);
  EXPECT_EQ(mount.lookup(root->node, std::string(256, 'x')).error().code, ErrorCode::name_too_long);
}

TEST(Trees, CannotBeChanged) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId revision = service.publish(project, {{"a", Service::file("a")}});
  Mounted mount(service);
  const std::string tree = "projects/" + project.text() + "/revisions/" + revision.text();
  auto root = mount.walk(tree);
  auto file = mount.walk(tree + "/a");
  ASSERT_TRUE(root && file);
  auto made = await<Entry>(
      [&](auto done) { mount.fs().make_node(mount.caller, root->node, "x", S_IFREG | 0644, 0, std::move(done)); });
  EXPECT_EQ(made.error().code, ErrorCode::read_only);
  EXPECT_EQ(mount.write(file->node, "b").error().code, ErrorCode::read_only);
  auto removed = await<void>([&](auto done) { mount.fs().unlink(mount.caller, root->node, "a", std::move(done)); });
  EXPECT_EQ(removed.error().code, ErrorCode::read_only);
  auto named =
      await<void>([&](auto done) { mount.fs().set_xattr(mount.caller, file->node, "user.x", "y", std::move(done)); });
  EXPECT_EQ(named.error().code, ErrorCode::read_only);
  EXPECT_EQ(mount.commit(tree, "no").error().code, ErrorCode::not_supported);
}

TEST(Trees, OneProjectDoesNotShowAnothersRevision) {
  Service service;
  ProjectId ours = service.project("ours"), theirs = service.project("theirs");
  RevisionId revision = service.publish(theirs, {{"a", Service::file("a")}});
  Mounted mount(service);
  EXPECT_TRUE(mount.walk("projects/" + theirs.text() + "/revisions/" + revision.text()));
  EXPECT_EQ(mount.walk("projects/" + ours.text() + "/revisions/" + revision.text()).error().code, ErrorCode::not_found);
  EXPECT_EQ(mount.walk("projects/no-such-project").error().code, ErrorCode::not_found);
}

TEST(Trees, AForeignSizeInCharactersIsShownInBytes) {
  Service service;
  ProjectId project = service.project("demo");
  const std::string text = "grüße\n";  // 6 characters, 8 bytes
  RevisionId revision = service.publish(
      project,
      {{"text", JsonObject{{"h", "opaque"}, {"s", 6}, {"inline", text}}},
       {"chunked",
        JsonObject{
            {"h", "opaque-too"},
            {"s", 6},
            {"c", Json::Array{Json(
                      service.create("file_chunks", {{"path", "chunked"}, {"seq", 0}, {"hash", "x"}, {"content", text}})
                          .id)}}}}});
  Mounted mount(service);
  const std::string tree = "projects/" + project.text() + "/revisions/" + revision.text();
  for (const char* name : {"/text", "/chunked"}) {
    auto file = mount.walk(tree + name);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->attributes.size, text.size()) << name;
    EXPECT_EQ(mount.read_file(tree + name), text) << name;
  }
}

TEST(Trees, ContentThatIsNotWhatItClaimsIsAnErrorWithAReason) {
  Service service;
  ProjectId project = service.project("demo");
  std::string chunk =
      service.create("file_chunks", {{"path", "f"}, {"seq", 0}, {"hash", "x"}, {"content", "forged\n"}}).id;
  RevisionId revision = service.publish(
      project, {{"f", JsonObject{{"h", ContentHash::of("promise\n").hex()}, {"s", 8}, {"c", Json::Array{Json(chunk)}}}},
                {"g", Service::file("good\n")}});
  Mounted mount(service);
  const std::string tree = "projects/" + project.text() + "/revisions/" + revision.text();
  auto bytes = mount.read_file(tree + "/f");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::corrupt) << bytes.error().message;
  EXPECT_THAT(*mount.read_file(".playfs/errors.ndjson"), HasSubstr(tree + "/f"));
  EXPECT_EQ(mount.read_file(tree + "/g"), "good\n");
}

TEST(Trees, AMissingChunkMakesAFileUnreadableNotAbsent) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId revision = service.publish(
      project,
      {{"f", JsonObject{{"h", ContentHash::of("promise\n").hex()}, {"s", 8}, {"c", Json::Array{Json("nowhere")}}}}});
  Mounted mount(service);
  auto bytes = mount.read_file("projects/" + project.text() + "/revisions/" + revision.text() + "/f");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::corrupt) << bytes.error().message;
}

TEST(Trees, RefusedNamesAreNotShownAndAreListed) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId revision = service.publish(
      project, {{"ok", Service::file("ok")}, {".git/config", Service::file("evil")}, {"../up", Service::file("evil")}});
  Mounted mount(service);
  const std::string at = "projects/" + project.text();
  EXPECT_THAT(*mount.list(at + "/revisions/" + revision.text()), UnorderedElementsAre("ok"));
  EXPECT_FALSE(mount.walk(at + "/revisions/" + revision.text() + "/.git"));
  EXPECT_THAT(*mount.read_file(at + "/status.json"), HasSubstr(".git/config"));
}

TEST(Trees, InstructionsOfOthersAreNotShownAndAreListed) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId revision = service.publish(project, {{"ok", Service::file("ok")},
                                                  {"AGENTS.md", Service::file("obey")},
                                                  {".claude/hooks/run", Service::file("evil")},
                                                  {"src/agents.MD", Service::file("obey")}});
  const std::string at = "projects/" + project.text();
  for (auto shown : {Instructions::hide, Instructions::hide_others}) {
    Mounted mount(service, [&](FileSystemOptions& options) { options.instructions = shown; });
    for (const std::string& tree : {at + "/revisions/" + revision.text(), at + "/work"}) {
      EXPECT_THAT(*mount.list(tree), UnorderedElementsAre("ok", "src"));
      EXPECT_THAT(*mount.list(tree + "/src"), UnorderedElementsAre());
      EXPECT_EQ(mount.walk(tree + "/.claude").error().code, ErrorCode::not_found);
    }
    EXPECT_THAT(*mount.read_file(at + "/status.json"), HasSubstr(".claude/hooks/run"));
  }
  Mounted mount(service, [](FileSystemOptions& options) { options.instructions = Instructions::show; });
  EXPECT_EQ(mount.read_file(at + "/work/src/agents.MD"), "obey");
  EXPECT_EQ(mount.read_file(at + "/revisions/" + revision.text() + "/AGENTS.md"), "obey");
}

TEST(Trees, TimesFindTheRevisionOfThen) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId first = service.publish(project, {{"a", Service::file("one")}});
  std::string created = service.get("revisions", first.text()).created_at;
  RevisionId second = service.publish(project, {{"a", Service::file("two")}}, first.text());
  Mounted mount(service);
  const std::string at = "projects/" + project.text() + "/at/";
  EXPECT_EQ(mount.read_file(at + created + "/a"), "one");
  EXPECT_EQ(mount.read_file(at + "2200/a"), "two");
  EXPECT_EQ(mount.walk(at + "1999-12").error().code, ErrorCode::not_found);
  EXPECT_EQ(mount.walk(at + "yesterday").error().code, ErrorCode::not_found);
  EXPECT_LT(mount.walk(at + created)->entry_timeout, kEndless);
  EXPECT_LT(mount.walk(at + "2200")->entry_timeout, kEndless);
}

TEST(Trees, TimesFindWhatWasHeadAndNoBranchOfThen) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId root = service.publish(project, {{"a", Service::file("root")}});
  RevisionId head = service.publish(project, {{"a", Service::file("head")}}, root.text());
  auto post = [&](const std::string& content, Json::Array parents) {
    JsonObject manifest{{"files", JsonObject{{"a", Service::file(content)}}}};
    return service.create(
        "revisions",
        JsonObject{{"project", project.text()}, {"parents", std::move(parents)}, {"manifest", std::move(manifest)}});
  };
  Record branch = post("branch", {root.text()});
  Mounted mount(service);
  const std::string at = "projects/" + project.text() + "/at/";
  EXPECT_EQ(mount.read_file(at + branch.created_at + "/a"), "head") << "not merged, and never head";
  Record merge = post("merge", {head.text(), branch.id});
  service.patch("projects", project.text(), JsonObject{{"latest_revision", merge.id}});
  Mounted later(service);
  EXPECT_EQ(later.read_file(at + branch.created_at + "/a"), "head") << "merged, and still it was not head then";
  EXPECT_EQ(later.read_file(at + merge.created_at + "/a"), "merge");
  EXPECT_EQ(later.read_file(at + service.get("revisions", root.text()).created_at + "/a"), "root");
  // Along parents, without reading a list that may contain a hundred thousand foreign revisions.
  EXPECT_EQ(later.network.count("/revisions?"), 0);
}

TEST(Trees, TimesLongAgoTakeFewRounds) {
  Service service;
  ProjectId project = service.project("demo");
  std::vector<RevisionId> line;
  for (int i = 0; i < 40; ++i)
    line.push_back(
        service.publish(project, {{"a", Service::file(std::to_string(i))}}, line.empty() ? "" : line.back().text()));
  Mounted mount(service, [](FileSystemOptions& options) { options.refresh = std::chrono::hours(1); });
  const std::string first = service.get("revisions", line.front().text()).created_at;
  EXPECT_EQ(mount.read_file("projects/" + project.text() + "/at/" + first + "/a"), "0");
  EXPECT_EQ(mount.network.count("/revisions?"), 1) << "once the line turned out long";
}

TEST(Trees, BranchesAreWhatHeadHasNotMerged) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId base = service.publish(project, {{"a", Service::file("one")}});
  RevisionId left = service.publish(project, {{"a", Service::file("left")}}, base.text());
  RevisionId right = service.publish(project, {{"a", Service::file("right")}}, base.text());
  Mounted mount(service);
  const std::string at = "projects/" + project.text();
  EXPECT_THAT(*mount.list(at + "/branches"), UnorderedElementsAre(left.text()));
  EXPECT_EQ(mount.read_link(at + "/branches/" + left.text()), "../revisions/" + left.text());
  EXPECT_FALSE(mount.walk(at + "/branches/" + base.text()));
  auto log = mount.read_file(at + "/log.ndjson");
  ASSERT_TRUE(log);
  EXPECT_LT(log->find(right.text()), log->find(base.text()));
  EXPECT_THAT(*log, Not(HasSubstr("\"revision\":\"" + left.text())));
}

TEST(Trees, OfParentsWithoutNumberAFewAreAskedForAndOnlyOnce) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId base = service.publish(project, {{"a", Service::file("base")}});
  RevisionId beside = service.publish(project, {{"a", Service::file("beside")}}, base.text());
  Json::Array parents{base.text()};
  for (int i = 0; i < 500; ++i) parents.emplace_back("nobody-has-" + std::to_string(i));
  parents.emplace_back(beside.text());
  JsonObject manifest{{"files", JsonObject{{"a", Service::file("head")}}}};
  Record head = service.create("revisions", JsonObject{{"project", project.text()},
                                                       {"parents", std::move(parents)},
                                                       {"message", std::string(5'000, 'm')},
                                                       {"manifest", std::move(manifest)}});
  service.patch("projects", project.text(), JsonObject{{"latest_revision", head.id}});
  Mounted mount(service, [](FileSystemOptions& options) { options.refresh = std::chrono::hours(1); });
  const std::string at = "projects/" + project.text();
  auto log = mount.read_file(at + "/log.ndjson");
  ASSERT_TRUE(log);
  EXPECT_THAT(*log, HasSubstr(base.text()));
  EXPECT_THAT(*log, HasSubstr("\"more_parents\":470"));
  EXPECT_THAT(*mount.read_file(at + "/log"), HasSubstr("nobody-has-30 and 470 more\n"));
  EXPECT_EQ(mount.network.count("revisions/nobody-has-"), 31);
  EXPECT_EQ(mount.xattr(at + "/revisions/" + head.id, "user.playfs.more_parents"), "470");
  EXPECT_FALSE(mount.walk(at + "/revisions/nobody-has-7"));
  EXPECT_EQ(mount.network.count("revisions/nobody-has-"), 31) << "the service has just said so";
  EXPECT_FALSE(mount.walk(at + "/branches/" + beside.text())) << "a parent of head, though none that is followed";
}

TEST(Trees, AttributesTellTheClaims) {
  Service service;
  ProjectId project = service.project("demo");
  RevisionId revision = service.publish(project, {{"a", Service::file("one")}});
  Mounted mount(service);
  const std::string file = "projects/" + project.text() + "/revisions/" + revision.text() + "/a";
  EXPECT_EQ(mount.xattr(file, "user.playfs.revision"), revision.text());
  EXPECT_EQ(mount.xattr(file, "user.playfs.hash"), ContentHash::of("one").hex());
  EXPECT_EQ(mount.xattr(file, "user.playfs.agent"), "stranger");
  EXPECT_EQ(mount.xattr(file, "user.playfs.chunks"), "0");
  EXPECT_EQ(mount.xattr(file, "security.capability").error().code, ErrorCode::no_attribute);
}

TEST(Trees, LinksThatLeaveTheTreeAreRefusedWhereTheMountAsksForIt) {
  Service service;
  ProjectId project = service.project("demo");
  auto link = [](const std::string& target) {
    return JsonObject{
        {"h", ContentHash::of(target).hex()}, {"s", std::uint64_t{target.size()}}, {"m", "120000"}, {"inline", target}};
  };
  RevisionId revision =
      service.publish(project, {{"dir/in", link("../a")}, {"out", link("/etc/passwd")}, {"a", Service::file("a")}});
  const std::string tree = "projects/" + project.text() + "/revisions/" + revision.text();
  Mounted safe(service, [](FileSystemOptions& options) { options.safe_symlinks = true; });
  EXPECT_EQ(safe.read_link(tree + "/dir/in"), "../a");
  EXPECT_EQ(safe.read_link(tree + "/out").error().code, ErrorCode::permission_denied);
  Mounted plain(service);
  EXPECT_EQ(plain.read_link(tree + "/out"), "/etc/passwd");
}

TEST(Links, StayInside) {
  EXPECT_TRUE(stays_inside("a", "b/c"));
  EXPECT_TRUE(stays_inside("d/a", "../b"));
  EXPECT_FALSE(stays_inside("a", "../b"));
  EXPECT_FALSE(stays_inside("a", "/b"));
  EXPECT_FALSE(stays_inside("d/a", "x/../../../b"));
  EXPECT_FALSE(stays_inside("a", "link/../b"));
}

}  // namespace
}  // namespace playfs::vfs::test
