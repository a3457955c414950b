// Nothing here blocks: an operation that has to wait returns at once, others proceed, and it can be interrupted.
#include <atomic>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "vfs/control/growing_file.h"
#include "vfs/node.h"
#include "vfs/sent_back.h"

namespace playfs::vfs::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Json chunked(Service& service, const std::string& text) {
  std::string chunk =
      service
          .create("file_chunks", {{"path", "f"}, {"seq", 0}, {"hash", ContentHash::of(text).hex()}, {"content", text}})
          .id;
  return JsonObject{
      {"h", ContentHash::of(text).hex()}, {"s", std::uint64_t{text.size()}}, {"c", Json::Array{Json(chunk)}}};
}

struct Held {
  explicit Held(Service& service) : mount(service) {
    ProjectId slow = service.project("slow"), quick = service.project("quick");
    RevisionId slow_revision = service.publish(slow, {{"f", chunked(service, "slow content\n")}});
    RevisionId quick_revision = service.publish(quick, {{"f", Service::file("quick content\n")}});
    quick_file = "projects/" + quick.text() + "/revisions/" + quick_revision.text() + "/f";
    // The size of a stranger's file is known only with its content.
    slow_directory = mount.walk("projects/" + slow.text() + "/revisions/" + slow_revision.text())->node;
    mount.walk(quick_file).value();
    mount.network.hold("/file_chunks/");
    slow_file = named("f").node;
  }
  /// The reply to a lookup in the slow directory.
  Entry named(const std::string& name) {
    return await<Entry>([&](auto done) { mount.fs().lookup(mount.caller, slow_directory, name, std::move(done)); })
        .value();
  }
  Mounted mount;
  std::string quick_file;
  NodeId slow_directory = 0, slow_file = 0;
};

TEST(Waiting, IsNotDoneOnTheThreadThatAsks) {
  Service service;
  Held held(service);
  std::atomic<bool> answered = false;
  Result<AttributesReply> shown;
  held.mount.fs().get_attributes(held.mount.caller, held.slow_file, [&](Result<AttributesReply> result) {
    shown = std::move(result);
    answered = true;
  });
  EXPECT_TRUE(eventually([&] { return held.mount.network.held() == 1; }));
  EXPECT_FALSE(answered);
  EXPECT_EQ(held.mount.read_file(held.quick_file), "quick content\n");
  EXPECT_FALSE(answered);
  held.mount.network.open();
  ASSERT_TRUE(eventually([&] { return answered.load(); }));
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->attributes.size, 13U);
  EXPECT_EQ(held.mount.read(held.slow_file), "slow content\n");
}

TEST(Waiting, EndsWhenInterrupted) {
  Service service;
  Held held(service);
  CancelSource interrupt;
  Caller caller = held.mount.caller;
  caller.cancel = interrupt.token();
  std::atomic<bool> answered = false;
  Result<AttributesReply> shown;
  held.mount.fs().get_attributes(caller, held.slow_file, [&](Result<AttributesReply> result) {
    shown = std::move(result);
    answered = true;
  });
  EXPECT_TRUE(eventually([&] { return held.mount.network.held() == 1; }));
  interrupt.cancel();
  ASSERT_TRUE(eventually([&] { return answered.load(); }));
  EXPECT_EQ(shown.error().code, ErrorCode::interrupted);
}

TEST(Waiting, EndsWithTheMount) {
  Service service;
  std::atomic<bool> answered = false;
  Result<AttributesReply> shown;
  {
    Held held(service);
    held.mount.fs().get_attributes(held.mount.caller, held.slow_file, [&](Result<AttributesReply> result) {
      shown = std::move(result);
      answered = true;
    });
    EXPECT_TRUE(eventually([&] { return held.mount.network.held() == 1; }));
  }
  ASSERT_TRUE(answered);
  EXPECT_EQ(shown.error().code, ErrorCode::interrupted);
}

TEST(Waiting, IsSharedByThoseWhoWantTheSame) {
  Service service;
  Held held(service);
  std::atomic<int> answered = 0;
  for (int i = 0; i < 20; ++i) {
    held.mount.fs().get_attributes(held.mount.caller, held.slow_file, [&](Result<AttributesReply> result) {
      if (result) ++answered;
    });
  }
  EXPECT_TRUE(eventually([&] { return held.mount.network.held() == 1; }));
  held.mount.network.open();
  EXPECT_TRUE(eventually([&] { return answered == 20; }));
  EXPECT_EQ(held.mount.network.count("/file_chunks/"), 1);
}

TEST(Waiting, IsNotDoneInALookup) {
  Service service;
  Held held(service);
  const Entry entry = held.named("f");
  EXPECT_EQ(entry.attributes.size, kUnknownSize);
  EXPECT_EQ(entry.attributes_timeout, 0);  // so the kernel asks before any process may open it
  EXPECT_EQ(entry.entry_timeout, kEndless);
  EXPECT_EQ(held.mount.network.count("/file_chunks/"), 0);
}

TEST(Waiting, IsRepeatedIfTheKernelWouldDropTheAnswer) {
  Service service;
  Held held(service);
  std::atomic<bool> answered = false;
  Result<AttributesReply> shown;
  held.mount.fs().get_attributes(held.mount.caller, held.slow_file, [&](Result<AttributesReply> result) {
    shown = std::move(result);
    answered = true;
  });
  held.named("f");  // answered after that was requested, so it would count as newer
  held.mount.network.open();
  ASSERT_TRUE(eventually([&] { return answered.load(); }));
  EXPECT_EQ(shown.error().code, ErrorCode::stale);
  EXPECT_EQ(held.named("f").attributes.size, 13U);
  EXPECT_EQ(held.named("f").attributes_timeout, kEndless);
  EXPECT_THAT(*held.mount.read_file(".playfs/errors.ndjson"), Not(HasSubstr("stale")));
}

TEST(SentBack, RemembersAThreadWhileItIsOnItsWay) {
  SentBack sent_back;
  EXPECT_FALSE(sent_back.left(1));
  sent_back.note(1);
  const auto left = sent_back.left(1);
  ASSERT_TRUE(left);
  EXPECT_FALSE(sent_back.left(2));
  // It has not looked this link up, so the kernel does not look again.
  EXPECT_FALSE(sent_back.has_found(1, 7));
  sent_back.found(1, 7);
  EXPECT_TRUE(sent_back.has_found(1, 7));
  EXPECT_FALSE(sent_back.has_found(1, 8));
  // Its request has been answered with no time left; others forget it then.
  sent_back.keep(1, std::chrono::seconds(-1));
  EXPECT_FALSE(sent_back.left(1));
  // However long it waited for us, it goes on with the time that it had.
  sent_back.keep(1, *left);
  EXPECT_TRUE(sent_back.left(1));
  sent_back.forget(1);
  EXPECT_FALSE(sent_back.left(1));
  EXPECT_FALSE(sent_back.has_found(1, 7));
}

/// A lookup alone: whoever needs attributes asks for them.
Entry looked_up(Mounted& mount, NodeId parent, const std::string& name) {
  return await<Entry>([&](auto done) { mount.fs().lookup(mount.caller, parent, name, std::move(done)); }).value();
}

/// Asks for attributes; the answer comes some time later.
struct Asked {
  Asked(Mounted& mount, NodeId node) {
    mount.fs().get_attributes(mount.caller, node, [this](Result<AttributesReply> result) {
      shown = std::move(result);
      answered = true;
    });
  }
  Result<AttributesReply> shown;
  std::atomic<bool> answered = false;
};

TEST(Waiting, SendsAThreadBackOnceOnly) {
  Service service;
  Mounted mount(service);
  ProjectId project = service.project("slow");
  RevisionId revision =
      service.publish(project, {{"f", chunked(service, "one\n")}, {"g", chunked(service, "other\n")}});
  const NodeId directory = mount.walk("projects/" + project.text() + "/revisions/" + revision.text())->node;
  auto crossed = [&](const std::string& name) {
    const NodeId node = looked_up(mount, directory, name).node;
    mount.network.hold("/file_chunks/");
    Asked asked(mount, node);
    EXPECT_TRUE(eventually([&] { return mount.network.held() == 1; }));
    looked_up(mount, directory, name);
    mount.network.open();
    EXPECT_TRUE(eventually([&] { return asked.answered.load(); }));
    return std::move(asked.shown);
  };
  auto first = crossed("f");
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::stale);
  auto second = crossed("g");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->attributes.size, 6U);
}

TEST(Waiting, ForALateDirectoryEndsInTheNodeThatTheKernelKnows) {
  Service service;
  Mounted mount(service);
  ProjectId project = service.project("late");
  const NodeId projects = mount.walk("projects")->node;
  mount.network.hold("/projects/" + project.text());
  const Entry late = looked_up(mount, projects, project.text());
  EXPECT_EQ(late.entry_timeout, 0);
  EXPECT_EQ(late.attributes_timeout, 0);
  // Nobody else waits in a lookup, and all get the same directory.
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(looked_up(mount, projects, project.text()).node, late.node);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  Asked one(mount, late.node), other(mount, late.node);
  EXPECT_FALSE(one.answered || other.answered);
  mount.network.open();
  ASSERT_TRUE(eventually([&] { return one.answered && other.answered; }));
  ASSERT_TRUE(one.shown && other.shown);
  EXPECT_EQ(one.shown->timeout, kEndless);
  const Entry here = looked_up(mount, projects, project.text());
  EXPECT_EQ(here.node, late.node);
  EXPECT_EQ(here.entry_timeout, kEndless);
  EXPECT_NE(looked_up(mount, late.node, "revisions").node, 0U);
}

TEST(Waiting, ForALateNameThatIsNoneEndsInAnError) {
  Service service;
  Mounted mount(service);
  const NodeId projects = mount.walk("projects")->node;
  mount.network.hold("/projects/1m00000000000000dead");
  const Entry late = looked_up(mount, projects, "1m00000000000000dead");
  Asked asked(mount, late.node);
  mount.network.open();
  ASSERT_TRUE(eventually([&] { return asked.answered.load(); }));
  ASSERT_FALSE(asked.shown);
  EXPECT_EQ(asked.shown.error().code, ErrorCode::not_found);
}

TEST(Waiting, IsNotNeededToListADirectory) {
  Service service;
  Held held(service);
  std::vector<std::string> names;
  Entry listed_entry;
  auto room = [&](const DirectoryItem& item) {
    names.push_back(item.name);
    if (item.name == "f") listed_entry = item.entry;
    return true;
  };
  auto listed = await<void>(
      [&](auto done) { held.mount.fs().list(held.mount.caller, held.slow_directory, 0, true, room, std::move(done)); });
  ASSERT_TRUE(listed);
  EXPECT_THAT(names, testing::ElementsAre(".", "..", "f"));
  EXPECT_EQ(listed_entry.node, held.slow_file);
  EXPECT_EQ(listed_entry.attributes_timeout, 0);  // its size is not known; the kernel asks when it needs it
  EXPECT_EQ(held.mount.network.held(), 0);
}

TEST(Away, WhatIsHereIsServedAndTheRestFailsWithAReason) {
  Service service;
  Held held(service);
  held.mount.network.cut();
  EXPECT_EQ(held.mount.read_file(held.quick_file), "quick content\n");
  auto entry = held.mount.lookup(held.slow_directory, "f");
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, ErrorCode::unreachable);
  EXPECT_THAT(*held.mount.read_file(".playfs/errors.ndjson"), HasSubstr("unreachable"));
}

TEST(References, AreCountedAndForgotten) {
  Service service;
  Held held(service);
  Entry first = held.mount.walk(held.quick_file).value();
  Entry second = held.mount.walk(held.quick_file).value();
  EXPECT_EQ(first.node, second.node);
  held.mount.fs().forget(first.node, 2);  // one is left: the fixture has looked it up before
  EXPECT_TRUE(held.mount.read(first.node));
  held.mount.fs().forget(first.node, 1);
  EXPECT_FALSE(held.mount.read(first.node));
  EXPECT_EQ(held.mount.walk(held.quick_file)->attributes.ino, first.attributes.ino);
}

TEST(Growing, FindsWhereNewLinesBegin) {
  EXPECT_EQ(lines_after("", "a\nb\n"), "a\nb\n");
  EXPECT_EQ(lines_after("a\nb\n", "a\nb\nc\n"), "c\n");
  EXPECT_EQ(lines_after("a\nb\n", "b\nc\n"), "c\n");
  EXPECT_EQ(lines_after("a\nb\n", "bb\nb\n"), "");
  EXPECT_EQ(lines_after("a\nb\n", "c\nd\n"), std::nullopt);
}

}  // namespace
}  // namespace playfs::vfs::test
