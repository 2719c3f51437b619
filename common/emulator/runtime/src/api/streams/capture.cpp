// Capture of streams into graphs: work becomes nodes, and events become dependencies.
#include <algorithm>
#include <set>

#include "../../report/call.h"
#include "graph.h"

namespace emulator {
namespace {

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;
unsigned long long captures = 0;

void add_missing(Nodes& nodes, const Nodes& more) {
  for (const cudaGraphNode_t node : more)
    if (!std::count(nodes.begin(), nodes.end(), node)) nodes.push_back(node);
}

// The captures that a call outside of them could disturb.
std::vector<Capture*> captures_under_way() {
  std::vector<Capture*> found;
  for (const CUstream_st* stream : all_streams())
    if (stream->capture && stream->capture->origin == stream) found.push_back(stream->capture.get());
  return found;
}

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.is_valid = false;
  return fail(error);
}

void report_capture(const char* problem, const std::string& what, std::string detail) {
  add_call_finding(Check::streams, problem, nullptr, std::string(Call::under_way()->name) + what,
                   std::move(detail));
}

// Whether every node of the capture is before the last nodes of the stream that began it.
bool is_joined(const Capture& capture) {
  std::set<cudaGraphNode_t> reached;
  Nodes open = capture.origin->captured;
  while (!open.empty()) {
    const cudaGraphNode_t node = open.back();
    open.pop_back();
    if (reached.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return reached.size() == capture.graph->nodes.size();
}

void leave(Capture& capture) {
  capture.is_over = true;
  for (CUstream_st* stream : all_streams())
    if (stream->capture.get() == &capture) {
      stream->captured.clear();
      stream->capture.reset();
    }
}

cudaError_t end_capture(CUstream_st& stream, cudaGraph_t* graph) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) return fail(cudaErrorIllegalState);
  if (capture->origin != &stream) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
  const bool is_whole = is_joined(*capture);
  leave(*capture);
  if (!capture->is_valid) return fail(cudaErrorStreamCaptureInvalidated);
  if (!is_whole) {
    report_capture("unjoined", " ends a capture before another stream in it has joined it",
                   "record an event in the other stream, and let the first stream wait for it");
    return fail(cudaErrorStreamCaptureUnjoined);
  }
  return *graph = capture->graph, cudaSuccess;
}

cudaStreamCaptureStatus status_of(const CUstream_st& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->is_valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
}

}  // namespace

bool is_captured(cudaStream_t stream) {
  const CUstream_st* found = find(stream);
  return found && found->capture;
}

cudaError_t capture_work(CUstream_st& stream, Work work) {
  if (!stream.capture->is_valid) return fail(cudaErrorStreamCaptureInvalidated);
  stream.captured = {new_node(stream.capture->graph, std::move(work), stream.captured)};
  return cudaSuccess;
}

cudaError_t join_capture(CUstream_st& stream, const CUevent_st& event) {
  if (!event.capture) {
    report_capture("isolation", " lets a captured stream wait for work outside of its capture",
                   "record the event after cudaStreamBeginCapture, in a stream of the same capture");
    return invalidate(*stream.capture, cudaErrorStreamCaptureIsolation);
  }
  if (event.capture->is_over) return fail(cudaErrorCapturedEvent);
  if (stream.capture && stream.capture != event.capture)
    return invalidate(*stream.capture, cudaErrorStreamCaptureMerge);
  if (is_default(stream)) return invalidate(*event.capture, cudaErrorStreamCaptureImplicit);
  stream.capture = event.capture;
  add_missing(stream.captured, event.captured);
  return cudaSuccess;
}

cudaError_t refuse_in_capture(const char* problem, std::string detail) {
  report_capture(problem, " is called while a stream is captured into a graph", std::move(detail));
  for (Capture* capture : captures_under_way()) capture->is_valid = false;
  return fail(cudaErrorStreamCaptureUnsupported);
}

cudaError_t check_no_capture() {
  const auto all = captures_under_way();
  const bool is_disturbed = std::any_of(all.begin(), all.end(), [](const Capture* capture) {
    return capture->mode != cudaStreamCaptureModeRelaxed && mode_of_thread != cudaStreamCaptureModeRelaxed;
  });
  if (!is_disturbed) return cudaSuccess;
  return refuse_in_capture("in capture",
                           "call it before cudaStreamBeginCapture or after cudaStreamEndCapture");
}

cudaError_t check_no_implicit_capture() {
  for (Capture* capture : captures_under_way())
    if (capture->origin->is_blocking()) {
      report_capture("implicit", " uses the default stream while another stream is captured into a graph",
                     "the other stream waits for the default stream: use the captured stream instead");
      return invalidate(*capture, cudaErrorStreamCaptureImplicit);
    }
  return cudaSuccess;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode, Position where) {
  const Call call("cudaStreamBeginCapture", where);
  if (sticky_error()) return sticky_error();
  CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  if (is_default(*found)) return fail(cudaErrorStreamCaptureUnsupported);
  if (found->capture) return fail(cudaErrorIllegalState);
  found->capture = std::make_shared<Capture>(Capture{new_graph(), found, mode, ++captures});
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, Position where) {
  const Call call("cudaStreamEndCapture", where);
  if (sticky_error()) return sticky_error();
  CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  if (!graph) return fail(cudaErrorInvalidValue);
  *graph = nullptr;
  return end_capture(*found, graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status, Position where) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr, where);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     std::size_t* count, Position where) {
  const Call call("cudaStreamGetCaptureInfo", where);
  const CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  *status = status_of(*found);
  if (!found->capture) return cudaSuccess;
  if (id) *id = found->capture->id;
  if (graph) *graph = found->capture->graph;
  if (dependencies) *dependencies = found->captured.data();
  if (edges) *edges = nullptr;
  if (count) *count = found->captured.size();
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return std::swap(*mode, mode_of_thread), cudaSuccess;
}
