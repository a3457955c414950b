#include <atomic>
#include <thread>

#include "fixture.h"
#include "service/sqlite_maintenance.h"

namespace playfs::service {
namespace {

class MaintenanceTest : public ServiceTest {
 protected:
  const std::string path = directory / "playground.db";

  void break_store(const std::string& sql) {
    auto database = Database::open(path, Database::Durability::normal);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute(sql));
  }
};

TEST_F(MaintenanceTest, ACopyTakenWhileOthersWriteIsWhole) {
  for (int i = 0; i < 50; ++i) send("POST", "/messages", "{}");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) send("POST", "/messages", R"({"body":"later"})");
  });
  auto copied = back_up_store(path, directory / "copy.db");
  stop = true;
  writer.join();
  ASSERT_TRUE(copied) << copied.error().message;
  auto count = check_store(directory / "copy.db");
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_GE(*count, 50u);

  auto opened = SqliteStore::open(directory / "copy.db", Database::Durability::normal, clock, random);
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->site_id(), store->site_id());
  EXPECT_EQ((*opened)->list("messages", 100, kNewest)->records.size(), std::min<std::size_t>(*count, 100));
}

TEST_F(MaintenanceTest, NothingIsOverwrittenAndNothingIsMadeUp) {
  ASSERT_TRUE(back_up_store(path, directory / "copy.db"));
  auto again = back_up_store(path, directory / "copy.db");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::already_exists);
  EXPECT_EQ(back_up_store(directory / "none.db", directory / "other.db").error().code, ErrorCode::not_found);
  EXPECT_EQ(check_store(directory / "none.db").error().code, ErrorCode::not_found);
}

TEST_F(MaintenanceTest, AHealthyStoreIsCounted) {
  for (const auto& collection : all_collections()) send("POST", "/" + std::string(collection.name), "{}");
  EXPECT_EQ(check_store(path), 8u);
}

TEST_F(MaintenanceTest, FindsWhatIsBroken) {
  for (int i = 0; i < 3; ++i) send("POST", "/messages", "{}");
  for (const char* damage :
       {"UPDATE records SET fields = '{\"a\":' WHERE position = 2",
        "UPDATE records SET fields = '[]' WHERE position = 2", "UPDATE records SET created_at = 5 WHERE position = 2",
        "UPDATE records SET updated_at = 5 WHERE position = 2",
        "UPDATE records SET belongs_to = 'another' WHERE position = 2",
        "UPDATE records SET collection = 'none' WHERE position = 2"}) {
    break_store("CREATE TABLE kept AS SELECT * FROM records");
    break_store(damage);
    auto found = check_store(path);
    ASSERT_FALSE(found) << damage;
    EXPECT_EQ(found.error().code, ErrorCode::corrupt) << damage;
    break_store("DELETE FROM records; INSERT INTO records SELECT * FROM kept; DROP TABLE kept");
    EXPECT_EQ(check_store(path), 3u);
  }
}

}  // namespace
}  // namespace playfs::service
