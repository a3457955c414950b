#include "app/projects.h"

#include "app/sending.h"

namespace playfs::app {

Result<Record> create_project(runtime::ClientStack& stack, const std::string& name) {
  return create_record(stack, {"projects", "create the project '" + name + "'", "playfs ls"},
                       JsonObject{{"name", name}});
}

}  // namespace playfs::app
