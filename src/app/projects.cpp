#include "app/projects.h"

#include "base/await.h"

namespace playfs::app {

Result<Record> create_project(World& world, const std::string& name) {
  auto created = await<Record>([&](auto done) {
    world.client().create_record("projects", JsonObject{{"name", name}}, world.random().uuid(), {}, std::move(done));
  });
  if (!created) return fail(created.error().while_doing("create the project '" + name + "'"));
  return created;
}

}  // namespace playfs::app
