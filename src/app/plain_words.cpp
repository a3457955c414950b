#include "app/plain_words.h"

#include <algorithm>
#include <string_view>

namespace playfs::app {

namespace {

constexpr char kMark = '\1';

/// Words that begin with a mark get a second one, so that taking one away is always right.
constexpr std::string_view kMarkedBefore("[{%+\1");

void mark_at(std::string& word, std::size_t at) {
  if (at < word.size() && kMarkedBefore.find(word[at]) != std::string_view::npos) word.insert(at, 1, kMark);
}

std::string without_first_mark(std::string word) {
  if (word.starts_with(kMark)) word.erase(0, 1);
  return word;
}

}  // namespace

std::vector<std::string> mark_plain_words(std::vector<std::string> words) {
  bool has_options = true;
  for (std::string& word : words) {
    if (word == "--") has_options = false;
    const std::size_t equals = has_options && word.starts_with("--") ? word.find('=') : std::string::npos;
    mark_at(word, equals == std::string::npos ? 0 : equals + 1);
  }
  return words;
}

void take_plain_words(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) option->transform(without_first_mark);
  for (CLI::App* each : command.get_subcommands({})) take_plain_words(*each);
}

std::string without_marks(std::string message) {
  std::erase(message, kMark);
  return message;
}

}  // namespace playfs::app
