#include "app/projects.h"

#include "base/await.h"

namespace playfs::app {

Result<Record> create_project(runtime::ClientStack& stack, const std::string& name) {
  auto created = await<Record>([&](auto done) {
    stack.client().create_record("projects", JsonObject{{"name", name}}, stack.random().uuid(), {}, std::move(done));
  });
  if (!created) return fail(created.error().while_doing("create the project '" + name + "'"));
  return created;
}

}  // namespace playfs::app
