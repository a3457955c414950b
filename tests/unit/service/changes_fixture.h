// A store whose changes are looked at. Other stores on the same file stand for other processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fixture.h"

namespace playfs::service {

using Ids = std::vector<std::string>;

class ChangesTest : public testing::Test {
 protected:
  void SetUp() override { store = open(); }

  std::unique_ptr<SqliteStore> open() {
    auto opened = SqliteStore::open(directory / "s.db", Database::Durability::normal, clock, random);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }

  static StoredRecord add(Store& to, const std::string& collection = "messages", const std::string& whole = {}) {
    auto created = to.insert({collection, {"{}", whole}, {}, {}, std::nullopt});
    EXPECT_TRUE(created);
    return created ? *created : StoredRecord();
  }

  static StoredRecord touch(Store& in, const StoredRecord& record, const std::string& collection = "messages") {
    auto replaced = in.replace(collection, record, {"{}", {}}, std::nullopt);
    EXPECT_TRUE(replaced && *replaced);
    return replaced && *replaced ? **replaced : StoredRecord();
  }

  static std::vector<std::string> ids(Store& of, Position after = 0, std::size_t limit = 1000) {
    std::vector<std::string> found;
    auto changes = of.changes(after, limit);
    EXPECT_TRUE(changes);
    if (changes)
      for (const Change& each : *changes) found.push_back(each.id);
    return found;
  }

  test::TemporaryDirectory directory;
  SystemClock clock;
  SystemRandom random;
  std::unique_ptr<SqliteStore> store;
};

}  // namespace playfs::service
