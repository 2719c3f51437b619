// The order of work: streams, events and their steps.
#pragma once

#include <map>
#include <memory>

#include "streams.h"

EMULATOR_BEGIN
namespace emulator {

// Memory that other work accessed too early. It is watched to see whether this step, which should have run
// first, changes it.
struct WatchedMemory {
  const std::byte* begin;
  std::size_t bytes;
  std::string what;  // the work that did not wait
  Position where;
  std::uint64_t graph_launch;
};

// Queued work, or the position of an event in a stream.
struct Step {
  std::uint64_t number;  // in the order in which the host enqueued the work
  std::uint64_t turn;    // in the order in which it runs
  Work work;
  std::vector<std::shared_ptr<Step>> after;  // what must be done before
  std::vector<WatchedMemory> watched;
  int device = 0;                  // that runs it
  std::uint64_t graph_launch = 0;  // of which launch of a graph it is a node; 0 for other work
  bool done = false, asked = false;
  long long when = 0;  // nanoseconds
};
using Steps = std::vector<std::shared_ptr<Step>>;

struct Capture;

}  // namespace emulator

struct CUstream_st {
  unsigned int flags;
  int priority;
  int device;
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> attributes =
      {};  // that programs set: without effect
  bool destroyed = false;
  std::shared_ptr<emulator::Step> last{};        // null: nothing yet
  std::shared_ptr<emulator::Capture> capture{};  // of a stream that is captured: into which graph,
  std::vector<cudaGraphNode_t> captured{};       // and its last nodes

  bool is_blocking() const { return !(flags & cudaStreamNonBlocking); }
  bool is_busy() const { return last && !last->done; }
};

struct CUevent_st {
  unsigned int flags;
  int device;
  std::shared_ptr<emulator::Step> recorded{};
  std::shared_ptr<emulator::Capture> capture{};  // if it was last recorded in a captured stream,
  std::vector<cudaGraphNode_t> captured{};       // and the nodes before it
};

namespace emulator {

CUstream_st* find(cudaStream_t stream);     // null when there is no such stream
CUevent_st* find_event(cudaEvent_t event);  // null when there is no such event
CUstream_st* new_stream(unsigned int flags, int priority, int device);
bool is_default(const CUstream_st& stream);
std::vector<CUstream_st*> all_streams();  // but the default ones
void clear_away();                        // removes destroyed streams without work

// The last step of a stream, and of the streams it waits for by the rules of the default stream.
Steps ends_of(const CUstream_st& stream);
std::shared_ptr<Step> append(CUstream_st& stream, Work work);
std::shared_ptr<Step> append_after(Steps after, Work work, int device);  // in no stream
// Runs these steps and the steps that they need, and nothing else, in the order in which they were enqueued.
void finish_steps(Steps steps);
void finish_oldest();  // of all that wait, and what it needs
bool has_waiting_work();

// Runs a step while steps that were enqueued earlier may still wait. If both use the same memory and one of
// them changes it, the later step lacks a wait, and that is a finding.
void run_and_find_hazards(Step& step, const std::map<std::uint64_t, std::shared_ptr<Step>>& waiting);

}  // namespace emulator
EMULATOR_END
