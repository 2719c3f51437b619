// CUDA's functions for streams and events, on top of the queue.
#include <algorithm>
#include <map>

#include "../../counts/counts.h"
#include "../../memory/devices.h"
#include "../../memory/pages.h"
#include "../../report/call.h"
#include "graph.h"
#include "stream_queue.h"

namespace emulator {
namespace {

constexpr const char* kCapturedStream = "work in the stream runs only when the graph is launched";
constexpr const char* kCapturedEvent =
    "the event was recorded in a captured stream, where nothing happens yet";

std::vector<CUevent_st*>& events() {
  static auto& all = *new std::vector<CUevent_st*>;  // outlives every static object
  return all;
}

// The first query of unfinished work is answered with "not ready", because a host may poll.
cudaError_t query(const Steps& ends) {
  if (sticky_error()) return sticky_error();
  const bool all_asked = std::all_of(ends.begin(), ends.end(), [](const auto& step) { return step->asked; });
  for (const auto& step : ends) step->asked = true;
  if (!all_asked) return fail(cudaErrorNotReady);
  finish_steps(ends);
  return sticky_error();
}

cudaError_t create(cudaStream_t* stream, unsigned int flags, int priority) {
  const Call call("cudaStreamCreate", Position{});
  if (sticky_error()) return sticky_error();
  if (!stream || flags > cudaStreamNonBlocking) return fail(cudaErrorInvalidValue);
  return *stream = new_stream(flags, std::clamp(priority, -5, 0), current_device()), cudaSuccess;
}

cudaError_t refuse_other_device(const CUstream_st& stream) {
  const std::string there = std::to_string(stream.device);
  add_call_finding(Check::launch, "stream of another device", &stream,
                   "a launch is given a stream of device " + there + ", but the current device is " +
                       std::to_string(current_device()),
                   "call cudaSetDevice(" + there + ") before the launch");
  return fail(cudaErrorInvalidResourceHandle);
}

}  // namespace

CUevent_st* find_event(cudaEvent_t event) {
  const auto found = std::find(events().begin(), events().end(), event);
  return found == events().end() ? nullptr : *found;
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (sticky_error()) return sticky_error();
  CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  if (work.is_launch() && found->device != current_device()) return refuse_other_device(*found);
  if (found->capture) return capture_work(*found, std::move(work));
  if (is_default(*found))
    if (const cudaError_t error = check_no_implicit_capture()) return error;
  append(*found, std::move(work));
  return sticky_error();
}

Work host_work(const char* given_to, Position where, std::function<void()> function) {
  const auto run = [function = std::move(function)] {
    const OnHost on_host;
    function();
  };
  Work work{"the function given to " + std::string(given_to), where, run};
  work.type = cudaGraphNodeTypeHost;
  return work;
}

cudaStream_t current_stream(int device) {
  if (!counting || collect_until_exit) return nullptr;
  static std::map<int, CUstream_st*> others;
  CUstream_st*& other = others[device];
  if (!other) other = new_stream(cudaStreamNonBlocking, 0, device);
  return other;
}

int& device_guards() {
  static thread_local int alive = 0;
  return alive;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaDeviceSynchronize(Position where) {
  const Call call("cudaDeviceSynchronize", where);
  if (const cudaError_t error = check_no_capture()) return error;
  return sticky_error() ? sticky_error() : finish_device(current_device());
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create(stream, cudaStreamDefault, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return create(stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return create(stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream, Position where) {
  const Call call("cudaStreamDestroy", where);
  if (sticky_error()) return sticky_error();
  CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  if (is_default(*found) || stream == cudaStreamPerThread) return fail(cudaErrorInvalidResourceHandle);
  found->destroyed = true;
  clear_away();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream, Position where) {
  const Call call("cudaStreamSynchronize", where);
  if (sticky_error()) return sticky_error();
  if (!find(stream)) return no_such("a stream");
  if (is_captured(stream)) return refuse_in_capture("captured stream", kCapturedStream);
  return finish(stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream, Position where) {
  const Call call("cudaStreamQuery", where);
  const CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  if (is_captured(stream)) return refuse_in_capture("captured stream", kCapturedStream);
  return query(ends_of(*found));
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags, Position where) {
  const Call call("cudaStreamGetFlags", where);
  const CUstream_st* found = find(stream);
  return found ? (*flags = found->flags, cudaSuccess) : no_such("a stream");
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority, Position where) {
  const Call call("cudaStreamGetPriority", where);
  const CUstream_st* found = find(stream);
  return found ? (*priority = found->priority, cudaSuccess) : no_such("a stream");
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, Position where) {
  const Call call("cudaStreamGetId", where);
  const CUstream_st* found = find(stream);
  return found ? (*id = reinterpret_cast<std::uintptr_t>(found), cudaSuccess) : no_such("a stream");
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device, Position where) {
  const Call call("cudaStreamGetDevice", where);
  const CUstream_st* found = find(stream);
  return found ? (*device = found->device, cudaSuccess) : no_such("a stream");
}
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value, Position where) {
  const Call call("cudaStreamGetAttribute", where);
  const CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  const auto known = found->attributes.find(attribute);
  *value = known == found->attributes.end() ? cudaLaunchAttributeValue{} : known->second;
  if (attribute == cudaLaunchAttributePriority) value->priority = found->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value, Position where) {
  const Call call("cudaStreamSetAttribute", where);
  CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  if (attribute == cudaLaunchAttributePriority) found->priority = value->priority;
  return found->attributes[attribute] = *value, cudaSuccess;
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from, Position where) {
  const Call call("cudaStreamCopyAttributes", where);
  CUstream_st *target = find(to), *source = find(from);
  if (!target || !source) return no_such("a stream");
  return target->attributes = source->attributes, cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int, Position where) {
  const Call call("cudaStreamWaitEvent", where);
  if (sticky_error()) return sticky_error();
  CUstream_st* found = find(stream);
  const CUevent_st* known = find_event(event);
  if (!found) return no_such("a stream");
  if (!known) return no_such("an event");
  if (known->capture || found->capture) return join_capture(*found, *known);
  if (!known->recorded || known->recorded->done) return cudaSuccess;
  const auto step = append(*found, {"cudaStreamWaitEvent", where, nullptr, {}, false});
  if (!step->done) step->after.push_back(known->recorded);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data, Position where) {
  const Call call("cudaLaunchHostFunc", where);
  if (!function) return fail(cudaErrorInvalidValue);
  const auto run = [function, data] { function(data); };
  return enqueue(stream, host_work("cudaLaunchHostFunc", where, run));
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int, Position where) {
  const Call call("cudaStreamAddCallback", where);
  if (!callback) return fail(cudaErrorInvalidValue);
  const auto run = [stream, callback, data] { callback(stream, sticky_error(), data); };
  return enqueue(stream, host_work("cudaStreamAddCallback", where, run));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  const Call call("cudaEventCreate", Position{});
  if (sticky_error()) return sticky_error();
  if (!event) return fail(cudaErrorInvalidValue);
  events().push_back(new CUevent_st{flags, current_device()});
  return *event = events().back(), cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
  return cudaEventCreateWithFlags(event, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event, Position where) {
  const Call call("cudaEventDestroy", where);
  if (sticky_error()) return sticky_error();
  CUevent_st* found = find_event(event);
  if (!found) return no_such("an event");
  std::erase(events(), found);
  delete found;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int, Position where) {
  const Call call("cudaEventRecord", where);
  if (sticky_error()) return sticky_error();
  CUevent_st* known = find_event(event);
  CUstream_st* found = find(stream);
  if (!known) return no_such("an event");
  if (!found) return no_such("a stream");
  if (known->device != found->device) return fail(cudaErrorInvalidResourceHandle);
  known->capture = found->capture;
  known->captured = found->captured;
  if (found->capture) return cudaSuccess;
  known->recorded = append(*found, {"cudaEventRecord", where, nullptr, {}, false});
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream, Position where) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault, where);
}
cudaError_t cudaEventQuery(cudaEvent_t event, Position where) {
  const Call call("cudaEventQuery", where);
  const CUevent_st* known = find_event(event);
  if (!known) return no_such("an event");
  if (known->capture) return refuse_in_capture("captured event", kCapturedEvent);
  if (sticky_error() || !known->recorded || known->recorded->done) return sticky_error();
  return query({known->recorded});
}
cudaError_t cudaEventSynchronize(cudaEvent_t event, Position where) {
  const Call call("cudaEventSynchronize", where);
  const CUevent_st* known = find_event(event);
  if (!known) return no_such("an event");
  if (known->capture) return refuse_in_capture("captured event", kCapturedEvent);
  if (known->recorded && !sticky_error()) finish_steps({known->recorded});
  return sticky_error();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end, Position where) {
  const Call call("cudaEventElapsedTime", where);
  if (sticky_error()) return sticky_error();
  const CUevent_st *first = find_event(begin), *last = find_event(end);
  if (!first || !last) return no_such("an event");
  if (!first->recorded || !last->recorded || (first->flags | last->flags) & cudaEventDisableTiming)
    return fail(cudaErrorInvalidResourceHandle);
  if (!first->recorded->done || !last->recorded->done) return fail(cudaErrorNotReady);
  *milliseconds = float(last->recorded->when - first->recorded->when) * 1e-6f;
  note("event times are those of the emulator and say nothing about a GPU");
  return cudaSuccess;
}
