// Records of every kind: ids are bounded, and records read back as written.
#include "fuzz.h"
#include "wire/json.h"
#include "wire/records.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto json = wire::parse_answer(as_text(data, size));
  if (!json) return 0;
  auto record = wire::decode_record(*json);
  if (!record) return 0;
  FUZZ_CHECK(!record->id.empty() && record->id.size() <= kMaxIdLength);
  auto again = wire::decode_record(wire::encode_record(*record));
  FUZZ_CHECK(again && again->id == record->id && again->fields == record->fields);
  FUZZ_CHECK(again->created_at == record->created_at && again->updated_at == record->updated_at);
  FUZZ_CHECK(again->status == record->status);

  auto project = wire::decode_project(*record);
  FUZZ_CHECK(project && project->latest_revision.text().size() <= kMaxIdLength);
  auto chunk = wire::decode_chunk(*record);
  FUZZ_CHECK(!chunk || chunk->id.text() == record->id);
  auto revision = wire::decode_revision(*record);
  if (!revision) return 0;
  for (const auto& parent : revision->parents) FUZZ_CHECK(!parent.empty() && parent.text().size() <= kMaxIdLength);
  RevisionDraft draft{revision->project,  revision->parents, revision->agent, revision->message,
                      revision->manifest, revision->state,   revision->extra};
  FUZZ_CHECK(json_size(wire::encode_revision_draft(draft)) == wire::to_text(wire::encode_revision_draft(draft)).size());
  return 0;
}
