// Nothing here blocks: an operation that must wait returns at once, others go on, and it can be interrupted.
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rig.h"
#include "vfs/growing_file.h"

namespace playfs::vfs::test {
namespace {

using testing::HasSubstr;

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
    // The size of a stranger's file is known with its content.
    slow_directory = mount.walk("projects/" + slow.text() + "/revisions/" + slow_revision.text())->node;
    mount.walk(quick_file).value();
    mount.road.hold("/file_chunks/");
  }
  Mounted mount;
  std::string quick_file;
  NodeId slow_directory = 0;
};

TEST(Waiting, IsNotDoneOnTheThreadThatAsks) {
  Service service;
  Held held(service);
  std::atomic<bool> answered = false;
  Result<Entry> entry;
  held.mount.fs().lookup(held.mount.caller, held.slow_directory, "f", [&](Result<Entry> result) {
    entry = std::move(result);
    answered = true;
  });
  EXPECT_TRUE(eventually([&] { return held.mount.road.held() == 1; }));
  EXPECT_FALSE(answered);
  EXPECT_EQ(held.mount.read_file(held.quick_file), "quick content\n");
  EXPECT_FALSE(answered);
  held.mount.road.open();
  ASSERT_TRUE(eventually([&] { return answered.load(); }));
  ASSERT_TRUE(entry);
  EXPECT_EQ(held.mount.read(entry->node), "slow content\n");
}

TEST(Waiting, EndsWhenInterrupted) {
  Service service;
  Held held(service);
  CancelSource interrupt;
  Caller caller = held.mount.caller;
  caller.cancel = interrupt.token();
  std::atomic<bool> answered = false;
  Result<Entry> entry;
  held.mount.fs().lookup(caller, held.slow_directory, "f", [&](Result<Entry> result) {
    entry = std::move(result);
    answered = true;
  });
  EXPECT_TRUE(eventually([&] { return held.mount.road.held() == 1; }));
  interrupt.cancel();
  ASSERT_TRUE(eventually([&] { return answered.load(); }));
  EXPECT_EQ(entry.error().code, ErrorCode::interrupted);
}

TEST(Waiting, EndsWithTheMount) {
  Service service;
  std::atomic<bool> answered = false;
  Result<Entry> entry;
  {
    Held held(service);
    held.mount.fs().lookup(held.mount.caller, held.slow_directory, "f", [&](Result<Entry> result) {
      entry = std::move(result);
      answered = true;
    });
    EXPECT_TRUE(eventually([&] { return held.mount.road.held() == 1; }));
  }
  ASSERT_TRUE(answered);
  EXPECT_EQ(entry.error().code, ErrorCode::interrupted);
}

TEST(Waiting, IsSharedByThoseWhoWantTheSame) {
  Service service;
  Held held(service);
  std::atomic<int> answered = 0;
  for (int i = 0; i < 20; ++i) {
    held.mount.fs().lookup(held.mount.caller, held.slow_directory, "f", [&](Result<Entry> result) {
      if (result) ++answered;
    });
  }
  EXPECT_TRUE(eventually([&] { return held.mount.road.held() == 1; }));
  held.mount.road.open();
  EXPECT_TRUE(eventually([&] { return answered == 20; }));
  EXPECT_EQ(held.mount.road.count("/file_chunks/"), 1);
}

TEST(Waiting, IsNotNeededToListADirectory) {
  Service service;
  Held held(service);
  std::vector<std::string> names;
  bool with_entry = false;
  auto room = [&](const DirectoryItem& item) {
    names.push_back(item.name);
    with_entry |= item.entry.node != 0;
    return true;
  };
  auto listed = await<void>(
      [&](auto done) { held.mount.fs().list(held.mount.caller, held.slow_directory, 0, true, room, std::move(done)); });
  ASSERT_TRUE(listed);
  EXPECT_THAT(names, testing::ElementsAre(".", "..", "f"));
  EXPECT_FALSE(with_entry);  // its size is not here; the kernel asks for it when it needs it
  EXPECT_EQ(held.mount.road.held(), 0);
}

TEST(Away, WhatIsHereIsServedAndTheRestFailsWithAReason) {
  Service service;
  Held held(service);
  held.mount.road.close_for_good();
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
  held.mount.fs().forget(first.node, 2);  // one is left: the rig has looked it up before
  EXPECT_TRUE(held.mount.read(first.node));
  held.mount.fs().forget(first.node, 1);
  EXPECT_FALSE(held.mount.read(first.node));
  EXPECT_EQ(held.mount.walk(held.quick_file)->attributes.ino, first.attributes.ino);
}

TEST(Growing, FindsTheSeam) {
  EXPECT_EQ(lines_after("", "a\nb\n"), "a\nb\n");
  EXPECT_EQ(lines_after("a\nb\n", "a\nb\nc\n"), "c\n");
  EXPECT_EQ(lines_after("a\nb\n", "b\nc\n"), "c\n");
  EXPECT_EQ(lines_after("a\nb\n", "bb\nb\n"), "");
  EXPECT_EQ(lines_after("a\nb\n", "c\nd\n"), std::nullopt);
}

}  // namespace
}  // namespace playfs::vfs::test
