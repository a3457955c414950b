#include "app/plain_words.h"

#include <algorithm>
#include <string_view>

namespace playfs::app {

namespace {

constexpr char kMark = '\1';

/// Words that begin with a mark get a second one, so that taking one away is always right.
constexpr std::string_view kMarkedBefore("[{%+\1");

/// Where the value begins in a word of the form `--option=value` or `-ovalue`; 0 in any other. The value may itself
/// have such a form, and the word may itself be a value. Marking and unmarking both skip all such prefixes, so they
/// agree on the place of the mark.
std::size_t value_in(std::string_view word) {
  for (std::size_t at = 0;;) {
    const std::string_view rest = word.substr(at);
    const bool is_long = rest.starts_with("--");
    const std::size_t equals = is_long ? rest.find('=') : 1;
    if (!rest.starts_with('-') || equals >= rest.size()) return at;
    at += equals + 1;
  }
}

void mark(std::string& word) {
  const std::size_t at = value_in(word);
  // CLI11 would take the next word for a value that is empty.
  const bool is_empty_value = at > 0 && at == word.size() && word[at - 1] == '=';
  if (is_empty_value || (at < word.size() && kMarkedBefore.find(word[at]) != std::string_view::npos))
    word.insert(at, 1, kMark);
}

std::string without_mark(std::string word) {
  if (const std::size_t at = value_in(word); at < word.size() && word[at] == kMark) word.erase(at, 1);
  return word;
}

}  // namespace

std::vector<std::string> mark_plain_words(std::vector<std::string> words) {
  for (std::string& word : words) mark(word);
  return words;
}

void take_plain_words(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) option->transform(without_mark);
  for (CLI::App* each : command.get_subcommands({})) take_plain_words(*each);
}

std::string without_marks(std::string message) {
  std::erase(message, kMark);
  return message;
}

}  // namespace playfs::app
