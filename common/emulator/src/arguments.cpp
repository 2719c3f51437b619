// The names of a launch's arguments.
#include "emulator/arguments.h"

#include <string_view>

EMULATOR_BEGIN
namespace emulator {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// At the commas that no bracket surrounds.
std::vector<std::string_view> split(std::string_view text, std::string_view openers,
                                    std::string_view closers) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); i++) {
    if (i < text.size() && openers.find(text[i]) != openers.npos) depth++;
    if (i < text.size() && closers.find(text[i]) != closers.npos) depth--;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    pieces.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return pieces;
}

}  // namespace

void name_arguments(std::vector<Argument>& arguments, const char* names) {
  auto pieces = split(names, "([{", ")]}");
  if (pieces.size() != arguments.size()) pieces = split(names, "([{<", ")]}>");  // f<int, 2>(x), y
  for (std::size_t i = 0; i < arguments.size() && pieces.size() == arguments.size(); i++) {
    const bool to_const = arguments[i].is_pointer && pieces[i].starts_with("const ");
    arguments[i].read_only |= to_const;
    arguments[i].name = trimmed(to_const ? pieces[i].substr(6) : pieces[i]);
  }
}

}  // namespace emulator
EMULATOR_END
