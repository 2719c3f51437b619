// The report of a plain program, and the watch over its host code.
#pragma once

#include <string>

#include "../src/report/report.h"

EMULATOR_BEGIN
namespace emulator {

constexpr int kFindings = 66;  // exit status of a program that ends well, but was found wrong
constexpr int kTimeout = 124;  // exit status of one that did not end in time

void say(const std::string& text);
void end_with(const std::string& crash);  // once; `crash` says what ended the program, if anything did

// From now on the host's crashes, its accesses to memory that is out of its reach, and its time are seen.
void watch_host();
bool is_late();
std::string too_late(const std::string& line);  // the message for it

}  // namespace emulator
EMULATOR_END
