#include "policies/policy_options.h"

#include <charconv>
#include <cmath>

namespace tactus {

Expected<PolicyOptions> PolicyOptions::Parse(std::string_view text, std::string_view whose) {
  PolicyOptions options;
  options.whose_ = whose;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const std::size_t equals = one.find('=');
    if (one.empty() || equals == 0) {
      return InvalidArgument(options.whose_ + " option '" + std::string(one) +
                             "': key=value is expected");
    }
    const bool flag = equals == std::string_view::npos;
    const auto [at, fresh] =
        options.values_.emplace(one.substr(0, equals), flag ? "" : one.substr(equals + 1));
    if (!fresh)
      return InvalidArgument(options.whose_ + " option '" + at->first + "' is given twice");
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return options;
}

void PolicyOptions::Complain(std::string_view key, std::string_view text,
                             std::string_view expected) {
  if (!status_) return;
  status_ = InvalidArgument(whose_ + " option " + std::string(key) + "=" + std::string(text) +
                            ": " + std::string(expected) + " is expected");
}

void PolicyOptions::Needs(std::string_view key, bool there, std::string_view without) {
  if (there || !Has(key) || !status_) return;
  status_ =
      InvalidArgument(whose_ + " option " + std::string(key) + "=" + values_.find(key)->second +
                      " changes nothing without " + std::string(without));
}

void PolicyOptions::Overridden(std::string_view key, std::string_view beside) {
  if (!Has(key) || !Has(beside) || !status_) return;
  status_ =
      InvalidArgument(whose_ + " option " + std::string(key) + "=" + values_.find(key)->second +
                      " changes nothing beside " + std::string(beside) + "=" +
                      values_.find(beside)->second + "; give one of them");
}

void PolicyOptions::Renamed(std::string_view key, std::string_view now) {
  if (!Has(key) || !status_) return;
  status_ = InvalidArgument(whose_ + " option " + std::string(key) + " is called " +
                            std::string(now) + " now");
}

bool PolicyOptions::Flag(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  if (!found->second.empty()) Complain(key, found->second, "the word alone");
  values_.erase(found);
  return true;
}

double PolicyOptions::Number(std::string_view key, double otherwise, double least, double most) {
  const auto found = values_.find(key);
  if (found == values_.end()) return otherwise;
  const std::string text = found->second;
  values_.erase(found);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least) ||
      value > most) {
    const auto shown = [](double number) { return std::to_string(static_cast<long>(number)); };
    Complain(key, text, "a number from " + shown(least) + " to " + shown(most));
    return otherwise;
  }
  return value;
}

int PolicyOptions::Whole(std::string_view key, int otherwise, int least, int most) {
  const double value = Number(key, otherwise, least, most);
  if (value == std::floor(value)) return static_cast<int>(value);
  if (status_) status_ = InvalidArgument(whose_ + " option " + std::string(key) + ": not whole");
  return otherwise;
}

Duration PolicyOptions::Millis(std::string_view key, double otherwise, double least) {
  return FromMillis(Number(key, otherwise, least, 1e6));
}

Duration PolicyOptions::Micros(std::string_view key, double otherwise) {
  return FromMillis(Number(key, otherwise, 0, 1e6) * 1e-3);
}

std::optional<Duration> PolicyOptions::MicrosIfGiven(std::string_view key) {
  if (!Has(key)) return std::nullopt;
  return Micros(key, 0);
}

std::size_t PolicyOptions::Name(std::string_view key,
                                std::initializer_list<std::string_view> names) {
  const auto found = values_.find(key);
  if (found == values_.end()) return 0;
  const std::string text = found->second;
  values_.erase(found);
  std::string known;
  std::size_t i = 0;
  for (const std::string_view name : names) {
    if (name == text) return i;
    known += (i++ == 0 ? "" : ", ") + std::string(name);
  }
  Complain(key, text, "one of " + known);
  return 0;
}

std::vector<int> PolicyOptions::List(std::string_view key, int most) {
  std::vector<int> numbers;
  const auto found = values_.find(key);
  if (found == values_.end()) return numbers;
  const std::string text = found->second;
  values_.erase(found);
  const char* at = text.data();
  const char* const last = at + text.size();
  for (;;) {
    int number = 0;
    const auto [end, error] = std::from_chars(at, last, number);
    const int above = numbers.empty() ? 0 : numbers.back();
    if (error != std::errc{} || number <= above || number > most) break;
    numbers.push_back(number);
    if (end == last) return numbers;
    if (*end != '/') break;
    at = end + 1;
  }
  Complain(key, text, "a rising list like 4/8/16, of numbers up to " + std::to_string(most));
  return {};
}

}  // namespace tactus
