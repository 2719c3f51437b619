#include "settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace emulator {
namespace {

// The environment at the start of the process: "NAME=value", each terminated by a zero. setenv does not
// change it, even in a static constructor or earlier.
std::string read_environment() {
  std::string text;
  if (std::FILE* file = std::fopen("/proc/self/environ", "r")) {
    char piece[4096];
    while (const std::size_t length = std::fread(piece, 1, sizeof(piece), file)) text.append(piece, length);
    std::fclose(file);
  }
  return text;
}

const char* value_at_start(const char* name) {
  static const auto& text = *new std::string(read_environment());
  const std::size_t length = std::strlen(name);
  for (std::size_t at = 0; at < text.size(); at += std::strlen(&text[at]) + 1)
    if (text.compare(at, length, name) == 0 && text[at + length] == '=') return &text[at + length + 1];
  return nullptr;
}

// Read before the static constructors of the judged code, which could overwrite it in place.
__attribute__((constructor(101))) void remember_environment() { value_at_start("EMULATOR_FIXED"); }

std::string& nonce_of_judge() {
  static auto& text = *new std::string;
  return text;
}

}  // namespace

const std::string& nonce() { return nonce_of_judge(); }

void read_nonce() {
  if (!setting_of("EMULATOR_NONCE")) return;
  for (char c; read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) nonce_of_judge() += c;
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  close(nothing);
}

const char* setting_of(const char* name) {
  return value_at_start("EMULATOR_FIXED") ? value_at_start(name) : std::getenv(name);
}

}  // namespace emulator
