#include "stage/verdicts.h"

#include <tuple>

#include "base/fd.h"
#include "model/path.h"
#include "stage/stage_state.h"

namespace playfs::stage {

namespace {

/// A survey may spend about as much on matching a name as visiting it costs.
constexpr std::uint64_t kStepsForEachName = 256;
constexpr std::size_t kMostTold = 1000;

Error over_the_bounds(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), "shorten or delete the file"};
}

/// nullopt for lower content that is not available.
Result<std::optional<std::string>> text_of(const Questions::File& file, const StageOptions& options, Spool& spool) {
  constexpr std::size_t most = kMaxRuleFile + 1;
  if (!file.bytes.published) {
    if (!file.spool) return std::optional(std::string());
    PLAYFS_TRY(SharedFd fd, spool.descriptor(*file.spool, false));
    if (!fd) return std::optional(std::string());
    PLAYFS_TRY(std::string text, read_at(fd->get(), 0, most));
    return std::optional(std::move(text));
  }
  if (auto text = file.bytes.published->inline_content()) return text;
  // There is no need to fetch it all first. A size claim that is too high has the same remedy.
  if (file.bytes.published->size_claim.value_or(0) > kMaxRuleFile) return fail(over_the_bounds("longer than 1 MiB"));
  return options.read_lower ? options.read_lower(file.lower, most) : std::nullopt;
}

/// `bytes` and `rules` are the totals of the other files.
Status read(RuleFile& file, const Questions::File& asked, const std::string& text, std::size_t bytes,
            std::size_t rules) {
  file.size = text.size();
  if (file.size > kMaxRuleFile) return fail(over_the_bounds("longer than 1 MiB"));
  if (bytes + file.size > kMaxTreeRuleBytes)
    return fail(over_the_bounds("longer than 4 MiB in total with those of other directories"));
  file.hash = ContentHash::of(text);
  IgnoreRulesPtr parsed = asked.before.rules;
  if (!parsed || asked.before.hash != file.hash) parsed = std::make_shared<IgnoreRules>(IgnoreRules::parse(text));
  file.count = parsed->size() + (parsed->is_cut_off() ? 1 : 0);
  if (parsed->is_cut_off()) return fail(over_the_bounds("more than " + std::to_string(kMaxRules) + " rules"));
  if (rules + file.count > kMaxTreeRules)
    return fail(over_the_bounds("more than " + std::to_string(kMaxTreeRules) +
                                " rules in total with those of other directories"));
  if (parsed->overlong() > 0)
    file.remark = asked.path + ": " + std::to_string(parsed->overlong()) + " lines are longer than " +
                  std::to_string(kMaxPathLength) + " bytes, the longest path, so they match nothing";
  file.rules = std::move(parsed);
  return {};
}

bool is_directory(std::string_view key) { return key.ends_with('/'); }
std::string_view path_of(std::string_view key) { return key.substr(0, key.size() - (is_directory(key) ? 1 : 0)); }

}  // namespace

std::optional<bool> is_ignored(const RuleChain* chain, std::string_view path, bool is_directory, Effort& effort) {
  for (; chain; chain = chain->above.get()) {
    for (const auto& rules : chain->rules) {
      auto verdict = rules->judge(path.substr(chain->skipped), is_directory, effort);
      if (!verdict) return std::nullopt;
      if (*verdict != Verdict::none) return *verdict == Verdict::ignored;
    }
  }
  auto verdict = built_in_rules().judge(path, is_directory, effort);
  if (!verdict) return std::nullopt;
  return *verdict == Verdict::ignored;
}

RuleBytes::RuleBytes(const Inode& file) {
  if (file.is_below()) {
    published = *file.lower.entry;
    return;
  }
  spool = file.spool ? file.spool->number() : 0;
  generation = file.generation;
}

bool RuleBytes::are_those_of(const Inode& file) const {
  if (published) return file.is_below() && published->same_content(*file.lower.entry);
  return !file.is_below() && spool == (file.spool ? file.spool->number() : 0) && generation == file.generation;
}

Answers answer(const Questions& questions, const StageOptions& options, Spool& spool) {
  Answers answers;
  std::size_t bytes = questions.known_bytes, rules = questions.known_rules;
  for (const auto& asked : questions.files) {
    RuleFile file{asked.bytes, nullptr, {}, {}, {}, 0, 0};
    auto text = text_of(asked, options, spool);
    Status done = !text ? Status(fail(text.error())) : *text ? read(file, asked, **text, bytes, rules) : Status();
    if (!done) file.error = done.error().while_doing("the ignore rules in " + asked.path);
    if (file.rules) {
      bytes += file.size;
      rules += file.count;
    }
    answers.files.push_back(std::move(file));
  }
  for (const auto& name : questions.names) {
    Effort all;
    answers.names.push_back(
        is_ignored(name.chain.get(), path_of(name.key), is_directory(name.key), all).value_or(false));
  }
  return answers;
}

void Verdicts::forget_failures() {
  const auto [known_bytes, known_rules] = known();
  const std::size_t bytes = known_bytes, rules = known_rules;  // clang 14 cannot capture structured bindings
  std::erase_if(files_, [&](const auto& each) {
    const RuleFile& file = each.second.value;
    if (file.rules) return false;
    if (!file.error || file.error->code != ErrorCode::invalid_argument) return true;
    return file.size <= kMaxRuleFile && file.count <= kMaxRules && bytes + file.size <= kMaxTreeRuleBytes &&
           rules + file.count <= kMaxTreeRules;
  });
}

std::pair<std::size_t, std::size_t> Verdicts::known() const {
  std::size_t bytes = 0, rules = 0;
  for (const auto& [path, file] : files_) {
    if (!file.value.rules) continue;
    bytes += file.value.size;
    rules += file.value.count;
  }
  return {bytes, rules};
}

void Verdicts::begin_survey(Effort effort) {
  ++survey_;
  effort_ = effort;
  questions_ = {};
}

const RuleFile* Verdicts::rules_in(const std::string& path, const Inode& file) {
  auto known = files_.find(path);
  if (known != files_.end() && known->second.value.bytes.are_those_of(file)) {
    known->second.survey = survey_;
    return &known->second.value;
  }
  RuleBytes bytes(file);
  RuleFile before{bytes, nullptr, {}, {}, {}, 0, 0};
  if (known != files_.end()) {
    before = std::move(known->second.value);
    files_.erase(known);
  }
  questions_.files.push_back({path, std::move(bytes), file.lower, file.spool, std::move(before)});
  return nullptr;
}

RuleChainPtr Verdicts::chain(const std::string& directory, RuleChain chain) {
  if (chain.rules.empty()) return chain.above;
  auto& known = chains_[directory];
  if (!known.value || *known.value != chain) known.value = std::make_shared<RuleChain>(std::move(chain));
  known.survey = survey_;
  return known.value;
}

std::optional<bool> Verdicts::is_ignored(const RuleChainPtr& chain, std::string_view path, bool is_directory) {
  std::string key(path);
  if (is_directory) key += '/';
  if (auto known = verdicts_.find(key); known != verdicts_.end() && known->second.value.chain == chain) {
    known->second.survey = survey_;
    return known->second.value.is_ignored;
  }
  effort_.allow(kStepsForEachName);
  if (auto verdict = stage::is_ignored(chain.get(), path, is_directory, effort_)) return verdict;
  questions_.names.push_back({std::move(key), chain});
  return std::nullopt;
}

Questions Verdicts::end_survey() {
  if (questions_.empty()) {
    auto is_needless = [this](const auto& each) { return each.second.survey != survey_; };
    std::erase_if(files_, is_needless);
    std::erase_if(chains_, is_needless);
    std::erase_if(verdicts_, is_needless);
  }
  std::tie(questions_.known_bytes, questions_.known_rules) = known();
  return std::move(questions_);
}

std::vector<Error> Verdicts::learn(Questions questions, Answers answers) {
  std::vector<Error> told;
  auto tell = [&](Error error) {
    if (told_.size() == kMostTold) told_.clear();
    if (told_.insert(error.message).second) told.push_back(std::move(error));
  };
  for (std::size_t i = 0; i < answers.files.size(); ++i) {
    RuleFile& file = answers.files[i];
    if (file.error) tell(*file.error);
    if (!file.remark.empty())
      tell({ErrorCode::invalid_argument, file.remark, "shorten them if they are meant as rules"});
    files_.insert_or_assign(std::move(questions.files[i].path), Needed<RuleFile>{std::move(file), survey_});
  }
  for (std::size_t i = 0; i < answers.names.size(); ++i) {
    auto& name = questions.names[i];
    verdicts_.insert_or_assign(std::move(name.key), Needed<Judged>{{std::move(name.chain), answers.names[i]}, survey_});
  }
  return told;
}

}  // namespace playfs::stage
