// When requests are counted: for the whole process where EMULATOR_COUNTS names a file, or while a program
// that has loaded the extension asks for it.
#include <cstdio>
#include <cstdlib>

#include "../state/settings.h"
#include "counts.h"

namespace emulator {
namespace {

std::string& path() {
  static auto& of_setting = *new std::string;
  return of_setting;
}

void write_at_exit() {
  std::FILE* file = std::fopen(path().c_str(), "w");
  if (!file || std::fputs(counts_as_json().c_str(), file) < 0 || std::fclose(file) != 0)
    std::fprintf(stderr, "EMULATOR_COUNTS: cannot write %s\n", path().c_str());
}

bool read_setting() {
  const char* setting = setting_of("EMULATOR_COUNTS");
  if (!setting || !*setting) return false;
  path() = setting;
  return std::atexit(write_at_exit) == 0;
}

}  // namespace

bool counting = read_setting();

}  // namespace emulator

void emulator_counts_begin(long long block, unsigned first, unsigned last) {
  emulator::Counts& all = emulator::counts();
  all = {};
  all.trace.block = block;
  all.trace.first = first;
  all.trace.last = last;
  emulator::counting = true;
}

const char* emulator_counts_end() {
  static auto& text = *new std::string;
  emulator::counting = false;
  text = emulator::counts_as_json();
  return text.c_str();
}
