#include "races.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "report.h"

namespace emulator {

bool has_doubts = false;

namespace {

constexpr std::size_t kMostSites = 65536, kMostLinesSought = 200;  // to find a line takes milliseconds

struct Instruction {
  const void* counter;
  Kind kind;
  bool is_repeated;  // see note_again
  const void* line;  // the same for all of one line; null: not asked for yet
  std::string text;  // "block_sum.cu:11"; may be empty
};

// Two lines of code that collide on one thing.
struct Race {
  Cause cause;
  bool is_certain = false;
  std::set<Site> doubtful;          // it is no mistake if all of these are repeated
  const std::byte* word = nullptr;  // the first that they collided on
  bool is_of_lanes = false;         // that pass data through volatile memory
  std::pair<int, int> numbers;      // of the lines, the lower one first
};

// The lines (of a read of what nobody wrote one, and null) and the thing.
using Key = std::tuple<const void*, const void*, const void*>;

// A store that collides: it does no harm if it stores what is there already.
struct Doubt {
  Conflict conflict;
  std::byte before[4];
};

std::vector<Instruction>& instructions() {
  static auto& all = *new std::vector<Instruction>;
  if (all.empty())  // what finds no place in the table
    for (int kind = 0; kind < kKinds; kind++) all.push_back({nullptr, Kind(kind), false, nullptr, ""});
  return all;
}
std::map<Key, Race>& races() {
  static auto& all = *new std::map<Key, Race>;
  return all;
}
std::map<Key, Cause>& unwritten() {
  static auto& all = *new std::map<Key, Cause>;
  return all;
}

std::vector<Doubt> doubts;
Access doubtful_access;
Thread* doubtful_thread;

const void* line_of(Site site) {
  static auto& lines = *new std::set<std::string>;
  Instruction& one = instructions()[site];
  if (one.line || !one.counter) return one.line;
  if (lines.size() < kMostLinesSought) one.text = emulator::line_of(one.counter).text;
  one.line = one.text.empty() ? one.counter : &*lines.insert(one.text).first;
  return one.line;
}

int number_of(Site site) {
  const std::string& text = instructions()[site].text;
  return std::atoi(text.c_str() + text.rfind(':') + 1);
}

Kind kind_of(Site site) { return instructions()[site].kind; }

// ---- words

const SharedVariable* variable_at(const Access& access) {
  const auto offset = std::size_t(access.address - access.arena);
  const bool is_dynamic = access.arena == current->block->arena.dynamic;
  for (const SharedVariable& variable : state->variables)
    if (variable.is_dynamic == is_dynamic && offset - variable.offset < variable.size) return &variable;
  return nullptr;
}

// The memory that an access touches: the same for all of a variable or an allocation.
const void* thing_of(const Access& access) {
  if (access.allocation) return access.allocation;
  const SharedVariable* variable = variable_at(access);
  return variable ? reinterpret_cast<const void*>(variable->key) : nullptr;
}

// "partial[16], shared memory", "element [0, 3] of z"
std::string element_at(const Access& access, const std::byte* address) {
  if (access.size <= 8) address = access.address;
  if (const Allocation* allocation = access.allocation)
    return element_of(*allocation, address, access.size) + " of " + name_of(*allocation);
  const SharedVariable* variable = variable_at(access);
  if (!variable) return "shared memory";
  return element_of(*variable, address - access.arena - std::ptrdiff_t(variable->offset)) + ", shared memory";
}

std::string thread_text(Stamp stamp, bool with_block) {
  const Configuration& launch = state->configuration;
  const std::string thread = "thread " + in_words(place_in(launch.block, stamp.rank()));
  return with_block ? "block " + in_words(place_in(launch.grid, stamp.block())) + ", " + thread : thread;
}

const char* what_it_did(Kind kind, bool writes, bool before) {
  if (is_atomic(kind)) return before ? " updated it atomically" : " updates it atomically";
  if (writes) return before ? " wrote it" : " writes it";
  return before ? " read it" : " reads it";
}

// What would order blocks. Two that store in one line more often have a wrong index than want to share.
const char* between_blocks(bool is_one_line, bool both_write) {
  if (is_one_line && both_write)
    return "if both should, by an atomic; if each has elements of its own, look at the index and its guard";
  if (is_one_line)
    return "blocks run in any order: update it by one atomic function, or write to another array";
  return "nothing orders two blocks but atomics after a __threadfence, or another launch";
}

std::string what_is_missing(const Conflict& conflict) {
  const Kind now = conflict.access->kind, before = kind_of(conflict.earlier_site);
  const bool is_one_line = line_of(conflict.site) == line_of(conflict.earlier_site);
  const bool both_write = conflict.access->is_write && conflict.earlier_writes;
  if (!conflict.now.same_block(conflict.earlier)) return between_blocks(is_one_line, both_write);
  if (now == Kind::is_volatile && before == Kind::is_volatile)
    return "no __syncwarp lies between: volatile does not make the lanes of a warp keep step";
  const std::string barrier =
      conflict.now.same_warp(conflict.earlier) ? "__syncwarp or __syncthreads" : "__syncthreads";
  if (is_one_line && !both_write)
    return "no " + barrier + " lies between: read into a variable, let all come to a barrier, then write";
  return "no " + barrier + " lies between the two";
}

Finding finding_of(const Conflict& conflict) {
  const Access& access = *conflict.access;
  const bool blocks_differ = !conflict.now.same_block(conflict.earlier);
  const auto first = conflict.word + std::countr_zero(conflict.bytes);
  const std::string& earlier_line = instructions()[conflict.earlier_site].text;
  std::string detail =
      thread_text(conflict.now, blocks_differ) + what_it_did(access.kind, access.is_write, false) + ", " +
      thread_text(conflict.earlier, blocks_differ) +
      what_it_did(kind_of(conflict.earlier_site), conflict.earlier_writes, true) +
      (earlier_line.empty() ? "" : " in " + earlier_line) + ";\n" + what_is_missing(conflict);
  if (access.allocation) detail += "\n" + describe(*access.allocation);
  return {false, "race on " + element_at(access, first), instructions()[conflict.site].text, detail};
}

// ---- judgement

// The instruction whose repetition shows that a conflict is no mistake: 0 if nothing can.
Site excuse(const Conflict& conflict) {
  const Kind now = conflict.access->kind, before = kind_of(conflict.earlier_site);
  if (is_atomic(before) && now == Kind::plain && !conflict.access->is_write) return conflict.site;
  if (is_atomic(now) && before == Kind::plain && !conflict.earlier_writes) return conflict.earlier_site;
  if (now == Kind::is_volatile && before == Kind::is_volatile) return conflict.earlier_site;
  return 0;
}

void report(const Conflict& conflict) {
  const Site doubtful = excuse(conflict);
  if (instructions()[doubtful].is_repeated) return;
  const void *line = line_of(conflict.site), *earlier_line = line_of(conflict.earlier_site);
  Race& race =
      races()[{std::min(line, earlier_line), std::max(line, earlier_line), thing_of(*conflict.access)}];
  race.cause = {Check::races, "race", nullptr, &race};
  race.numbers = std::minmax({number_of(conflict.site), number_of(conflict.earlier_site)});
  race.is_of_lanes = doubtful && conflict.access->kind == Kind::is_volatile;
  if (doubtful)
    race.doubtful.insert(doubtful);
  else
    race.is_certain = true;
  // One word may be a flag, several are data.
  if (!race.word) race.word = conflict.word;
  if (race.is_of_lanes && race.word == conflict.word) return;
  if (is_new(race.cause)) add(race.cause, finding_of(conflict));
}

}  // namespace

Site site_of(const Access& access) {
  static auto& sites = *new std::unordered_map<const void*, Site>;
  static struct {
    const void* counter;
    Site site;
  } cache[1024];
  auto& near = cache[reinterpret_cast<std::uintptr_t>(access.counter) % std::size(cache)];
  if (near.counter == access.counter) return near.site;
  if (sites.size() + kKinds >= kMostSites) return Site(access.kind);
  const auto [known, is_new] = sites.try_emplace(access.counter, Site(instructions().size()));
  if (is_new) instructions().push_back({access.counter, access.kind, false, nullptr, ""});
  near = {access.counter, known->second};
  return near.site;
}

// Atomics among themselves need no order, nor do volatile accesses, with which flags are polled. But lanes of
// a warp that pass data through volatile memory count on a common step that they no longer have.
bool must_be_ordered(const Conflict& conflict) {
  const Kind now = conflict.access->kind, before = kind_of(conflict.earlier_site);
  if (now == Kind::plain || before == Kind::plain) return true;
  return now == Kind::is_volatile && before == Kind::is_volatile && conflict.access->is_write &&
         !conflict.earlier_writes && conflict.access->arena && conflict.now.same_warp(conflict.earlier);
}

void note_conflict(const Conflict& conflict) {
  if (conflict.access->kind != Kind::plain || !conflict.access->is_write) {
    report(conflict);
    return;
  }
  has_doubts = true;
  doubtful_access = *conflict.access;
  doubtful_thread = current;
  Doubt& doubt = doubts.emplace_back(Doubt{conflict, {}});
  doubt.conflict.access = &doubtful_access;
  std::memcpy(doubt.before, conflict.word, 4);
}

// A plain read with an atomic right behind it is a first look, which the atomic confirms (as in loops around
// atomicCAS). A volatile read with the same one behind it waits for a flag. So do then all reads of that
// line.
void note_again(const Conflict& conflict) {
  if (conflict.earlier_writes) return;
  const Kind now = conflict.access->kind, before = kind_of(conflict.earlier_site);
  if ((is_atomic(now) && before == Kind::plain) ||
      (now == Kind::is_volatile && conflict.site == conflict.earlier_site))
    instructions()[conflict.earlier_site].is_repeated = true;
}

void note_unwritten(const Access& access, const std::byte* address) {
  const Site site = site_of(access);
  Cause& cause = unwritten()[{line_of(site), nullptr, thing_of(access)}];
  cause = {Check::initialisation, "unwritten", nullptr, &cause};
  if (!is_new(cause)) return;
  const std::string what = is_atomic(access.kind) ? "updates " : "reads ";
  const std::string nobody =
      access.arena ? ", which no thread of the block has written" : ", which nobody has written";
  add(cause, {false, what + element_at(access, address) + nobody, instructions()[site].text,
              access.allocation ? describe(*access.allocation) : ""});
}

void settle_doubts() {
  has_doubts = false;
  const auto changes = [](const Doubt& doubt) {
    for (int i = 0; i < 4; i++)
      if (doubt.conflict.bytes >> i & 1 && doubt.conflict.word[i] != doubt.before[i]) return true;
    return false;
  };
  const auto wrong = std::find_if(doubts.begin(), doubts.end(), changes);
  if (wrong != doubts.end()) {
    Thread* const running_now = std::exchange(current, doubtful_thread);
    report(wrong->conflict);
    current = running_now;
  }
  doubts.clear();
}

// A chain of steps that all lack a __syncwarp is one mistake: the first step of it tells.
bool is_later_step(const Race& race, const void* thing) {
  return race.is_of_lanes && std::any_of(races().begin(), races().end(), [&](const auto& other) {
           return other.second.is_of_lanes && std::get<2>(other.first) == thing &&
                  other.second.numbers < race.numbers;
         });
}

// What is read before anybody wrote it, and written by another thread without an order, is only a race.
void forgive_conflicts() {
  for (auto entry = races().begin(); entry != races().end();) {
    Race& race = entry->second;
    const bool is_forgiven =
        !race.is_certain && std::all_of(race.doubtful.begin(), race.doubtful.end(),
                                        [](Site site) { return instructions()[site].is_repeated; });
    race.is_certain = true;
    if (is_forgiven) withdraw(race.cause);
    entry = is_forgiven ? races().erase(entry) : std::next(entry);
  }
  for (const auto& [key, race] : races())
    if (is_later_step(race, std::get<2>(key))) withdraw(race.cause);
  std::erase_if(unwritten(), [](const auto& entry) {
    const auto& [line, none, thing] = entry.first;
    const bool is_race =
        std::any_of(races().begin(), races().end(), [&, line = line, thing = thing](const auto& race) {
          const auto& [one, other, shared_thing] = race.first;
          return shared_thing == thing && (one == line || other == line);
        });
    if (is_race) withdraw(entry.second);
    return is_race;
  });
}

void forget_conflicts() {
  has_doubts = false;
  doubts.clear();
  if (collect_until_exit) return;
  races().clear();
  unwritten().clear();
}

}  // namespace emulator
