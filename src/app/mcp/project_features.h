// What `playfs mcp` offers to its client: the tools (tool_list.h), and the project's files and the site's threads as
// resources. Called by mcp::Server, on its lanes.
#pragma once

#include <string>

#include "app/mcp/lane.h"
#include "app/mcp/publishing.h"
#include "app/mcp/talking.h"
#include "app/mcp/workplace.h"
#include "mcp/feature_set.h"

namespace playfs::app {

class ProjectFeatures final : public mcp::Features {
 public:
  /// `context` and `workplace` must outlive it. `agent`: who writes; empty: as configured.
  ProjectFeatures(const CommandContext& context, Workplace& workplace, const std::string& agent, bool is_read_only);

  [[nodiscard]] unsigned lanes() const override { return kLanes; }
  [[nodiscard]] mcp::Turn turn_of(const mcp::Request& request) const override;
  [[nodiscard]] const Json::Array& tools() const override { return tools_; }
  mcp::Answer call(const std::string& tool, const JsonObject& arguments, mcp::Call& call) override;
  [[nodiscard]] const Json::Array& resource_templates() const override { return templates_; }
  Result<mcp::ResourcePage> resources(const std::optional<std::string>& cursor, mcp::Call& call) override;
  Result<JsonObject> resource(const std::string& uri, mcp::Call& call) override;

 private:
  /// Files; the work tree's publisher; what is said; the inbox, which may wait for long.
  enum LaneNumber : unsigned { kFiles, kTree, kTalk, kInbox, kLanes };

  [[nodiscard]] Result<const WorkFiles*> files();
  mcp::Answer list_files(const JsonObject& arguments);
  [[nodiscard]] Result<mcp::Answer> read(const JsonObject& arguments);
  [[nodiscard]] Result<mcp::Answer> write(const JsonObject& arguments);
  [[nodiscard]] Result<mcp::ResourcePage> file_page(const std::string& after);
  [[nodiscard]] Result<mcp::ResourcePage> thread_page();
  [[nodiscard]] Result<JsonObject> file_contents(const std::string& uri, const std::string& path);

  const Json::Array tools_, templates_;
  Workplace& workplace_;
  Lane files_lane_, tree_lane_, talk_lane_, inbox_lane_;
  Publishing publishing_;
  Talking talking_;
  InboxTool inbox_;
};

}  // namespace playfs::app
