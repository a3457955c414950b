#include "base/clock.h"

#include <array>
#include <charconv>

namespace playfs {

namespace {
constexpr std::int64_t kSecond = 1'000'000'000;

/// Consumes exactly `digits` decimal digits.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || text[0] == '-') return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

/// Overwrites the zeros in place. REQUIRES: `number` is non-negative and fits in `digits` digits.
void put_number(std::string& text, std::size_t begin, std::size_t digits, int number) {
  for (std::size_t at = begin + digits; at > begin && number > 0; number /= 10)
    text[--at] = static_cast<char>('0' + number % 10);
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text[0] != expected) return false;
  text.remove_prefix(1);
  return true;
}
}  // namespace

WallTime SystemClock::wall() const {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
}

SteadyTime SystemClock::steady() const { return std::chrono::steady_clock::now(); }

std::string format_iso8601(WallTime time) {
  namespace c = std::chrono;
  const c::nanoseconds since_epoch(time.nanoseconds);
  const auto day = c::floor<c::days>(since_epoch);
  const c::year_month_day date{c::sys_days(day)};
  const c::hh_mm_ss clock{since_epoch - day};
  // Hand-written for speed: one page of records formats two hundred timestamps.
  std::string text = "0000-00-00T00:00:00.000000Z";
  put_number(text, 0, 4, static_cast<int>(date.year()));
  put_number(text, 5, 2, static_cast<int>(static_cast<unsigned>(date.month())));
  put_number(text, 8, 2, static_cast<int>(static_cast<unsigned>(date.day())));
  put_number(text, 11, 2, static_cast<int>(clock.hours().count()));
  put_number(text, 14, 2, static_cast<int>(clock.minutes().count()));
  put_number(text, 17, 2, static_cast<int>(clock.seconds().count()));
  put_number(text, 20, 6, static_cast<int>(clock.subseconds().count() / 1000));
  return text;
}

std::optional<WallTime> parse_iso8601(std::string_view text, bool end_of_period) {
  namespace c = std::chrono;
  // Year, month, day, hour, minute, second; the number of fields given sets the length of the period.
  std::array<int, 6> fields = {0, 1, 1, 0, 0, 0};
  constexpr std::array<char, 6> separators = {'\0', '-', '-', 'T', ':', ':'};
  std::size_t given = 0;
  for (; given < fields.size() && !text.empty(); ++given) {
    if (given > 0) {
      char expected = separators[given];
      bool date_time_space = given == 3 && (text[0] == ' ' || text[0] == 't');
      if (given >= 4 && (text[0] == 'Z' || text[0] == '+' || text[0] == '-')) break;
      if (date_time_space) text.remove_prefix(1);
      else if (!take(text, expected)) return std::nullopt;
    }
    auto value = take_number(text, given == 0 ? 4 : 2);
    if (!value) return std::nullopt;
    fields[given] = *value;
  }
  if (given == 0) return std::nullopt;

  std::int64_t fraction = 0;
  std::int64_t fraction_unit = kSecond;
  if (given == 6 && (take(text, '.') || take(text, ','))) {
    std::size_t digits = 0;
    for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), ++digits) {
      if (digits >= 9) continue;
      fraction_unit /= 10;
      fraction += (text[0] - '0') * fraction_unit;
    }
    if (digits == 0) return std::nullopt;
  }
  std::int64_t offset = 0;
  if (!text.empty() && !take(text, 'Z') && !take(text, 'z')) {
    int sign = take(text, '-') ? -1 : (take(text, '+') ? 1 : 0);
    auto hours = take_number(text, 2);
    take(text, ':');
    auto minutes = text.empty() ? std::optional<int>(0) : take_number(text, 2);
    if (sign == 0 || !hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    offset = sign * (*hours * 3600 + *minutes * 60);
  }
  if (!text.empty() || fields[3] > 24 || fields[4] > 59 || fields[5] > 60) return std::nullopt;

  auto instant = [&](int year, int month) -> std::optional<std::int64_t> {
    c::year_month_day date{c::year{year}, c::month{static_cast<unsigned>(month)},
                           c::day{static_cast<unsigned>(fields[2])}};
    if (!date.ok()) return std::nullopt;
    std::int64_t days = c::sys_days{date}.time_since_epoch().count();
    return days * 86400 + fields[3] * 3600 + fields[4] * 60 + fields[5] - offset;
  };
  auto start = instant(fields[0], fields[1]);
  if (!start) return std::nullopt;
  if (*start > INT64_MAX / kSecond - 1 || *start < INT64_MIN / kSecond + 1) return std::nullopt;
  std::int64_t begin = *start * kSecond + fraction;
  if (!end_of_period) return WallTime{begin};
  switch (given) {
    case 1: return WallTime{*instant(fields[0] + 1, 1) * kSecond - 1};
    case 2:
      return WallTime{(fields[1] == 12 ? *instant(fields[0] + 1, 1) : *instant(fields[0], fields[1] + 1)) * kSecond -
                      1};
    case 3: return WallTime{begin + 86400 * kSecond - 1};
    case 4: return WallTime{begin + 3600 * kSecond - 1};
    case 5: return WallTime{begin + 60 * kSecond - 1};
    default: return WallTime{begin + fraction_unit - 1};
  }
}

}  // namespace playfs
