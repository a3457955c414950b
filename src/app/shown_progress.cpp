#include "app/shown_progress.h"

#include <algorithm>
#include <utility>

namespace playfs::app {

namespace {

/// Nothing is shown before this: most answers come sooner, and a line that flashes up would only disturb.
constexpr std::chrono::seconds kUnremarked{2};
/// The same for a line that stays.
constexpr std::chrono::seconds kUntold{4};

}  // namespace

ShownProgress::ShownProgress(Output& out, std::chrono::milliseconds interval, std::function<std::string()> words,
                             std::function<std::string()> news)
    : out_(out), words_(std::move(words)), news_(std::move(news)) {
  if (out.progress()) updates_.emplace(interval, interval, [this] { show(); });
  else if (news_) updates_.emplace(kLookAtWaitEvery, kLookAtWaitEvery, [this] { tell(); });
}

ShownProgress::~ShownProgress() {
  if (!updates_) return;
  updates_.reset();
  out_.progress_line("");
}

void ShownProgress::show() {
  const std::string words = words_();
  if (words.empty() && !is_shown_) return;
  out_.progress_line(words);
  is_shown_ = !words.empty();
}

void ShownProgress::tell() {
  if (out_.is_paged()) return;
  if (const std::string news = news_(); !news.empty()) out_.remark(news);
}

std::string LongWaits::news(const std::string& site, const std::string& what, std::chrono::nanoseconds waited,
                            std::chrono::nanoseconds left) {
  const bool is_long = waited >= kUntold;
  if (std::exchange(is_told_, is_long) || !is_long) return {};
  return words_for_wait(site, what, waited, left);
}

std::string words_for_wait(const std::string& site, const std::string& what, std::chrono::nanoseconds waited,
                           std::chrono::nanoseconds left) {
  using std::chrono::seconds;
  if (waited < kUnremarked) return {};
  auto text = [](std::chrono::nanoseconds time) {
    return std::to_string(std::max<std::int64_t>(0, std::chrono::floor<seconds>(time).count())) + " s";
  };
  return "No answer for " + text(waited) + " (" + text(left) + " left): " + safe(what) + " at " + safe(site);
}

}  // namespace playfs::app
