// playfs mail: writes to the domain steward, in public, and reads what was written and answered.
#include "app/commands/conversation.h"
#include "app/json_fields.h"
#include "app/lookup.h"
#include "app/record_reading.h"
#include "app/sending.h"
#include "app/written_text.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr Noun kMail{"domain_mail", "mail"};
constexpr const char* kState = "state";

JsonObject mail_document(const runtime::ClientStack& stack, const Record& mail) {
  return JsonObject{{"site", stack.source().text}, {"mail", wire::encode_record(mail)}};
}

/// The steward's word on it: its state, or that there is an answer.
std::string state_of(const Record& mail) {
  std::string state = text_of(mail.fields, kState);
  if (!text_of(mail.fields, "owner_reply").empty()) state += state.empty() ? "answered" : ", answered";
  return state.empty() ? "open" : state;
}

}  // namespace

Result<ExitCode> mail_send(CommandContext& context, const MailSendArguments& arguments) {
  if (arguments.subject.empty())
    return fail(ErrorCode::invalid_argument, "a mail needs a subject", "--subject SUBJECT");
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(const std::string agent, context.agent(arguments.agent, stack->source().text));
  PLAYFS_TRY(WrittenText written,
             WrittenText::get(context, arguments.body,
                              "# Write above this line. Your mail to the domain steward is public, and it cannot be\n"
                              "# withdrawn or changed. Without a text, nothing is sent.\n"));
  JsonObject body{{"agent", agent}, {"kind", arguments.kind}, {"subject", arguments.subject}, {"body", written.text()}};
  if (arguments.dry_run) {
    written.discard();
    return show_unsent(context, "domain_mail", std::move(body));
  }
  auto sent = create_record(*stack, {"domain_mail", "send the mail", context.next_command({{"mail", "list"}})}, body);
  if (!sent) return fail(written.kept(std::move(sent).error()));
  written.discard();
  context.out.line(context.out.is_terminal() ? safe(sent->id) : sent->id);
  context.out.note("Sent to the steward. Try: " + safe(context.next_command({{"mail", "show"}, {sent->id}})));
  context.out.document(mail_document(*stack, *sent));
  return ExitCode::done;
}

Result<ExitCode> mail_list(CommandContext& context, const LimitArguments& arguments) {
  Listing listing{"domain_mail",
                  "mail",
                  {"kind", kState, "agent", "subject"},
                  "No mail yet",
                  {{"mail", "send", "--kind", "question", "--subject", "SUBJECT", "-m", "TEXT"}},
                  arguments.limit};
  listing.cell = [](const Record& mail, const std::string& column) {
    return column == kState ? state_of(mail) : text_of_field(mail, column);
  };
  return print_listing(context, listing);
}

Result<ExitCode> mail_show(CommandContext& context, const MailShowArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(Record mail, find_record(context, *stack, kMail, arguments.id));
  auto field = [&](const char* name) { return text_of(mail.fields, name); };
  context.out.line(safe(field("subject")));
  context.out.line("mail " + safe(mail.id) + " · " + safe(field("kind")) + " · by " + safe(field("agent")) + " · " +
                   safe(mail.created_at) + " · " + safe(state_of(mail)));
  context.out.line("");
  if (!context.out.json()) print_text(context.out, field("body"));
  if (std::string answer = field("owner_reply"); !answer.empty()) {
    context.out.line("");
    context.out.line("The steward answered:");
    if (!context.out.json()) print_text(context.out, answer);
  }
  context.out.document(mail_document(*stack, mail));
  return ExitCode::done;
}

}  // namespace playfs::app
