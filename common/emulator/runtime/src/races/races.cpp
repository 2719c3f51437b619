#include "races.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "../report/report.h"
#include "../report/source_lines.h"
#include "../state/launch_state.h"
#include "access_sites.h"
#include "race_text.h"

namespace emulator {

bool has_suspects = false;

namespace {

// Two lines of code that conflict on one variable or allocation.
struct Race {
  Cause cause;
  bool is_certain = false;
  std::set<Site> suspects;          // it is not a mistake if all of these are repeated
  const std::byte* word = nullptr;  // the first that they conflicted on
  bool is_of_lanes = false;         // between lanes that pass data through volatile memory
  std::pair<int, int> numbers;      // of the lines, the lower one first
  std::string detail;               // of its finding
  // Where two stores overlap, which shows what is wrong with an index: the first and the last word.
  const Allocation* overlap = nullptr;  // in this launch
  const std::byte *overlap_begin = nullptr, *overlap_end = nullptr;
};

// The lines (for a read of uninitialised memory one, and null) and the memory.
using Key = std::tuple<const void*, const void*, const void*>;

// A conflicting store: it is benign if it stores the value that the memory already has.
struct Suspect {
  Conflict conflict;
  std::byte before[4];
};

// All suspects belong to the last access of this thread.
struct Suspects {
  std::vector<Suspect> all;
  Access access;
  Thread* thread;
};

struct RaceLog {
  std::map<Key, Race> races;
  std::map<Key, Cause> uninitialised_reads;
  Suspects suspects;
};
RaceLog& race_log() {
  static auto& log = *new RaceLog;
  return log;
}

AccessKind kind_of(Site site) { return info_of(site).kind; }

// The instruction whose repetition shows that a conflict is not a mistake; 0 if there is none.
Site benign_site(const Conflict& conflict) {
  const AccessKind now = conflict.access->kind, before = kind_of(conflict.earlier_site);
  if (is_atomic(before) && now == AccessKind::plain && !conflict.access->is_write) return conflict.site;
  if (is_atomic(now) && before == AccessKind::plain && !conflict.earlier_writes) return conflict.earlier_site;
  if (now == AccessKind::is_volatile && before == AccessKind::is_volatile) return conflict.earlier_site;
  return 0;
}

void widen_overlap(Race& race, const Conflict& conflict) {
  if (!are_two_stores(conflict)) return;
  race.overlap = conflict.access->allocation;
  if (!race.overlap_begin || conflict.word < race.overlap_begin) race.overlap_begin = conflict.word;
  race.overlap_end = std::max(race.overlap_end, conflict.word);
}

void report(const Conflict& conflict) {
  const Site suspect = benign_site(conflict);
  if (info_of(suspect).is_repeated) return;
  const void *line = line_of(conflict.site), *earlier_line = line_of(conflict.earlier_site);
  Race& race =
      race_log()
          .races[{std::min(line, earlier_line), std::max(line, earlier_line), memory_of(*conflict.access)}];
  race.cause = {Check::races, "race", nullptr, &race};
  race.numbers = std::minmax({line_number_of(conflict.site), line_number_of(conflict.earlier_site)});
  race.is_of_lanes = suspect && conflict.access->kind == AccessKind::is_volatile;
  if (suspect)
    race.suspects.insert(suspect);
  else
    race.is_certain = true;
  // A single word may be a flag, several words are data.
  if (!race.word) race.word = conflict.word;
  if (race.is_of_lanes && race.word == conflict.word) return;
  widen_overlap(race, conflict);
  if (!is_new(race.cause)) return;
  Finding finding = finding_of(conflict);
  race.detail = finding.detail;
  add(race.cause, std::move(finding));
}

}  // namespace

// Atomics among themselves need no order, nor do volatile accesses, with which flags are polled. But lanes of
// a warp that pass data through volatile memory count on a common step that they no longer have.
bool must_be_ordered(const Conflict& conflict) {
  const AccessKind now = conflict.access->kind, before = kind_of(conflict.earlier_site);
  if (now == AccessKind::plain || before == AccessKind::plain) return true;
  return now == AccessKind::is_volatile && before == AccessKind::is_volatile && conflict.access->is_write &&
         !conflict.earlier_writes && conflict.access->arena && conflict.now.same_warp(conflict.earlier);
}

void record_conflict(const Conflict& conflict) {
  if (conflict.access->kind != AccessKind::plain || !conflict.access->is_write) {
    report(conflict);
    return;
  }
  has_suspects = true;
  Suspects& suspects = race_log().suspects;
  suspects.access = *conflict.access;
  suspects.thread = running.thread;
  Suspect& suspect = suspects.all.emplace_back(Suspect{conflict, {}});
  suspect.conflict.access = &suspects.access;
  std::memcpy(suspect.before, conflict.word, 4);
}

// A plain read with an atomic right behind it is a first look, which the
// atomic confirms (as in loops around atomicCAS). A volatile read with the
// same one behind it waits for a flag. So do then all reads of that line.
void record_repetition(const Conflict& conflict) {
  if (conflict.earlier_writes) return;
  const AccessKind now = conflict.access->kind, before = kind_of(conflict.earlier_site);
  if ((is_atomic(now) && before == AccessKind::plain) ||
      (now == AccessKind::is_volatile && conflict.site == conflict.earlier_site))
    info_of(conflict.earlier_site).is_repeated = true;
}

void record_uninitialised_read(const Access& access, const std::byte* address, unsigned missing) {
  const Site site = site_of(access);
  Cause& cause = race_log().uninitialised_reads[{line_of(site), nullptr, memory_of(access)}];
  cause = {Check::initialisation, "unwritten", nullptr, &cause};
  if (!is_new(cause)) return;
  const std::string what = is_atomic(access.kind) ? "updates " : "reads ";
  std::string uninitialised = ", which is uninitialised";
  if (missing < std::min<std::size_t>(access.size, 8))
    uninitialised = ", of which " + std::to_string(missing) + " of " + std::to_string(access.size) +
                    " bytes are uninitialised";
  else if (access.arena)
    uninitialised += ": no thread of the block has written it";
  std::string where = info_of(site).text;
  // A kernel of a library has no line of the program, but its call has one.
  if (where.empty() && running.launch && running.launch->configuration.where.line())
    where = line_at(running.launch->configuration.where);
  add(cause, {false, what + element_at(access, address) + uninitialised, where,
              access.allocation ? describe(*access.allocation) : ""});
}

void settle_suspects() {
  has_suspects = false;
  Suspects& suspects = race_log().suspects;
  const auto has_changed_memory = [](const Suspect& suspect) {
    for (int i = 0; i < 4; i++)
      if (suspect.conflict.bytes >> i & 1 && suspect.conflict.word[i] != suspect.before[i]) return true;
    return false;
  };
  const auto wrong = std::find_if(suspects.all.begin(), suspects.all.end(), has_changed_memory);
  if (wrong != suspects.all.end()) {
    Thread* const now = std::exchange(running.thread, suspects.thread);
    report(wrong->conflict);
    running.thread = now;
  }
  suspects.all.clear();
}

namespace {

void withdraw_repeated() {
  auto& races = race_log().races;
  for (auto entry = races.begin(); entry != races.end();) {
    Race& race = entry->second;
    const bool is_benign =
        !race.is_certain && std::all_of(race.suspects.begin(), race.suspects.end(),
                                        [](Site site) { return info_of(site).is_repeated; });
    race.is_certain = true;
    if (is_benign) withdraw(race.cause);
    entry = is_benign ? races.erase(entry) : std::next(entry);
  }
}

// A chain of steps that all lack a __syncwarp is one mistake: only its first step is reported.
void withdraw_later_steps() {
  const auto& races = race_log().races;
  for (const auto& [key, race] : races) {
    const auto is_earlier_step = [&, &key = key, &race = race](const auto& other) {
      return other.second.is_of_lanes && std::get<2>(other.first) == std::get<2>(key) &&
             other.second.numbers < race.numbers;
    };
    if (race.is_of_lanes && std::any_of(races.begin(), races.end(), is_earlier_step)) withdraw(race.cause);
  }
}

// A read of uninitialised memory that another thread writes without an order is only a race.
void withdraw_reads_that_race() {
  std::erase_if(race_log().uninitialised_reads, [](const auto& entry) {
    const auto& [line, none, memory] = entry.first;
    const auto is_same_read = [&, line = line, memory = memory](const auto& race) {
      const auto& [one, other, shared_memory] = race.first;
      return shared_memory == memory && (one == line || other == line);
    };
    const auto& races = race_log().races;
    const bool is_race = std::any_of(races.begin(), races.end(), is_same_read);
    if (is_race) withdraw(entry.second);
    return is_race;
  });
}

void describe_overlaps() {
  for (auto& [key, race] : race_log().races) {
    if (!race.overlap || race.overlap_begin == race.overlap_end) continue;
    const auto element = [&](const std::byte* word) { return element_of(*race.overlap, word, 4); };
    set_detail(race.cause, race.detail + "\nthey overlap from " + element(race.overlap_begin) + " to " +
                               element(race.overlap_end) + " of " + name_of(*race.overlap));
    race.overlap = nullptr;
  }
}

}  // namespace

void settle_races() {
  withdraw_repeated();
  withdraw_later_steps();
  withdraw_reads_that_race();
  describe_overlaps();
}

void forget_races() {
  has_suspects = false;
  race_log().suspects.all.clear();
  if (collect_until_exit) return;
  race_log().races.clear();
  race_log().uninitialised_reads.clear();
}

}  // namespace emulator
