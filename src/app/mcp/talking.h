// The tools `talk` and `inbox`, and reading threads. Each object is for one lane's thread.
//
// What others wrote is shown with "| " before each line, so that none of it can pass for the tool's own words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "app/inbox_source.h"
#include "app/mcp/lane.h"
#include "app/mcp/workplace.h"
#include "mcp/feature_set.h"

namespace playfs::app {

class Talking {
 public:
  Talking(Lane& lane, Workplace& workplace) : lane_(lane), workplace_(workplace) {}

  mcp::Answer talk(const JsonObject& arguments);
  mcp::Answer list_threads();
  mcp::Answer read_thread(const std::string& id_or_title);
  /// A thread as text. Older messages are left out if there are more than `most` bytes.
  [[nodiscard]] Result<std::string> thread_text(const std::string& id_or_title, std::size_t most);
  /// The newest threads.
  [[nodiscard]] Result<std::vector<Record>> newest_threads();
  /// A file of a published revision; "": the latest one.
  [[nodiscard]] Result<std::string> published_file(const std::string& revision, const std::string& path);

 private:
  [[nodiscard]] Result<mcp::Answer> send(const JsonObject& arguments);
  [[nodiscard]] Result<runtime::ClientStack*> stack();
  /// Whether the mount or the clone hides that file of a revision.
  [[nodiscard]] Result<bool> is_hidden(runtime::ClientStack& service, const RevisionTreePtr& tree,
                                       const std::string& path);

  Lane& lane_;
  Workplace& workplace_;
  const FoundWork* found_ = nullptr;
  OpenStack stack_;
};

class InboxTool {
 public:
  InboxTool(Lane& lane, Workplace& workplace) : lane_(lane), workplace_(workplace) {}

  mcp::Answer read(const JsonObject& arguments, mcp::Call& call);

 private:
  [[nodiscard]] Result<mcp::Answer> look(const JsonObject& arguments, mcp::Call& call);
  [[nodiscard]] Status open();
  [[nodiscard]] Status mark(const std::vector<std::string>& seen);
  [[nodiscard]] std::string shown(const InboxItem& item);

  Lane& lane_;
  Workplace& workplace_;
  std::optional<InboxFound> inbox_;
};

}  // namespace playfs::app
