#include "app/command_context.h"

#include <unistd.h>

#include "app/author.h"
#include "app/mounted.h"
#include "runtime/local_playground.h"

namespace playfs::app {

Result<runtime::Source> CommandContext::source(Marks marks) const {
  using Layer = runtime::Settings::Layer;
  if (auto flag = settings.text_of(Layer::flag, "site")) return source(*flag);
  auto place = find_mount(io.directory);
  if (place && *place) return source((*place)->source);
  if (!place && place.error().code == ErrorCode::timed_out) return fail(std::move(place).error());
  // Takes precedence over PLAYFS_SITE: a tree belongs to the service that it came from, and on another one its project
  // would be a different project.
  if (auto mark = marks == Marks::count ? find_mark(io.directory) : std::nullopt) return source(*mark);
  return source(settings.text("site").value_or(std::string(runtime::kDefaultSource)));
}

Result<runtime::Source> CommandContext::source(const TreeOrigin& origin) const {
  auto found =
      origin.base_path.empty() ? source(origin.site) : runtime::parse_source(origin.site, origin.base_path, places, io);
  // Does not create a playground just because a tree's mark names one: the tree may be a stranger's.
  if (found && found->kind == runtime::Source::Kind::embedded &&
      access((found->directory + "/" + std::string(runtime::LocalPlayground::kStoreFile)).c_str(), F_OK) != 0)
    return fail(ErrorCode::not_found,
                "this tree is of the local playground " + found->directory + ", which is not there",
                "name another with --site");
  return found;
}

Result<runtime::Source> CommandContext::source(const std::string& text) const {
  // Settings are stored by the service's canonical name, which is only known after parsing.
  PLAYFS_TRY(runtime::Source plain, runtime::parse_source(text, settings.text("base_path"), places, io));
  auto base_path = settings.text("base_path", plain.text);
  if (!base_path || base_path == plain.base_path) return plain;
  return runtime::parse_source(text, base_path, places, io);
}

OpenStack::OpenStack(std::unique_ptr<runtime::ClientStack> stack, Output& out) : stack_(std::move(stack)) {
  progress_ = std::make_unique<TransferProgress>([used = stack_.get()] { return used->site().bytes_arrived(); });
  auto words = [used = stack_.get(), progress = progress_.get()] {
    const auto waiting = used->client().unanswered().value_or(remote::Unanswered());
    const std::string wait = words_for_wait(used->source().text, waiting.what, waiting.waited, waiting.left);
    return wait.empty() ? progress->words() : wait;
  };
  auto news = [used = stack_.get(), waits = LongWaits()]() mutable {
    const auto waiting = used->client().unanswered().value_or(remote::Unanswered());
    return waits.news(used->source().text, waiting.what, waiting.waited, waiting.left);
  };
  waiting_ = std::make_unique<ShownProgress>(out, kLookAtWaitEvery, std::move(words), std::move(news));
}

Result<OpenStack> CommandContext::open_client_stack(Marks marks) const {
  PLAYFS_TRY(const runtime::Source chosen, source(marks));
  return open_client_stack(chosen);
}

Result<OpenStack> CommandContext::open_to_look(Marks marks) const {
  // Twice the time that a connection may take.
  constexpr std::chrono::seconds longest_look{20};
  PLAYFS_TRY(auto stack, open_client_stack(marks));
  stack->client().set_longest_read(longest_look);
  return stack;
}

Result<OpenStack> CommandContext::open_client_stack(const runtime::Source& chosen) const {
  PLAYFS_TRY(auto stack, runtime::ClientStack::open(chosen, settings, places, io.clock, io.random));
  return OpenStack(std::move(stack), out);
}

Result<std::string> CommandContext::agent(const std::optional<std::string>& given, const std::string& site) const {
  if (given) return *given;
  PLAYFS_TRY(Author author, author_here(*this, site));
  return std::move(author.handle);
}

std::string CommandContext::next_command(ShellCommand command) const {
  command.words.insert(command.words.begin(), "playfs");
  if (auto flag = settings.text_of(runtime::Settings::Layer::flag, "site"))
    command.options.insert(command.options.end(), {"--site", *flag});
  return shell_line(command);
}

}  // namespace playfs::app
