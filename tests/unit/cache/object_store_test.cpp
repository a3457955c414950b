#include "cache/object_store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "cache/object_file.h"
#include "support/temporary_directory.h"

namespace playfs::cache {
namespace {

namespace fs = std::filesystem;

std::string varied(std::size_t size, unsigned seed = 1) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>((i + seed) * 2654435761U >> 13));
  return bytes;
}

class ObjectStoreTest : public testing::Test {
 protected:
  void SetUp() override { store_ = fresh_store(); }
  std::unique_ptr<ObjectStore> fresh_store(ObjectStoreOptions options = {}) {
    auto opened = ObjectStore::open(path_, options);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  ObjectPtr put(std::string_view bytes) {
    auto object = store_->put(bytes);
    EXPECT_TRUE(object);
    return object ? *object : nullptr;
  }
  ObjectPtr find(const ContentHash& hash) {
    auto object = store_->find(hash);
    EXPECT_TRUE(object);
    return object ? *object : nullptr;
  }
  std::string file_of(const ContentHash& hash) {
    return path_ + "/" + hash.hex().substr(0, 2) + "/" + hash.hex().substr(2);
  }
  void flip_bit(const std::string& file, std::uint64_t offset) {
    UniqueFd fd(open(file.c_str(), O_RDWR));
    auto byte = read_at(fd.get(), offset, 1);
    ASSERT_TRUE(byte && byte->size() == 1);
    (*byte)[0] = static_cast<char>((*byte)[0] ^ 4);
    ASSERT_TRUE(write_all_at(fd.get(), *byte, offset));
  }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "objects";
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(ObjectStoreTest, GivesBackAnyRange) {
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, kBlockSize, 3 * kBlockSize + 17}) {
    const std::string bytes = varied(size);
    put(bytes);
    ObjectPtr object = fresh_store()->find(ContentHash::of(bytes)).value();
    ASSERT_TRUE(object) << size;
    EXPECT_EQ(object->size(), size);
    for (std::uint64_t offset :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{kBlockSize - 1}, std::uint64_t{kBlockSize},
          std::uint64_t{size}, std::uint64_t{size + 5}, ~std::uint64_t{0}})
      for (std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kBlockSize + 1, ~std::size_t{0}}) {
        auto read = object->read(offset, length);
        ASSERT_TRUE(read);
        EXPECT_EQ(*read, offset < size ? bytes.substr(offset, length) : "") << offset << "+" << length;
      }
  }
}

TEST_F(ObjectStoreTest, CopiesHoldTheContentAndNothingElse) {
  for (std::size_t size : {std::size_t{1}, kBlockSize, kBlockSize + 1, std::size_t{3 << 20}}) {
    const std::string bytes = varied(size);
    const std::string copy = path_ + "-copy" + std::to_string(size);
    UniqueFd fd(open(copy.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    ASSERT_TRUE(put(bytes)->copy_to(fd.get()));
    EXPECT_EQ(read_at(fd.get(), 0, size + 1).value(), bytes);
    // Changing the copy does not change the object.
    ASSERT_TRUE(write_all_at(fd.get(), "!", 0));
    EXPECT_EQ(fresh_store()->find(ContentHash::of(bytes)).value()->read(0, size).value(), bytes);
    fs::remove(copy);
  }
}

TEST_F(ObjectStoreTest, DamagedContentIsNotCopied) {
  const std::string bytes = varied(3 << 20);
  const ContentHash hash = put(bytes)->hash();
  flip_bit(file_of(hash), (2 << 20) + 5);
  const std::string copy = path_ + "-copy";
  UniqueFd fd(open(copy.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  auto copied = find(hash)->copy_to(fd.get());
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::corrupt);
  EXPECT_EQ(find(hash), nullptr);
  fs::remove(copy);
}

TEST_F(ObjectStoreTest, KnowsNothingOfOtherHashes) { EXPECT_EQ(find(ContentHash::of("absent")), nullptr); }

TEST_F(ObjectStoreTest, FilesAreForTheirOwnerAlone) {
  auto object = put("private");
  struct stat attributes {};
  ASSERT_EQ(stat(file_of(object->hash()).c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 07777, 0600U);
  ASSERT_EQ(stat(path_.c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 07777, 0700U);
}

TEST_F(ObjectStoreTest, ADirectoryMadeTooWideIsNarrowed) {
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  store_ = fresh_store();
  struct stat attributes {};
  ASSERT_EQ(stat(path_.c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 07777, 0700U);
}

TEST_F(ObjectStoreTest, AnothersDirectoryIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a directory of somebody else's";
  const std::string foreign = directory_ / "foreign";
  ASSERT_EQ(mkdir(foreign.c_str(), 0777), 0);
  ASSERT_EQ(chown(foreign.c_str(), 12345, 12345), 0);
  auto opened = ObjectStore::open(foreign);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::permission_denied);
}

TEST_F(ObjectStoreTest, SymbolicLinksAreNotFollowed) {
  const auto hash = put("target")->hash();
  fs::rename(file_of(hash), directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", file_of(hash));
  store_ = fresh_store();
  EXPECT_EQ(find(hash), nullptr);
}

TEST_F(ObjectStoreTest, AFlippedBitIsFoundSetAsideAndHealed) {
  const std::string bytes = varied(5 * kBlockSize);
  const auto hash = put(bytes)->hash();
  flip_bit(file_of(hash), 2 * kBlockSize + 100);

  store_ = fresh_store();
  ObjectPtr object = find(hash);
  ASSERT_TRUE(object);
  // Intact blocks can be read, the damaged one never.
  EXPECT_EQ(object->read(0, kBlockSize).value(), bytes.substr(0, kBlockSize));
  auto damaged = object->read(2 * kBlockSize, 1);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::corrupt);
  EXPECT_EQ(find(hash), nullptr);
  EXPECT_TRUE(fs::exists(path_ + "/damaged/" + hash.hex()));

  put(bytes);
  EXPECT_EQ(find(hash)->read(0, bytes.size()).value(), bytes);
}

TEST_F(ObjectStoreTest, ReadingPastADamagedBlockDoesNotReturnItsNeighboursAlone) {
  const std::string bytes = varied(3 * kBlockSize);
  const auto hash = put(bytes)->hash();
  flip_bit(file_of(hash), kBlockSize);
  EXPECT_FALSE(find(hash)->read(0, bytes.size()));
}

TEST_F(ObjectStoreTest, PuttingHealsDamageThatNobodyHasReadYet) {
  const std::string bytes = varied(100);
  const auto hash = put(bytes)->hash();
  flip_bit(file_of(hash), 50);
  put(bytes);
  EXPECT_EQ(fresh_store()->find(hash).value()->read(0, 100).value(), bytes);
}

TEST_F(ObjectStoreTest, TornFilesAreNotFound) {
  const std::string bytes = varied(3 * kBlockSize);
  const auto hash = put(bytes)->hash();
  for (std::uintmax_t size : {std::uintmax_t{0}, std::uintmax_t{100}, std::uintmax_t{2 * kBlockSize}}) {
    fs::resize_file(file_of(hash), size);
    store_ = fresh_store();
    EXPECT_EQ(find(hash), nullptr) << size;
    put(bytes);
  }
  // Cut off while open: a read must not come back short.
  ObjectPtr object = find(hash);
  fs::resize_file(file_of(hash), kBlockSize + 10);
  EXPECT_EQ(object->read(0, bytes.size()).error().code, ErrorCode::corrupt);
}

TEST_F(ObjectStoreTest, AHealthyFileOfAnotherProcessIsNotSetAside) {
  const std::string bytes = varied(100);
  ObjectPtr object = put(bytes);
  // The open file is damaged; another process has already replaced it by an intact one.
  const std::string file = file_of(object->hash());
  fs::copy_file(file, file + ".whole");
  flip_bit(file, 10);
  fs::rename(file + ".whole", file);
  EXPECT_FALSE(object->read(0, 100));
  ASSERT_TRUE(find(object->hash()));
  EXPECT_EQ(find(object->hash())->read(0, 100).value(), bytes);
}

TEST_F(ObjectStoreTest, TheDirectoryMayBeDeletedUnderneath) {
  const std::string bytes = varied(1000);
  ObjectPtr object = put(bytes);
  fs::remove_all(path_);
  EXPECT_EQ(object->read(0, 1000).value(), bytes) << "an open object stays readable";
  put(bytes);
  put("more");
  store_ = fresh_store();
  EXPECT_TRUE(find(ContentHash::of(bytes))) << "put writes again what was deleted";
  EXPECT_TRUE(find(ContentHash::of("more")));
}

TEST_F(ObjectStoreTest, WithoutRoomOnTheDiskObjectsLiveInMemory) {
  // The file size limit simulates a full disk: with SIGXFSZ ignored, write(2) fails with EFBIG.
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string bytes = varied(20'000);
  auto object = store_->put(bytes);
  auto again = store_->find(ContentHash::of(bytes));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  ASSERT_TRUE(object && *object);
  EXPECT_EQ((*object)->read(0, bytes.size()).value(), bytes);
  ASSERT_TRUE(again && *again) << "a read that is tried again must find it";
  EXPECT_FALSE(fs::exists(file_of(ContentHash::of(bytes)))) << "nothing half written is left";
  EXPECT_TRUE(fs::is_empty(path_ + "/scratch"));
}

TEST_F(ObjectStoreTest, ObjectsInMemoryAreBounded) {
  fs::remove_all(path_);
  std::ofstream(path_) << "in the way";  // nothing can be written
  store_ = nullptr;
  auto blocked = ObjectStore::open(path_);
  EXPECT_FALSE(blocked);
  auto without = ObjectStore::open(path_, {.needs_directory = false});
  ASSERT_TRUE(without);
  EXPECT_EQ((*without)->put("bytes").value()->read(0, 5).value(), "bytes");
  EXPECT_TRUE((*without)->find(ContentHash::of("bytes")).value_or(nullptr));
  EXPECT_TRUE((*without)->trouble());
  fs::remove(path_);
  store_ = fresh_store({.open_files = 4, .memory = 1000});
  fs::remove_all(path_);
  std::ofstream(path_) << "in the way";
  const auto first = put(varied(600, 1))->hash();
  const auto second = put(varied(600, 2))->hash();
  EXPECT_EQ(store_->find(first).value_or(nullptr), nullptr);
  EXPECT_TRUE(find(second));
  fs::remove(path_);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(ObjectStoreTest, DescriptorsAreBounded) {
  store_ = fresh_store({.open_files = 8, .memory = 1000});
  const std::size_t before = open_descriptors();
  for (unsigned i = 0; i < 100; ++i) put(varied(50, i));
  EXPECT_LE(open_descriptors(), before + 8);
}

TEST_F(ObjectStoreTest, ManyThreadsAndTwoStoresAgree) {
  auto other = fresh_store();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      ObjectStore& store = t % 2 ? *store_ : *other;
      for (unsigned i = 0; i < 40; ++i) {
        const std::string bytes = varied(10'000 + i, i);
        auto object = store.put(bytes);
        if (!object || (*object)->read(0, bytes.size()).value_or("") != bytes) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(fs::exists(path_ + "/damaged"));
}

TEST_F(ObjectStoreTest, AbandonedFilesAreSweptAndYoungOnesAreNot) {
  put("anything");
  const std::string old_file = path_ + "/scratch/old", young_file = path_ + "/scratch/young";
  std::ofstream(old_file) << "half";
  std::ofstream(young_file) << "half";
  fs::last_write_time(old_file, fs::file_time_type::clock::now() - std::chrono::hours(48));
  store_ = fresh_store();
  EXPECT_FALSE(fs::exists(old_file));
  EXPECT_TRUE(fs::exists(young_file));
}

}  // namespace
}  // namespace playfs::cache
