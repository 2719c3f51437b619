// Collects findings by their cause, and writes a report that fits on one screen.
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "../state/launch_state.h"
#include "../state/settings.h"
#include "../state/thread_order.h"

namespace emulator {
namespace {

constexpr const char* kNames[] = {"memory", "initialisation", "races", "barriers",
                                  "launch", "streams",        "leaks"};
static_assert(std::size(kNames) == kChecks);
constexpr int kMostLines = 24;
constexpr std::size_t kMostThreads = 100000;

// A finding, how often it came up, and in which threads.
struct Entry {
  Finding finding;
  std::string kernel, first;  // "block (0, 1, 0), thread (3, 0, 0)"; empty outside kernels
  Position launched{};        // of the kernel
  unsigned long count;
  std::set<std::uint64_t> blocks;
  std::set<std::pair<std::uint64_t, unsigned>> threads;  // block and rank; no more than kMostThreads
};

struct Findings {
  std::map<Cause, Entry> by_cause;
  std::vector<const Cause*> in_order;
};
Findings& findings() {
  static auto& all = *new Findings;
  return all;
}

bool is_told(const char* setting, const char* name) {
  const std::size_t length = std::strlen(name);
  return std::strncmp(setting, name, length) == 0 && (setting[length] == 0 || setting[length] == ',');
}

void count(Entry& entry) {
  entry.count++;
  if (!running.thread) return;
  if (entry.threads.size() == kMostThreads) return;
  entry.blocks.insert(running.thread->block->number);
  entry.threads.insert({running.thread->block->number, running.thread->rank});
}

std::string plural(unsigned long number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// "12 times, by 12 threads of 3 blocks; first block (0, 1, 0), thread (3, 0, 0)"
std::string who(const Entry& entry) {
  if (entry.first.empty()) return entry.count > 1 ? plural(entry.count, "time") : "";
  if (entry.count == 1) return entry.first;
  std::string text = plural(entry.count, "time");
  if (entry.threads.size() == kMostThreads)
    text += ", by more than " + plural(kMostThreads - 1, "thread");
  else if (entry.threads.size() > 1)
    text += ", by " + plural(entry.threads.size(), "thread") + " of " + plural(entry.blocks.size(), "block");
  return text + "; first " + entry.first;
}

void indent(std::string& text, const std::string& lines) {
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    text += "     " + lines.substr(at, end - at) + "\n";
    at = end + 1;
  }
}

// Findings that differ only in the memory they are about, which each pass of a loop allocated, become one.
void fold_repeated(Findings& all) {
  using Text = std::tuple<Check, const void*, std::string, std::string, std::string>;
  std::map<Text, Entry*> known;
  std::erase_if(all.in_order, [&](const Cause* cause) {
    Entry& entry = all.by_cause.at(*cause);
    const auto [first, is_new] = known.try_emplace(
        Text{cause->check, cause->pc, entry.finding.what, entry.finding.where, entry.finding.detail}, &entry);
    if (is_new) return false;
    first->second->count += entry.count;
    first->second->blocks.merge(entry.blocks);
    first->second->threads.merge(entry.threads);
    return true;
  });
}

}  // namespace

bool collect_until_exit = false;
bool enabled_checks[kChecks] = {true, true, true, true, true, true, true};

const char* name_of(Check check) { return kNames[int(check)]; }
bool any_check() {
  return is_on(Check::memory) || is_on(Check::initialisation) || is_on(Check::races) ||
         is_on(Check::barriers);
}

void read_settings() {
  read_seed();
  const char* setting = setting_of("EMULATOR_CHECKS");
  std::string rest = setting && *setting ? setting : "all";
  const bool takes_away = rest[0] == '-' || is_told(rest.c_str(), "all");
  std::fill(std::begin(enabled_checks), std::end(enabled_checks), takes_away);
  while (!rest.empty()) {
    const std::string word = rest.substr(0, rest.find(','));
    rest.erase(0, word.size() + 1);
    for (int check = 0; check < kChecks; check++) {
      if (word == kNames[check]) enabled_checks[check] = true;
      if (word == std::string("-") + kNames[check]) enabled_checks[check] = false;
    }
  }
}

bool is_new(const Cause& cause) {
  const auto known = findings().by_cause.find(cause);
  if (known == findings().by_cause.end()) return true;
  count(known->second);
  return false;
}

void add(const Cause& cause, Finding finding) {
  Entry entry = {};
  entry.finding = std::move(finding);
  if (running.launch) {
    entry.kernel = running.launch->kernel;
    entry.launched = running.launch->configuration.where;
  }
  if (running.thread) {
    const uint3 b = running.thread->block->index, t = running.thread->index;
    char text[128];
    std::snprintf(text, sizeof(text), "block (%u, %u, %u), thread (%u, %u, %u)", b.x, b.y, b.z, t.x, t.y,
                  t.z);
    entry.first = text;
  }
  count(entry);
  const auto [where, is_added] = findings().by_cause.emplace(cause, std::move(entry));
  if (is_added) findings().in_order.push_back(&where->first);
}

void withdraw(const Cause& cause) {
  const auto known = findings().by_cause.find(cause);
  if (known == findings().by_cause.end()) return;
  std::erase(findings().in_order, &known->first);
  findings().by_cause.erase(known);
}

void set_detail(const Cause& cause, std::string detail) {
  const auto known = findings().by_cause.find(cause);
  if (known != findings().by_cause.end()) known->second.finding.detail = std::move(detail);
}

bool has_findings() { return !findings().in_order.empty(); }

bool has_errors() {
  const auto& all = findings().by_cause;
  return std::any_of(all.begin(), all.end(),
                     [](const auto& entry) { return !entry.second.finding.is_warning; });
}

std::string take_report() {
  Findings all;
  std::swap(all, findings());
  fold_repeated(all);
  auto entry = [&](const Cause* cause) -> const Entry& { return all.by_cause.at(*cause); };
  // Errors come before warnings. Within each they are in the order of the checks, then in the order found.
  std::stable_sort(all.in_order.begin(), all.in_order.end(), [&](const Cause* a, const Cause* b) {
    const bool a_warns = entry(a).finding.is_warning, b_warns = entry(b).finding.is_warning;
    return a_warns != b_warns ? b_warns : a->check < b->check;
  });

  std::string text;
  std::size_t shown = 0;
  for (const Cause* cause : all.in_order) {
    const Entry& one = entry(cause);
    std::string lines = one.finding.is_warning ? "  warning: " : "  error: ";
    std::string where = one.finding.where;
    if (where.empty() && cause->pc) where = line_of(cause->pc).text;
    // A kernel of a library has no line of the program.
    if (where.empty() && cause->pc && !one.first.empty() && one.launched.line())
      where = line_at(one.launched);
    lines += one.finding.what + (where.empty() ? "" : ", in " + where) + " (" + name_of(cause->check) + ")\n";
    indent(lines, one.finding.detail);
    indent(lines,
           (one.kernel.empty() ? "" : "kernel " + one.kernel + (who(one).empty() ? "" : ", ")) + who(one));
    const auto height =
        std::count(text.begin(), text.end(), '\n') + std::count(lines.begin(), lines.end(), '\n');
    if (shown && height >= kMostLines) break;
    text += lines;
    shown++;
  }
  if (shown < all.in_order.size())
    text += "  and " + std::to_string(all.in_order.size() - shown) + " more: fix these first\n";
  if (!seed_note().empty()) text += "  " + seed_note() + "\n";
  return text;
}

}  // namespace emulator
