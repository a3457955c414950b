#include "app/fsck/other_clients.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace playfs::app {

namespace {

constexpr const char* kForOthers = "nothing to do for users of playfs; tell those of other clients";

Fault notice_of(std::string kind, std::string message, std::string hint = kForOthers) {
  return {Severity::notice, std::move(kind), std::move(message), std::move(hint)};
}

}  // namespace

void Forms::add(const std::string& path, Fault fault) {
  auto [form, is_new] = by_message_.try_emplace(fault.message);
  if (is_new) form->second = {std::move(fault), path, 0};
  ++form->second.files;
}

void Forms::add(const std::string& path, const FileEntry& entry) {
  if (entry.encoding == ContentEncoding::base64)
    add(path, notice_of("own_form", "the text is base64 of the content ('e'), which other clients do not decode"));
  if (entry.mode == FileMode::symlink)
    add(path, notice_of("own_form", "a symbolic link ('m'), which for other clients is a file with the target in it"));
  if (!ContentHash::parse(entry.hash_claim))
    add(path, notice_of("no_hash", "no SHA-256 was published with the content, so nobody can check it",
                        "to have one, write the file again in a work tree; then playfs commit -m MESSAGE"));
  // A known field is among the unknown ones if playfs would write it in another way.
  constexpr std::array<std::string_view, 6> kKnown{"h", "s", "m", "e", "inline", "c"};
  for (const std::string_view name : kKnown)
    if (entry.extra.find(name))
      add(path,
          notice_of("foreign_form", fmt::format("the field '{}' has a form that the API does not describe", name)));
}

std::vector<Forms::Form> Forms::found() const {
  std::vector<Form> forms;
  for (const auto& [message, form] : by_message_) forms.push_back(form);
  return forms;
}

Fault continuation_form() {
  return notice_of("own_form", "the manifest goes on in this file: other clients do not show the files that it lists");
}

std::vector<Fault> record_forms(const Record& record, const Revision& decoded) {
  std::vector<Fault> faults;
  const Json* parents = record.fields.find("parents");
  const bool is_list = parents && parents->array();
  if (!is_list || parents->array()->size() != decoded.parents.size())
    faults.push_back(notice_of("foreign_form", "its parents are not a list of ids",
                               "nothing to do: revisions are never changed, and merges take it to have fewer parents"));
  return faults;
}

}  // namespace playfs::app
