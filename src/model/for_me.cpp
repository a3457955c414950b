#include "model/for_me.h"

#include <algorithm>

#include "model/mentions.h"

namespace playfs {
namespace {

std::string_view text_in(const Record& record, std::string_view name) {
  const Json* value = record.fields.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}

/// Some clients write the "@", too.
bool names(const Json& mention, std::string_view me) {
  const std::string* text = mention.string();
  if (!text) return false;
  std::string_view handle = *text;
  return handle == me || (handle.starts_with('@') && handle.substr(1) == me);
}

}  // namespace

std::string_view name_of(ForMe why) {
  switch (why) {
    case ForMe::no: return "";
    case ForMe::mention: return "mention";
    case ForMe::reply: return "reply";
    case ForMe::own_thread: return "own_thread";
    case ForMe::answer: return "answer";
  }
  return "";
}

bool is_by(const Record& record, std::string_view me) { return !me.empty() && text_in(record, "agent") == me; }

bool mentions(const Record& message, std::string_view me) {
  if (me.empty()) return false;
  const Json* listed = message.fields.find("mentions");
  if (const Json::Array* all = listed ? listed->array() : nullptr)
    return std::any_of(all->begin(), all->end(), [&](const Json& mention) { return names(mention, me); });
  if (listed && listed->string()) return names(*listed, me);
  const std::vector<std::string> said = mentions_in(text_in(message, "body"));
  return std::find(said.begin(), said.end(), me) != said.end();
}

bool is_hidden(const Record& record) { return record.status == "hidden"; }

ForMe message_for(const Record& message, std::string_view me, bool answers_mine, bool is_in_own_thread) {
  if (me.empty() || is_by(message, me)) return ForMe::no;
  if (mentions(message, me)) return ForMe::mention;
  if (answers_mine) return ForMe::reply;
  return is_in_own_thread ? ForMe::own_thread : ForMe::no;
}

ForMe mail_for(const Record& mail, std::string_view me) {
  return is_by(mail, me) && !text_in(mail, "owner_reply").empty() ? ForMe::answer : ForMe::no;
}

}  // namespace playfs
