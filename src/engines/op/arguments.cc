#include "engines/op/arguments.h"

#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tactus::op {
namespace {

constexpr std::size_t kLongestList = 1024;

template <class Number>
std::optional<Number> ReadNumber(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Nothing where one of the list is no number in [least, most], or it is too long.
template <class Number>
std::optional<std::vector<Number>> ReadNumbers(std::string_view list, Number least, Number most) {
  std::vector<Number> values;
  for (const std::string& item : SplitList(list)) {
    const auto value = ReadNumber<Number>(item);
    if (!value || !(*value >= least) || !(*value <= most)) return std::nullopt;
    values.push_back(*value);
    if (values.size() > kLongestList) return std::nullopt;
  }
  return values;
}

}  // namespace

std::vector<std::string> SplitList(std::string_view list) {
  constexpr std::string_view kBlank = " \t\r\n";
  std::vector<std::string> items;
  for (;;) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    const std::size_t first = item.find_first_not_of(kBlank);
    item = first == item.npos ? std::string_view{}
                              : item.substr(first, item.find_last_not_of(kBlank) - first + 1);
    items.emplace_back(item);
    if (comma == list.npos) return items;
    list.remove_prefix(comma + 1);
  }
}

Arguments::Arguments(std::string step, const std::map<std::string, std::string>& parameters,
                     std::filesystem::path data_file)
    : step_(std::move(step)), data_file_(std::move(data_file)) {
  const std::string prefix = step_ + ".";
  for (const auto& [key, value] : parameters) {
    if (key.starts_with(prefix)) given_[key.substr(prefix.size())] = value;
  }
}

bool Arguments::Has(std::string_view key) const { return given_.contains(key); }

const std::string* Arguments::Find(std::string_view key) {
  read_.emplace(key);
  const auto found = given_.find(key);
  return found == given_.end() ? nullptr : &found->second;
}

void Arguments::Wrong(std::string_view key, std::string_view why) {
  if (!status_) return;
  status_ =
      InvalidArgument(fmt::format("operator '{}': argument {}.{}: {}", step_, step_, key, why));
}

int Arguments::Whole(std::string_view key, int otherwise, int least, int most) {
  const std::string* text = Find(key);
  if (text == nullptr) return otherwise;
  const auto value = ReadNumber<int>(*text);
  if (value && *value >= least && *value <= most) return *value;
  Wrong(key, fmt::format("'{}' is not a whole number from {} to {}", *text, least, most));
  return otherwise;
}

int Arguments::Needed(std::string_view key, int least, int most) {
  if (Find(key) == nullptr) {
    Wrong(key, fmt::format("is missing: a whole number from {} to {}", least, most));
  }
  return Whole(key, least, least, most);
}

double Arguments::Number(std::string_view key, double otherwise, double least, double most) {
  return Numbers(key, {otherwise}, least, most)[0];
}

std::vector<double> Arguments::Numbers(std::string_view key, std::vector<double> otherwise,
                                       double least, double most) {
  const std::string* text = Find(key);
  if (text == nullptr) return otherwise;
  const auto values = ReadNumbers<double>(*text, least, most);
  if (values && values->size() == otherwise.size()) return *values;
  Wrong(key, fmt::format("'{}' is not {} number{} from {:g} to {:g}", *text, otherwise.size(),
                         otherwise.size() == 1 ? "" : "s, by comma,", least, most));
  return otherwise;
}

std::vector<int> Arguments::Wholes(std::string_view key, std::vector<int> otherwise, int least,
                                   int most) {
  const std::string* text = Find(key);
  if (text == nullptr) return otherwise;
  auto values = ReadNumbers<int>(*text, least, most);
  if (values) return *std::move(values);
  Wrong(key, fmt::format("'{}' is not whole numbers from {} to {}, by comma", *text, least, most));
  return otherwise;
}

std::string Arguments::OneOf(std::string_view key, std::vector<std::string> choices) {
  const std::string* text = Find(key);
  if (text == nullptr) return choices[0];
  for (const std::string& choice : choices) {
    if (*text == choice) return choice;
  }
  Wrong(key, fmt::format("'{}' is none of {}", *text, fmt::join(choices, ", ")));
  return choices[0];
}

std::optional<std::string> Arguments::Tensor(std::string_view port) {
  const std::string* text = Find(port);
  if (text == nullptr) return std::nullopt;
  if (text->empty()) Wrong(port, "names no tensor");
  return *text;
}

Status Arguments::End() {
  for (const auto& [key, value] : given_) {
    if (read_.contains(key)) continue;
    Wrong(key, fmt::format("the operator knows no such argument or tensor; it knows {}",
                           fmt::join(read_, ", ")));
  }
  return status_;
}

}  // namespace tactus::op
