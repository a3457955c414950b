// Sending the chunks of a publication, several at a time. Blocking; for a thread that may wait.
#pragma once

#include <functional>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "content/site.h"
#include "publish/journal.h"

namespace playfs::publish {

/// Told of chunks that were stored, `chunk` set, as they come in. An error ends the sending.
using Acknowledged = std::function<Status(const std::vector<Upload>&)>;

/// Sends every upload that has no chunk yet, at most `parallel` at once, each under its own key; what was stored the
/// site learns, so that nobody has to fetch what was here. Returns when none is
/// outstanding. After an error nothing new is sent, what is outstanding is still taken in, and the error is returned;
/// of several errors one that will not heal.
Status send_uploads(content::Site& site, const std::vector<Upload>& uploads, std::size_t parallel,
                    const CancelToken& cancel, const Acknowledged& acknowledged);

/// Fetches chunks, at most `parallel` at once. Fails if one of them does.
Result<std::vector<FileChunk>> fetch_chunks(remote::Client& client, const std::vector<ChunkId>& ids,
                                            std::size_t parallel, const CancelToken& cancel);

}  // namespace playfs::publish
