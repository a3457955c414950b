#include "service/store_copy.h"

#include "fixture.h"
#include "service/closed_store.h"
#include "service/sqlite_maintenance.h"
#include "service/sqlite_rows.h"

namespace playfs::service {
namespace {

class StoreCopyTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    for (int i = 0; i < 3; ++i) send("POST", "/messages", R"({"body":"x"})", {{"Idempotency-Key", std::to_string(i)}});
    key_of("ann@example.org");
    auto opened = open_sqlite_rows(path);
    ASSERT_TRUE(opened) << opened.error().message;
    from = *std::move(opened);
    auto made = open_sqlite_copy(directory / "copy.db", store->site_id());
    ASSERT_TRUE(made) << made.error().message;
    to = *std::move(made);
  }

  bool can_be_written() { return send("POST", "/messages", "{}").status == 200; }

  const std::string path = directory / "playground.db";
  std::unique_ptr<StoredRows> from, to;
  CopyProgress progress;
};

/// A store in which somebody changes the records whenever they are read, closed or not.
class Restless final : public StoredRows {
 public:
  Restless(StoredRows& store, const std::string& path) : store_(store), path_(path) {}
  Result<StoredSite> site() override { return store_.site(); }
  Result<std::vector<StoredRow>> rows(const StoredTable& table, const StoredRow& after, std::size_t limit) override {
    if (&table == &kRecordTable && after.empty()) {
      PLAYFS_TRY(Database database, Database::open(path_, Database::Durability::normal));
      PLAYFS_CHECK(database.execute("UPDATE records SET updated_at = updated_at + 1"));
    }
    return store_.rows(table, after, limit);
  }
  Status change(const StoredTable& table, const std::vector<StoredRow>& gone,
                const std::vector<StoredRow>& added) override {
    return store_.change(table, gone, added);
  }
  Status set_closed(std::string_view from, std::string_view to) override { return store_.set_closed(from, to); }
  Status finish(const StoredSite& numbers) override { return store_.finish(numbers); }

 private:
  StoredRows& store_;
  const std::string path_;
};

TEST_F(StoreCopyTest, AllRowsAreTheSameAndTheFirstStoreIsClosed) {
  auto copied = copy_store(*from, *to, progress);
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(copied->records, 3u);
  EXPECT_EQ(copied->others, 2u);  // an account and its key
  EXPECT_EQ(copied->changed, 5u);
  EXPECT_EQ(check_store(directory / "copy.db"), 3u);
  EXPECT_FALSE(can_be_written());
  EXPECT_EQ(store->sign_in("bob@example.org", "h").error().code, ErrorCode::busy);
  for (const StoredTable* table : kAllTables) EXPECT_EQ(*from->rows(*table, {}, 10), *to->rows(*table, {}, 10));

  auto again = copy_store(*from, *to, progress);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->is_new);
  ASSERT_TRUE(reopen_store(*from));
  EXPECT_TRUE(can_be_written());
  EXPECT_EQ(copy_store(*from, *to, progress).error().code, ErrorCode::already_exists);
}

TEST_F(StoreCopyTest, AStoreThatIsStillWrittenIsNotFinishedAndOpenedAgain) {
  Restless restless(*from, path);
  auto copied = copy_store(restless, *to, progress);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::busy);
  EXPECT_TRUE(can_be_written());
  EXPECT_EQ(to->site()->closed, kUnfinishedStore);
  EXPECT_EQ(check_store(directory / "copy.db").error().code, ErrorCode::busy);
  EXPECT_EQ(copy_store(*from, *to, progress)->records, 4u);
}

TEST_F(StoreCopyTest, ACopyThatSomebodyElseHasFinishedIsNotChanged) {
  ASSERT_TRUE(to->finish(*from->site()));
  const auto row = from->rows(kRecordTable, {}, 1);
  ASSERT_TRUE(row);
  EXPECT_EQ(to->change(kRecordTable, {}, *row).error().code, ErrorCode::busy);
  EXPECT_TRUE(to->rows(kRecordTable, {}, 10)->empty());
  EXPECT_EQ(to->finish(*from->site()).error().code, ErrorCode::busy);
}

TEST_F(StoreCopyTest, AnErrorWhileItIsClosedOpensTheFirstStore) {
  auto database = Database::open(directory / "copy.db", Database::Durability::normal);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute("DROP TABLE api_keys"));
  EXPECT_FALSE(copy_store(*from, *to, progress));
  EXPECT_TRUE(can_be_written());
}

TEST_F(StoreCopyTest, GoesOnFromAPositionThatNoRecordHasAnyMore) {
  auto database = Database::open(path, Database::Durability::normal);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute("UPDATE sqlite_sequence SET seq = 7"));
  ASSERT_TRUE(copy_store(*from, *to, progress));
  EXPECT_EQ(to->site()->position, 7);
}

}  // namespace
}  // namespace playfs::service
