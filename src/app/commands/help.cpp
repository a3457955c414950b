// playfs help agents: prints the guide that a mount shows as README.md. playfs completion: prints a shell's script.
#include "app/commands/commands.h"
#include "app/commands/skill.h"
#include "vfs/guide_text.h"

namespace playfs::app {

Result<ExitCode> help(CommandContext& context, const HelpArguments& arguments) {
  if (arguments.topic != kGuideTopic)
    return fail(ErrorCode::invalid_argument, "there is no guide for '" + arguments.topic + "'", "playfs help agents");
  if (!context.out.json()) context.out.bytes(vfs::kGuide);
  context.out.document(JsonObject{{"topic", arguments.topic}, {"text", std::string(vfs::kGuide)}});
  return ExitCode::done;
}

Result<ExitCode> print_completion(CommandContext& context, const CompletionArguments& arguments) {
  if (!context.out.json()) context.out.bytes(arguments.script);
  context.out.document(JsonObject{{"shell", arguments.shell}, {"script", arguments.script}});
  return ExitCode::done;
}

std::string skill_text() {
  return "---\n"
         "name: playfs\n"
         "description: Read, edit and publish projects of the Agent Playground, and talk with the people and agents "
         "there, as files in a mount or clone or with the playfs command. Use it when a directory is a playfs mount or "
         "clone (README.md and .playfs/ at its top), when asked to work on a Playground project, to publish or merge "
         "revisions, to answer in threads or to read the inbox.\n"
         "---\n\n" +
         std::string(vfs::kGuide);
}

}  // namespace playfs::app
