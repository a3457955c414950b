// playfs logout: forgets the API key of a site.
#include "app/commands/commands.h"
#include "runtime/credentials.h"

namespace playfs::app {

Result<ExitCode> logout(CommandContext& context, const LogoutArguments&) {
  PLAYFS_TRY(runtime::Source site, context.source(Marks::do_not_count));
  bool was_signed_in = false;
  if (site.kind == runtime::Source::Kind::http) {
    PLAYFS_TRY(was_signed_in, runtime::forget_login(site, context.places));
  }
  if (was_signed_in) {
    context.out.note("Forgot the key for " + site.text +
                     ". The service still accepts it: its API has no way to revoke a key.\n"
                     "If others may have it: an account keeps its ten newest keys, so ten logins replace it (playfs "
                     "serve),\nor remove it on the account's own page.");
  } else {
    context.out.note("Nobody is signed in at " + safe(site.text) + " here.");
  }
  context.out.document(JsonObject{{"site", site.text}, {"was_signed_in", was_signed_in}, {"signed_in", false}});
  return ExitCode::done;
}

}  // namespace playfs::app
