// Attempts at single records of the service's collections.
//
// Records come from strangers and may have megabytes: only what `reduce` returns is kept of them, and unusually large
// ones are parsed on threads of their own.
#pragma once

#include <string>
#include <vector>

#include "content/site.h"
#include "vfs/attempt.h"
#include "vfs/shown_text.h"

namespace playfs::vfs {

class Mount;
using content::RecordPartPtr;

/// What `reduce` returns for the service's current record, requested once per operation. If a copy is known, the wait
/// is short.
Attempt<RecordPartPtr> part_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                 const std::string& id, content::Reduce reduce);
/// The same for the record as last seen; requested only if it is not stored.
Attempt<RecordPartPtr> known_part(Mount& mount, const OperationPtr& op, const std::string& collection,
                                  const std::string& id, content::Reduce reduce);
/// The same for several current records, in the order of `ids`; those that the service does not have are omitted. None
/// is parsed on the calling thread.
Attempt<std::vector<RecordPartPtr>> parts_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                               const std::vector<std::string>& ids, content::Reduce reduce);
/// The same for several records as last seen; only those that are not stored are requested.
Attempt<std::vector<RecordPartPtr>> known_parts(Mount& mount, const OperationPtr& op, const std::string& collection,
                                                const std::vector<std::string>& ids, content::Reduce reduce);
/// The same for a record that the caller has.
void make_part(Mount& mount, content::RecordTextPtr text, content::Reduce reduce, const CancelToken& cancel,
               Callback<RecordPartPtr> done);
/// The text of a part as files show it.
ShownText shown_text_of(Mount& mount, const std::string& collection, const std::string& id, content::Reduce reduce,
                        const content::RecordPart& part);

}  // namespace playfs::vfs
