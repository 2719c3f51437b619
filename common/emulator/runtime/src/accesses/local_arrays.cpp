// Indices outside of local arrays. For arrays in memory that the checks of accesses know, these report more.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "../memory/allocation.h"
#include "../report/call.h"
#include "../report/report.h"
#include "../scheduler/failure.h"
#include "../scheduler/scheduler.h"
#include "../state/launch_state.h"
#include "accesses.h"

namespace emulator {
namespace {

bool is_of_name(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); }

// A subscript in a line of the source: "best", and what comes after it, " = 1;". A member has its `.` or `->`
// before the name.
struct Subscript {
  std::string name, rest;
  bool is_member;
};

// The subscript that ends with the `]` at an offset. Of `tile[i][j]`, each one is of tile.
Subscript subscript_at(const std::string& line, std::size_t closer) {
  std::size_t begin = closer;
  while (begin != std::string::npos && line[begin] == ']') {
    int depth = 0;
    do depth += (line[begin] == ']') - (line[begin] == '[');
    while (depth && begin-- > 0);
    if (depth) return {};
    begin--;
  }
  const std::size_t end = begin + 1;
  while (begin != std::string::npos && is_of_name(line[begin])) begin--;
  const bool is_member = begin != std::string::npos && (line[begin] == '.' || line[begin] == '>');
  return {line.substr(begin + 1, end - begin - 1), line.substr(closer + 1), is_member};
}

// The subscript of which the compiler gives the column of its `]`. If the rewriter has added text before it, only
// a line with subscripts of one array tells; otherwise the result is empty.
Subscript find_subscript(const std::string& line, unsigned column) {
  if (column && column <= line.size() && line[column - 1] == ']') return subscript_at(line, column - 1);
  Subscript found{};
  for (std::size_t at = line.find(']'); at != std::string::npos; at = line.find(']', at + 1)) {
    const Subscript one = subscript_at(line, at);
    if (!found.name.empty() && one.name != found.name) return {};
    found = one;
  }
  return found;
}

// Whether the text after a subscript changes the element: " = 1;", " += 2;".
bool is_assigned(const std::string& rest) {
  const std::size_t at = rest.find_first_not_of(' ');
  if (at == std::string::npos) return false;
  const std::string after = rest.substr(at, 2);
  if (after == "==") return false;
  const bool is_compound =
      after.size() == 2 && after[1] == '=' && std::string("+-*/%&|^").find(after[0]) != std::string::npos;
  return after[0] == '=' || after == "++" || after == "--" || is_compound;
}

bool is_file_variable(const std::string& name) {
  const auto all = all_allocations();
  return std::any_of(all.begin(), all.end(), [&](const Allocation* one) {
    return (one->space == Space::variable || one->space == Space::managed) && one->name == name;
  });
}

bool is_shared_variable(const std::string& name) {
  const auto& variables = running.launch->shared.variables;
  return std::any_of(variables.begin(), variables.end(),
                     [&](const SharedVariable& variable) { return name_of(variable) == name; });
}

}  // namespace

void on_array_index(const ArrayIndex& found, const void* pc) {
  if (!is_on(Check::memory)) return;
  const InRuntime inside;
  const std::string type = found.type;
  const long long elements = std::atoll(type.c_str() + std::min(type.find('[') + 1, type.size()));
  const Subscript subscript = find_subscript(line_of_source(found.file, found.line), found.column);
  const bool is_known = !subscript.name.empty() && !subscript.is_member;
  if (is_known && (is_shared_variable(subscript.name) || is_file_variable(subscript.name))) return;
  const Cause cause{Check::memory, "local array", pc, nullptr, 0, 0};
  const std::string name = subscript.name.empty() ? "an array" : subscript.name;
  const bool is_write = is_assigned(subscript.rest);
  const std::string verb = subscript.name.empty() ? "accesses" : is_write ? "writes" : "reads";
  const std::string where = found.index < 0 ? " before the beginning of " : " past the end of ";
  if (is_new(cause))
    add(cause, {false, verb + where + name + " (" + std::to_string(elements) + " elements)", "",
                "index " + std::to_string(found.index) + "; the array is a " +
                    type.substr(1, type.size() - 2) + " of the thread"});
  end_thread();
}

}  // namespace emulator
