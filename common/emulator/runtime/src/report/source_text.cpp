// Names from the program's own source, which is read when the first name is needed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "../state/launch_state.h"
#include "call.h"

namespace emulator {
namespace {

constexpr std::size_t kLongestCall = 2000;  // characters from the call's name to its end

const std::string& source_of(const char* path) {
  static auto& texts = *new std::map<std::string, std::string>;
  const auto [known, is_new] = texts.emplace(path, "");
  if (is_new)
    if (std::FILE* file = std::fopen(path, "r")) {
      char piece[4096];
      while (const std::size_t length = std::fread(piece, 1, sizeof(piece), file))
        known->second.append(piece, length);
      std::fclose(file);
    }
  return known->second;
}

bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); }

std::size_t find_word(const std::string& text, const std::string& word, std::size_t from) {
  for (std::size_t at = text.find(word, from); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_word(text[at - 1])) && !is_word(text[at + word.size()])) return at;
  return std::string::npos;
}

// The text of an argument, given the beginning of the first argument.
std::string piece(const std::string& text, std::size_t at, int which) {
  std::string found;
  int depth = 0;
  for (std::size_t i = at; i < text.size() && i < at + kLongestCall; i++) {
    const char c = text[i];
    if (depth == 0 && (c == ')' || (c == ',' && which == 0))) return which == 0 ? found : "";
    if (depth == 0 && c == ',') {
      which--;
      continue;
    }
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (which == 0 && c != '\n') found += c;
  }
  return "";
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// `(void**)&x`, `reinterpret_cast<void**>(&x)`, `&x` and `(x)` are all about x.
std::string without_casts(std::string text) {
  for (;;) {
    text = trimmed(text);
    const std::size_t opener = text.find('(');
    if (text.empty()) return text;
    if (text[0] == '&') {
      text.erase(0, 1);
    } else if (text[0] == '(' && text.find(')') != std::string::npos) {
      const std::size_t closer = text.find(')');
      text = closer + 1 == text.size() ? text.substr(1, closer - 1) : text.substr(closer + 1);
    } else if (text.find("_cast<") < opener && opener != std::string::npos && text.back() == ')') {
      text = text.substr(opener + 1, text.size() - opener - 2);
    } else {
      return text;
    }
  }
}

// The `(` of a call in a line. The column is that of this `(`, or of the macro around the call; if the line
// was rewritten, it may be any.
std::size_t find_call(const std::string& text, const char* function, std::size_t begin, std::size_t end,
                      unsigned column) {
  std::size_t first = std::string::npos;
  for (std::size_t at = begin; (at = find_word(text, function, at)) < end; at++) {
    const std::size_t next = text.find_first_not_of(" \t\n", at + std::strlen(function));
    if (next == std::string::npos || (text[next] != '(' && text[next] != '<')) continue;  // it is only named
    const std::size_t opener = text.find('(', next);
    if (opener == std::string::npos || opener + 1 >= begin + column) return opener;
    if (first == std::string::npos) first = opener;
  }
  return first;
}

// The first character of a line and the one behind its last; both are the end of the text if there is no such
// line.
std::pair<std::size_t, std::size_t> find_line(const std::string& text, unsigned number) {
  std::size_t begin = 0;
  for (unsigned line = 1; line < number; line++) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return {text.size(), text.size()};
    begin++;
  }
  return {begin, std::min(text.find('\n', begin), text.size())};
}

}  // namespace

std::string line_of_source(const char* path, unsigned number) {
  const std::string& text = source_of(path);
  const auto [begin, end] = find_line(text, number);
  return text.substr(begin, end - begin);
}

std::string argument_text(const char* function, Position where, int which) {
  if (!where.line()) return "";
  const std::string& text = source_of(where.file_name());
  const auto [begin, end] = find_line(text, where.line());
  const std::size_t opener = find_call(text, function, begin, end, where.column());
  return opener == std::string::npos ? "" : without_casts(piece(text, opener + 1, which));
}

}  // namespace emulator
