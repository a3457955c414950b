#include "service/record_check.h"

#include <string>

#include "model/json.h"
#include "service/collections.h"
#include "service/record_text.h"
#include "wire/json.h"

namespace playfs::service {

Status check_record(const RecordRow& row, std::int64_t previous_time) {
  std::string name = "record " + std::string(row.id);
  if (row.created_at <= previous_time) return fail(ErrorCode::corrupt, name + " is older than the one before it");
  if (row.updated_at < row.created_at) return fail(ErrorCode::corrupt, name + " was changed before it was created");
  const Collection* collection = find_collection(row.collection);
  if (!collection) return fail(ErrorCode::corrupt, name + " is in no collection");
  auto fields = wire::parse_json(row.fields);
  if (!fields || !fields->object()) return fail(ErrorCode::corrupt, name + " is not a JSON object");
  if (row.belongs_to != belonging(*collection, *fields->object()))
    return fail(ErrorCode::corrupt, name + " is filed under the wrong project or thread");
  return {};
}

}  // namespace playfs::service
