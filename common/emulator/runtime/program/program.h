// The report of a plain program, and the checks of its host code.
#pragma once

#include <signal.h>

#include <string>

#include "../src/report/report.h"

EMULATOR_BEGIN
namespace emulator {

constexpr int kFindings = 66;  // exit status of a program that ends with 0 but has findings
constexpr int kTimeout = 124;  // exit status of one that did not end in time

void say(const std::string& text);
void end_with(const std::string& crash);  // once; `crash` says what ended the program, if anything did

// From now on, crashes of the host and its accesses to memory that it must not access are reported.
void watch_host();
// The position in the host code: the innermost call that has a line of the program.
std::string line_in_program(const void* context);
void catch_signal(int signal, void (*handler)(int, siginfo_t*, void*));

void watch_time();  // from now on
bool is_late();
std::string too_late(const std::string& line);  // the message for it

}  // namespace emulator
EMULATOR_END
