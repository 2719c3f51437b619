// A kernel's lines of output come in the order of its blocks, on whichever core they run.
#include <cstdarg>
#include <cstdio>

#include "../src/scheduler/cores.h"

namespace {

void take_turn_to_print() {
  if (!emulator::needs_turn) return;
  const emulator::InRuntime inside;
  emulator::take_turn();
}

}  // namespace

// The C library's functions that `printf` in a kernel becomes. Only the program finds these definitions
// first.
#pragma GCC visibility push(hidden)
extern "C" {
int printf(const char* format, ...) {
  take_turn_to_print();
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vprintf(format, arguments);
  va_end(arguments);
  return length;
}
int puts(const char* text) {
  take_turn_to_print();
  return std::fputs(text, stdout) < 0 ? EOF : std::fputc('\n', stdout);
}
int putchar(int character) {
  take_turn_to_print();
  return std::fputc(character, stdout);
}
}
#pragma GCC visibility pop
