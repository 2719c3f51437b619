// The names of a launch's arguments, and the pointers inside them.
#include "emulator/arguments.h"

#include <algorithm>
#include <cstring>
#include <string_view>

EMULATOR_BEGIN
namespace emulator {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// Splits at commas outside brackets.
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

std::vector<const void*> words_of(const void* structure, std::size_t size, std::size_t alignment) {
  std::vector<const void*> words;
  const std::size_t step = std::min(alignment, sizeof(void*));
  for (std::size_t offset = 0; offset + sizeof(void*) <= size; offset += step) {
    const void* word;
    std::memcpy(&word, static_cast<const char*>(structure) + offset, sizeof(word));
    if (!is_null(word)) words.push_back(word);
  }
  return words;
}

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
