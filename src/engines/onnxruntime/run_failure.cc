#include "engines/onnxruntime/run_failure.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

namespace tactus {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \n\t";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

// What stands between the two, and drops it and all before it from `text`; else nothing.
std::optional<std::string_view> TakeBetween(std::string_view& text, std::string_view before,
                                            std::string_view behind) {
  const std::size_t begin = text.find(before);
  if (begin == text.npos) return std::nullopt;
  const std::size_t end = text.find(behind, begin + before.size());
  if (end == text.npos) return std::nullopt;
  const std::string_view between = text.substr(begin + before.size(), end - begin - before.size());
  text.remove_prefix(end + behind.size());
  return between;
}

// Behind the bracket that closes the one with which `text` begins; the end where none does.
std::string_view BehindBrackets(std::string_view text) {
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++open;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}') --open;
    if (open == 0) return text.substr(i + 1);
  }
  return "";
}

// Behind "gather.h:123 bool ns::Fn(int, T&) const [with T = int] ", if it begins so.
std::string_view WithoutPlace(std::string_view text) {
  const std::size_t blank = text.find(' ');
  const std::size_t colon = text.substr(0, blank).rfind(':');
  if (blank == text.npos || colon == text.npos || colon + 1 == blank) return text;
  const std::string_view line = text.substr(colon + 1, blank - colon - 1);
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (!std::ranges::all_of(line, digit)) return text;
  std::string_view rest = text.substr(blank);
  do {  // a function inside of a function has arguments twice
    const std::size_t arguments = rest.find('(');
    if (arguments == rest.npos) return text;
    rest = BehindBrackets(rest.substr(arguments));
    if (rest.starts_with('>')) rest.remove_prefix(1);  // of <lambda(int)>
    if (rest.starts_with(" const")) rest.remove_prefix(6);
    if (rest.starts_with(" [with ")) rest = BehindBrackets(rest.substr(1));
  } while (rest.starts_with("::"));
  return rest;
}

// Behind "size == 4 was false. ", the condition that the library checked.
std::string_view WithoutCondition(std::string_view text) {
  constexpr std::string_view kFalse = " was false. ";
  const std::size_t at = text.find(kFalse);
  return at == text.npos ? text : text.substr(at + kFalse.size());
}

}  // namespace

std::string RunFailure(std::string_view said) {
  if (said.starts_with("Load model from ")) TakeBetween(said, "Load model from ", " failed:");
  std::string_view rest = said;
  const auto type = TakeBetween(rest, "while running ", " node.");
  const auto name = type ? TakeBetween(rest, "Name:'", "' Status Message: ") : std::nullopt;
  std::string_view cause = Trimmed(WithoutCondition(WithoutPlace(Trimmed(name ? rest : said))));
  if (cause.empty()) cause = Trimmed(said);
  std::string text = name ? fmt::format("{} '{}': {}", *type, *name, cause) : std::string(cause);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool LacksMemory(std::string_view said) {
  return said.contains("allocate memory") || said.contains("bad_alloc");
}

}  // namespace tactus
