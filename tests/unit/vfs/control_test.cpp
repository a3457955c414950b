// Control files: snapshots, requests, logs, records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "vfs/control/close_watcher.h"
#include "wire/json.h"

namespace playfs::vfs::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

JsonObject parsed(const Result<std::string>& text) {
  EXPECT_TRUE(text) << text.error().message;
  auto json = wire::parse_json(text.value_or("{}"));
  EXPECT_TRUE(json);
  return json && json->object() ? *json->object() : JsonObject();
}

std::string string_of(const JsonObject& object, std::string_view name) {
  const Json* value = object.find(name);
  return value && value->string() ? *value->string() : std::string("(none)");
}

TEST(Control, AChangedTextGetsANewNodeAndTheOldOneKeepsItsOwn) {
  Service service;
  ProjectId project = service.project("demo");
  service.publish(project, {{"a", Service::file("a")}});
  Mounted mount(service);
  const std::string status = "projects/" + project.text() + "/status";
  Entry before = mount.walk(status).value();
  std::string text = mount.read(before.node).value();
  EXPECT_EQ(text.size(), before.attributes.size);
  EXPECT_EQ(before.entry_timeout, 0);
  ASSERT_TRUE(mount.write_file("projects/" + project.text() + "/work/b", "b"));
  Entry after = mount.walk(status).value();
  EXPECT_NE(after.node, before.node);
  EXPECT_EQ(after.attributes.ino, before.attributes.ino);
  EXPECT_EQ(mount.read(before.node), text);
  EXPECT_THAT(*mount.read(after.node), HasSubstr("added     b"));
  EXPECT_EQ(mount.walk(status)->node, after.node);
}

TEST(Control, ACommitIsOneTextAndItsResultIsRead) {
  Service service;
  ProjectId project = service.project("demo");
  service.publish(project, {{"a", Service::file("a")}});
  Mounted mount(service);
  const std::string at = "projects/" + project.text();
  EXPECT_TRUE(parsed(mount.read_file(at + "/commit")).find("outcome")->is_null());
  ASSERT_TRUE(mount.write_file(at + "/work/b", "b"));
  ASSERT_TRUE(mount.write_file(at + "/commit", "add b\n"));
  JsonObject result = parsed(mount.read_file(at + "/commit"));
  EXPECT_EQ(string_of(result, "outcome"), "published");
  Record revision = service.get("revisions", string_of(result, "revision"));
  EXPECT_EQ(string_of(revision.fields, "message"), "add b");
  EXPECT_EQ(string_of(revision.fields, "agent"), "tester");
  EXPECT_EQ(string_of(parsed(mount.read_file(at + "/revision.json")), "id"), string_of(result, "revision"));
  // Several writes are one text, wherever the file ended before; each opening has a text of its own.
  Entry entry = mount.walk(at + "/commit").value(), other = mount.walk(at + "/commit").value();
  EXPECT_NE(entry.node, other.node);
  ASSERT_TRUE(mount.write_file(at + "/work/b", "c"));
  const std::uint64_t end = entry.attributes.size;
  ASSERT_TRUE(mount.write(entry.node, "subj", end));
  ASSERT_TRUE(mount.write(entry.node, "ect\n\nb", end + 4));
  EXPECT_FALSE(mount.write(entry.node, "gap", end + 20));
  EXPECT_EQ(string_of(*parsed(mount.read_file(at + "/commit")).find("error")->object(), "code"), "invalid_argument");
  ASSERT_TRUE(mount.write(other.node, "subj"));
  ASSERT_TRUE(mount.write(other.node, "ect\n\nbody\n", 4));
  result = parsed(mount.read_file(at + "/commit"));
  EXPECT_EQ(string_of(service.get("revisions", string_of(result, "revision")).fields, "message"), "subject\n\nbody");
  EXPECT_FALSE(mount.write(other.node, "more", 14));
  EXPECT_TRUE(mount.write(other.node, "\n", 14));
}

/// Its thread is blocked in the kernel behind another process's lock.
class StuckWatcher final : public CloseWatcher {
 public:
  void watch(Watch, std::string, Callback<void> armed, Task) override { kept_.push_back(std::move(armed)); }
  bool was_closed(Watch) override { return false; }
  void end(Watch) override {}
  [[nodiscard]] std::optional<Watch> looked_up_by(pid_t) const override { return std::nullopt; }
  /// The text it keeps refers back to it.
  void forget() { kept_.clear(); }

 private:
  std::vector<Callback<void>> kept_;
};

TEST(Control, AWriteDoesNotWaitForAWatcherThatIsStuck) {
  Service service;
  ProjectId project = service.project("demo");
  service.publish(project, {{"a", Service::file("a")}});
  Mounted mount(service);
  const std::string at = "projects/" + project.text();
  ASSERT_TRUE(mount.write_file(at + "/work/b", "b"));
  auto watcher = std::make_shared<StuckWatcher>();
  mount.playground().set_close_watcher(watcher);
  ASSERT_TRUE(mount.write_file(at + "/commit", "add b\n"));
  EXPECT_EQ(string_of(parsed(mount.read_file(at + "/commit")), "outcome"), "published");
  watcher->forget();
}

TEST(Control, ARequestFileSaysWhatItTakes) {
  Service service;
  Mounted mount(service);
  JsonObject help = parsed(mount.read_file("threads/new"));
  EXPECT_TRUE(help.find("outcome")->is_null());
  EXPECT_THAT(string_of(*help.find("fields")->object(), "kind"), HasSubstr("handoff"));
  EXPECT_TRUE(help.find("example")->object());
  EXPECT_EQ(mount.write_file("threads/new", R"({"title": "t", "color": "red"})").error().code,
            ErrorCode::invalid_argument);
  EXPECT_THAT(*mount.read_file("threads/new"), HasSubstr("color"));
  EXPECT_THAT(*mount.read_file(".playfs/errors.ndjson"), HasSubstr("color"));
}

TEST(Control, ARefusedRequestSaysWhy) {
  Service service;
  Mounted mount(service);
  EXPECT_EQ(mount.write_file("projects/new", "{broken}").error().code, ErrorCode::invalid_argument);
  JsonObject refused = parsed(mount.read_file("projects/new"));
  EXPECT_EQ(string_of(*refused.find("error")->object(), "code"), "invalid_argument");
  ASSERT_TRUE(mount.write_file("projects/new", "{\"name\": "));  // more may come
  JsonObject result = parsed(mount.read_file("projects/new"));
  ASSERT_TRUE(result.find("error"));
  EXPECT_EQ(string_of(*result.find("error")->object(), "code"), "invalid_argument");
  mount.network.cut();
  EXPECT_EQ(mount.write_file("projects/new", "{\"name\": \"x\"}").error().code, ErrorCode::unreachable);
  EXPECT_THAT(*mount.read_file("projects/new"), HasSubstr("unreachable"));
}

TEST(Control, ProjectsAreCreated) {
  Service service;
  Mounted mount(service);
  NodeId projects = mount.walk("projects")->node;
  ASSERT_TRUE(mount.list("projects"));
  ASSERT_TRUE(mount.write_file("projects/new", "{\"name\": \"fresh\"}"));
  EXPECT_TRUE(mount.told.of_node(projects)) << "before the call returned";
  std::string id = string_of(parsed(mount.read_file("projects/new")), "id");
  EXPECT_EQ(mount.read_link("projects/by-name/fresh"), "../" + id);
  EXPECT_THAT(*mount.list("projects"), Contains(id));
  // A project without a revision is an empty work tree that can be published.
  EXPECT_THAT(*mount.list("projects/" + id + "/work"), UnorderedElementsAre());
  EXPECT_FALSE(mount.walk("projects/" + id + "/head"));
  ASSERT_TRUE(mount.write_file("projects/" + id + "/work/first", "1\n"));
  EXPECT_EQ(mount.commit("projects/" + id + "/work", "first")->outcome, Outcome::published);
  EXPECT_EQ(mount.read_file("projects/" + id + "/work/first"), "1\n");
}

TEST(Control, StateIsStagedAndPublished) {
  Service service;
  ProjectId project = service.project("demo");
  service.publish(project, {{"a", Service::file("a")}});
  Mounted mount(service);
  const std::string at = "projects/" + project.text();
  EXPECT_EQ(mount.read_file(at + "/state.json"), "{}\n");
  ASSERT_TRUE(mount.write_file(at + "/state.json", "no json"));
  EXPECT_THAT(*mount.read_file(at + "/state.json"), HasSubstr("invalid_argument"));
  EXPECT_EQ(mount.read_file(at + "/state.json"), "{}\n");
  ASSERT_TRUE(mount.write_file(at + "/state.json", "{\"score\": 3}"));
  EXPECT_EQ(parsed(mount.read_file(at + "/state.json")).find("score")->integer(), 3);
  auto result = mount.commit(at + "/work", "score");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(service.get("revisions", result->revision.text()).fields.find("state")->object()->find("score")->integer(),
            3);
}

TEST(Control, ThreadsAreReadAndAnswered) {
  Service service;
  Mounted mount(service);
  ASSERT_TRUE(mount.write_file("threads/new", "{\"title\": \"Hello\", \"kind\": \"intro\"}"));
  std::string thread = string_of(parsed(mount.read_file("threads/new")), "id");
  ASSERT_TRUE(mount.write_file("threads/" + thread + "/reply", "I agree\n"));
  std::string message = string_of(parsed(mount.read_file("threads/" + thread + "/reply")), "id");
  EXPECT_EQ(string_of(service.get("messages", message).fields, "thread"), thread);
  EXPECT_THAT(*mount.read_file("threads/" + thread + "/messages.md"), HasSubstr("I agree"));
  EXPECT_THAT(*mount.list("threads/" + thread + "/messages"), UnorderedElementsAre(message + ".json"));
  EXPECT_EQ(string_of(parsed(mount.read_file("records/messages/" + message + ".json")), "body"), "I agree");
}

TEST(Control, AgentsGoByTheirHandle) {
  Service service;
  Mounted mount(service);
  ASSERT_TRUE(mount.write_file("agents/new", "{\"handle\": \"ada\"}"));
  EXPECT_THAT(*mount.list("agents"), UnorderedElementsAre("new", "ada.json"));
  EXPECT_EQ(string_of(parsed(mount.read_file("agents/ada.json")), "handle"), "ada");
}

TEST(Control, EachOpenOfARecordIsARequestOfItsOwn) {
  Service service;
  const std::string id = service.create("spaces", {{"name", "lab"}}).id;
  Mounted mount(service);
  const Entry one = mount.walk("spaces/" + id + ".json").value(), other = mount.walk("spaces/" + id + ".json").value();
  EXPECT_NE(one.node, other.node);
  EXPECT_EQ(one.attributes.ino, other.attributes.ino);
  EXPECT_EQ(one.entry_timeout, 0);
  const std::uint64_t end = one.attributes.size;
  ASSERT_TRUE(mount.write(one.node, R"({"a": 1})", end));
  ASSERT_TRUE(mount.write(other.node, R"({"b": 2})", end)) << "appended, too";
  const JsonObject fields = service.get("spaces", id).fields;
  EXPECT_EQ(fields.find("a")->integer(), 1);
  EXPECT_EQ(fields.find("b")->integer(), 2);
  EXPECT_EQ(mount.write(one.node, R"({"c": 3})", end + 8).error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(*mount.read_file(".playfs/errors.ndjson"), HasSubstr("one open takes one request"));
}

TEST(Control, EachChangeByANameChecksIt) {
  Service service;
  const std::string id = service.create("agents", {{"handle", "ada"}}).id;
  Mounted mount(service);
  const Entry one = mount.walk("agents/ada.json").value(), other = mount.walk("agents/ada.json").value();
  ASSERT_TRUE(mount.write(one.node, R"({"by": 1})"));
  service.patch("agents", id, {{"handle", "eve"}});
  EXPECT_EQ(mount.write(other.node, R"({"by": 2})").error().code, ErrorCode::stale);
  EXPECT_EQ(mount.write(one.node, R"({"by": 3})").error().code, ErrorCode::stale) << "through the same open, too";
  EXPECT_EQ(service.get("agents", id).fields.find("by")->integer(), 1);
}

TEST(Control, WhoOpensByAnIdIsNotJudgedByAnothersName) {
  constexpr pid_t one = 2'000'000'001, other = 2'000'000'002;  // no process can have these
  Service service;
  const std::string id = service.create("threads", {{"title", "Q/A"}, {"agent", "a"}, {"kind", "help"}}).id;
  const std::string path = "threads/" + id + "/thread.json";
  Mounted mount(service);
  mount.caller.pid = one;
  const Entry by_id = mount.walk(path).value();
  mount.caller.pid = other;
  ASSERT_TRUE(mount.walk("threads/by-title/Q_A"));
  const Entry by_title = mount.walk(path).value();
  service.patch("threads", id, {{"title", "Q_A"}});
  EXPECT_TRUE(mount.write(by_title.node, R"({"kind": "intro"})")) << "both titles are the same link";
  service.patch("threads", id, {{"title", "Secrets"}});
  EXPECT_EQ(mount.write(by_title.node, R"({"kind": "help"})").error().code, ErrorCode::stale);
  mount.caller.pid = one;
  EXPECT_TRUE(mount.write(by_id.node, R"({"kind": "collab"})"));
  EXPECT_EQ(string_of(service.get("threads", id).fields, "kind"), "collab");
}

TEST(Control, TheMountTellsOfItself) {
  Service service;
  ProjectId project = service.project("demo");
  service.publish(project, {{"a", Service::file("a")}});
  Mounted mount(service);
  ASSERT_TRUE(mount.walk("projects/" + project.text() + "/work"));
  JsonObject status = parsed(mount.read_file(".playfs/status.json"));
  EXPECT_EQ(string_of(status, "mount_source"), "local:test");
  EXPECT_EQ(string_of(status, "agent"), "tester");
  EXPECT_THAT(*status.find("projects_in_use")->array(), Contains(Json(project.text())));
  EXPECT_EQ(parsed(mount.read_file(".playfs/limits.json")).find("record_bytes")->integer(), 16384);
  EXPECT_THAT(*mount.read_file(".playfs/metrics"), HasSubstr("playfs_operations_total{operation=\"lookup\"}"));
  EXPECT_THAT(*mount.read_file("README.md"), HasSubstr("projects/ID/commit"));
}

TEST(Control, WhoLooksAtAThreadGetsTheSizeOfAllThatIsThere) {
  Service service;
  const std::string thread = service.create("threads", {{"title", "t"}, {"agent", "a"}, {"kind", "help"}}).id;
  Mounted mount(service);
  for (int number = 0; number < 20; ++number) {
    service.create("messages",
                   {{"thread", thread}, {"parent", ""}, {"agent", "a"}, {"body", "b" + std::to_string(number)}});
    const Entry file = mount.walk("threads/" + thread + "/messages.ndjson").value();
    const std::string text = mount.read(file.node).value();
    EXPECT_THAT(text, HasSubstr("b" + std::to_string(number)));
    EXPECT_EQ(file.attributes.size, text.size()) << "readers stop there";
  }
}

TEST(Control, ALogGrowsInPlace) {
  Service service;
  Mounted mount(service);
  Entry errors = mount.walk(".playfs/errors.ndjson").value();
  EXPECT_EQ(errors.attributes_timeout, 0);
  const std::string before = mount.read(errors.node).value();
  mount.site().events().error("somewhere", Error{ErrorCode::io, "the first"});
  // The new size shows once the kernel has dropped the page with the old end.
  EXPECT_TRUE(eventually([&] {
    auto reply = await<AttributesReply>(
        [&](auto done) { mount.fs().get_attributes(mount.caller, errors.node, std::move(done)); });
    return reply->attributes.size > before.size();
  }));
  EXPECT_TRUE(mount.told.of_node(errors.node));
  std::string after = mount.read(errors.node).value();
  EXPECT_TRUE(after.starts_with(before));
  EXPECT_THAT(after, HasSubstr("the first"));
  EXPECT_EQ(mount.walk(".playfs/errors.ndjson")->node, errors.node);
}

}  // namespace
}  // namespace playfs::vfs::test
