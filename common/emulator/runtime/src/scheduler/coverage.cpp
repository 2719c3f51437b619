#include "coverage.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "../report/report.h"
#include "../state/events.h"
#include "../state/settings.h"
#include "../state/thread_order.h"
#include "launch_times.h"

namespace emulator {

volatile bool must_end_checks = false;

namespace {

constexpr double kSeconds = 5;      // of a launch, for which all of its blocks are checked
constexpr double kOfProgram = 4;    // so many times as long for all launches of a program,
constexpr double kOfRest = 0.25;    // and this share of the time that other blocks took
constexpr double kFirstPart = 0.2;  // of the time for all blocks
constexpr double kLeast = 0.001;    // seconds that are worth the checks
constexpr int kRandomPlaces = 1000, kPlacesOnSide = 4;

enum CoveragePhase { all_blocks, sample_of_blocks, no_blocks };

struct Coverage {
  bool has_begun = false, may_end = false;
  CoveragePhase phase = all_blocks;
  volatile std::sig_atomic_t due = all_blocks;  // the phase that should begin
  double seconds = 0;                           // for all blocks
  std::vector<std::uint64_t> sample;  // of clusters, by number in the order; the next one is the last
  bool checks_before[kChecks] = {};
  std::uint64_t checked_blocks = 0;
  bool is_timed = false;  // by the processor time of this core, after a first part by the clock
  double began = 0, checked_seconds = 0;
};
Coverage coverage;

// Of launches that were not checked to their end.
struct PartlyChecked {
  unsigned long launches = 0;
  std::uint64_t blocks = 0, checked = 0;
  bool has_left_out = false;  // blocks that have not run at all
  std::set<std::string> kernels;
};
PartlyChecked& partly_checked() {
  static auto& all = *new PartlyChecked;
  return all;
}

double checked_so_far = 0, unchecked_so_far = 0;  // seconds of the process

double seconds_of_core() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// To ask for the processor time takes a microsecond or two, which a short launch need not pay.
double seconds_so_far() {
  return coverage.is_timed ? seconds_of_core() - coverage.began : seconds_of_running_launch();
}

double seconds_of_setting() {
  const char* setting = setting_of("EMULATOR_SAMPLE_AFTER");
  return setting && *setting ? std::atof(setting) : kSeconds;
}

// A program has a time limit as a whole, but an extension has one for each launch.
double seconds_for(double setting) {
  const double of_program = kOfProgram * setting + kOfRest * unchecked_so_far - checked_so_far;
  return collect_until_exit ? std::min(setting, of_program / kOfProgram) : setting;
}

std::uint64_t clusters_of(const Schedule& schedule) { return schedule.blocks / schedule.cluster_size(); }

// Places of clusters in the grid: its corners, some on each of its sides, and random ones, each with its
// neighbours.
class Places {
 public:
  explicit Places(dim3 size) : size_{size.x, size.y, size.z}, random_(seed_of_order()) {
    for (unsigned corner = 8; corner-- > 0;)
      add({corner & 1 ? size_[0] - 1 : 0, corner & 2 ? size_[1] - 1 : 0, corner & 4 ? size_[2] - 1 : 0});
    for (int dimension = 0; dimension < 3; dimension++)
      for (int i = 0; i < 2 * kPlacesOnSide; i++) {
        auto place = choose();
        place[dimension] = i % 2 ? size_[dimension] - 1 : 0;
        add(place);
      }
    for (int i = 0; i < kRandomPlaces; i++) add(choose());
  }
  const std::vector<std::uint64_t>& numbers() const { return numbers_; }  // with x fastest, and repeated ones

 private:
  using Place = std::array<std::uint64_t, 3>;
  Place choose() { return {random_() % size_[0], random_() % size_[1], random_() % size_[2]}; }
  void add(const Place& place) {
    add_number(place);
    for (int dimension = 0; dimension < 3; dimension++) {
      Place neighbour = place;
      neighbour[dimension] += neighbour[dimension] + 1 < size_[dimension] ? 1 : -1;
      if (size_[dimension] > 1) add_number(neighbour);
    }
  }
  void add_number(const Place& place) {
    numbers_.push_back(place[0] + size_[0] * (place[1] + size_[1] * place[2]));
  }

  Place size_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> numbers_;
};

void begin_sample() {
  const Schedule& schedule = running.launch->schedule;
  const dim3 size = schedule.cluster, grid = running.launch->configuration.grid;
  std::set<std::uint64_t> known;
  const Places places({grid.x / size.x, grid.y / size.y, grid.z / size.z});
  for (const std::uint64_t place : places.numbers()) {
    const std::uint64_t number = unshuffled(place, clusters_of(schedule), 0);
    if (number >= schedule.next && known.insert(number).second) coverage.sample.push_back(number);
  }
  std::reverse(coverage.sample.begin(), coverage.sample.end());
  coverage.phase = sample_of_blocks;
}

// Between two clusters. Blocks that are still there wait for others, which may not be in the sample.
std::optional<std::uint64_t> start_next_of_sample() {
  Schedule& schedule = running.launch->schedule;
  const bool is_idle = schedule.resident.empty();
  if (coverage.phase == all_blocks && coverage.due == sample_of_blocks && is_idle) begin_sample();
  const bool is_over = coverage.phase == sample_of_blocks && (coverage.sample.empty() || !is_idle);
  if ((is_over || coverage.due == no_blocks) && schedule.opened < clusters_of(schedule)) end_checks();
  if (coverage.phase != sample_of_blocks || coverage.sample.empty()) return std::nullopt;
  const std::uint64_t number = coverage.sample.back();
  coverage.sample.pop_back();
  auto& early = schedule.started_early;
  early.insert(std::lower_bound(early.begin(), early.end(), number), number);
  return number;
}

void record_partly_checked() {
  PartlyChecked& all = partly_checked();
  const Schedule& schedule = running.launch->schedule;
  if (coverage.checked_blocks == schedule.blocks) return;
  all.launches++;
  all.blocks += schedule.blocks;
  all.checked += coverage.checked_blocks;
  all.has_left_out |= running.launch->error != cudaSuccess;
  all.kernels.insert(running.launch->kernel);
}

}  // namespace

void begin_coverage(bool may_end) {
  const double setting = seconds_of_setting();
  coverage = {};
  coverage.has_begun = true;
  coverage.may_end = may_end && setting > 0;
  coverage.seconds = seconds_for(setting);
  if (coverage.may_end && coverage.seconds < kLeast) coverage.due = no_blocks;
}

void end_coverage() {
  if (!std::exchange(coverage.has_begun, false)) return;
  const double seconds = seconds_so_far();
  must_end_checks = false;
  if (!have_checks_ended()) {
    checked_so_far += seconds;
    return;
  }
  checked_so_far += coverage.checked_seconds;
  unchecked_so_far += seconds - coverage.checked_seconds;
  coverage.phase = all_blocks;
  std::copy(std::begin(coverage.checks_before), std::end(coverage.checks_before), std::begin(enabled_checks));
  running.observes_accesses = true;
  on_checks_go_on();
  record_partly_checked();
}

std::optional<double> seconds_to_next_phase() {
  if (!may_checks_end() || coverage.due == no_blocks) return std::nullopt;
  const double share = !coverage.is_timed ? kFirstPart : coverage.due == all_blocks ? 1 : 1.5;
  return share * coverage.seconds - seconds_so_far();
}

void end_coverage_phase() {
  if (!std::exchange(coverage.is_timed, true)) {
    coverage.began = seconds_of_core() - kFirstPart * coverage.seconds;
    return;
  }
  coverage.due = coverage.due + 1;
  if (coverage.due != no_blocks) return;
  check_every_access();
  must_end_checks = true;
}

bool may_checks_end() { return coverage.has_begun && coverage.may_end; }

bool end_checks_of_all_soon() {
  if (!may_checks_end()) return false;
  if (coverage.due == all_blocks) coverage.due = sample_of_blocks;
  return true;
}

bool have_checks_ended() { return coverage.phase == no_blocks; }

void end_checks() {
  const InRuntime inside;
  must_end_checks = false;
  Schedule& schedule = running.launch->schedule;
  coverage.due = coverage.phase = no_blocks;
  coverage.checked_blocks = schedule.opened * schedule.cluster_size() - schedule.resident.size();
  coverage.checked_seconds = seconds_so_far();
  std::copy(std::begin(enabled_checks), std::end(enabled_checks), std::begin(coverage.checks_before));
  for (const Check check :
       {Check::memory, Check::initialisation, Check::races, Check::barriers, Check::launch})
    enabled_checks[int(check)] = false;
  running.observes_accesses = false;
  on_checks_end();
  if (running.launch->error != cudaSuccess) schedule.next = clusters_of(schedule);  // as on a GPU
}

std::optional<std::uint64_t> start_next_cluster() {
  Schedule& schedule = running.launch->schedule;
  std::optional<std::uint64_t> number;
  if (may_checks_end() && !have_checks_ended()) number = start_next_of_sample();
  if (!number) number = next_in_order(schedule.next, schedule);
  if (number) schedule.opened++;
  return number;
}

std::optional<std::uint64_t> next_in_order(std::uint64_t& next, const Schedule& schedule) {
  const auto& early = schedule.started_early;
  while (std::binary_search(early.begin(), early.end(), next)) next++;
  if (next >= clusters_of(schedule)) return std::nullopt;
  return next++;
}

std::string coverage_note() {
  const PartlyChecked& all = partly_checked();
  if (!all.launches) return "";
  std::string text = std::to_string(all.checked) + " of the " + std::to_string(all.blocks) + " blocks of ";
  if (all.launches > 1) text += std::to_string(all.launches) + " long launches of ";
  text += all.kernels.size() > 1 ? std::to_string(all.kernels.size()) + " kernels"
                                 : "kernel " + *all.kernels.begin();
  text += " were checked, those of the first seconds and a sample (seed " + std::to_string(seed_of_order()) +
          "); ";
  text += all.has_left_out ? "after an error, the others did not run" : "the others ran without checks";
  return text + ". EMULATOR_SAMPLE_AFTER=0 checks all";
}

void forget_coverage() { partly_checked() = {}; }

}  // namespace emulator
