// The operations log on a faulty disk: records are appended as the input says, then bytes of the files are changed.
// What is read is a prefix of what was written, and nothing else.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"
#include "fuzz.h"
#include "stage/store/operations_log.h"
#include "support/temporary_directory.h"

using namespace playfs;
using namespace playfs::stage;

namespace {

constexpr std::uint64_t kStage = 0x706c617966730001;

/// Arbitrary bytes: each byte belongs to a record or is torn, and salvaging misses no record.
void check_bytes(std::string_view bytes) {
  for (auto stage : {std::optional(kStage), std::optional<std::uint64_t>()}) {
    const LogContent content = OperationsLog::parse(bytes, stage);
    std::size_t accounted = content.torn;
    for (const auto& record : content.records) accounted += 32 + record.payload.size();
    FUZZ_CHECK(accounted == bytes.size());
    for (std::size_t i = 1; i < content.records.size(); ++i)
      FUZZ_CHECK(content.records[i].number == content.records[i - 1].number + 1);
    const auto salvaged = OperationsLog::salvage(bytes, stage);
    FUZZ_CHECK(salvaged.size() >= content.records.size());
    for (std::size_t i = 0; i < content.records.size(); ++i)
      FUZZ_CHECK(salvaged[i].number == content.records[i].number && salvaged[i].payload == content.records[i].payload);
  }
}

/// Changes bytes of a file; true if any byte may have changed.
bool damage(std::string& bytes, Input& input) {
  const auto kind = input.byte() % 5;
  const std::size_t at = input.below(bytes.size() + 1), count = input.below(600);
  switch (kind) {
    case 0: bytes.resize(at); return true;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 + count % 255));
      return true;
    case 2:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::min(count, bytes.size() - at), '\0');
      return true;
    case 3: bytes.insert(at, input.bytes(count)); return true;
    default: bytes.insert(at, bytes.substr(input.below(bytes.size() + 1), count)); return true;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto directory = test::TemporaryDirectory::in_memory();
  Input input(data, size);
  if (input.byte() == 0) {
    check_bytes(input.rest());
    return 0;
  }
  auto log = OperationsLog::open(directory.path(), kStage);
  FUZZ_CHECK(log && (*log)->start(1));
  std::vector<std::string> written;
  std::uint64_t checkpointed = 0;
  for (int steps = input.byte() % 16; steps > 0; --steps) {
    const auto step = input.byte();
    if (step % 8 == 7) {
      auto records = (*log)->begin_checkpoint();
      FUZZ_CHECK(records);
      if (records->empty()) continue;
      FUZZ_CHECK(records->front().number == checkpointed + 1);
      for (const auto& record : *records) FUZZ_CHECK(record.payload == written[record.number - 1]);
      if ((step & 8) == 0) continue;  // the same ones are reused
      checkpointed = records->back().number;
      FUZZ_CHECK((*log)->end_checkpoint());
    } else {
      if (step % 8 == 6) FUZZ_CHECK((*log)->sync());
      written.emplace_back(input.field());
      if (step & 8) written.back().resize(written.back().size() + step * 8, '\0');
      FUZZ_CHECK((*log)->append(written.back()));
    }
  }
  log->reset();

  const bool is_damaged = !input.empty();
  for (const char* name : OperationsLog::kFiles) {
    UniqueFd file(::open((directory.path() + name).c_str(), O_RDWR | O_CLOEXEC));
    struct stat attributes {};
    FUZZ_CHECK(file && fstat(file.get(), &attributes) == 0);
    auto bytes = read_at(file.get(), 0, static_cast<std::size_t>(attributes.st_size));
    FUZZ_CHECK(bytes);
    for (int times = input.byte() % 4; times > 0 && !input.empty(); --times) damage(*bytes, input);
    check_bytes(*bytes);
    FUZZ_CHECK(ftruncate(file.get(), 0) == 0 && write_all_at(file.get(), *bytes, 0));
  }
  log = OperationsLog::open(directory.path(), kStage);
  FUZZ_CHECK(log);
  auto found = (*log)->read(checkpointed);
  FUZZ_CHECK(found);
  FUZZ_CHECK(checkpointed + found->records.size() <= written.size());
  for (std::size_t i = 0; i < found->records.size(); ++i) {
    FUZZ_CHECK(found->records[i].number == checkpointed + i + 1);
    FUZZ_CHECK(found->records[i].payload == written[checkpointed + i]);
  }
  if (!is_damaged) {
    FUZZ_CHECK(checkpointed + found->records.size() == written.size());
    FUZZ_CHECK(found->torn == 0 && !found->is_damaged && !found->has_changed_last);
  }
  return 0;
}
