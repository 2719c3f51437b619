// cuFFT: plans, and their execution as work in a stream.
#include <algorithm>
#include <map>
#include <memory>

#include "cufft.h"
#include "emulator/operands.h"
#include "fourier.h"

namespace emulator::cufft {
namespace {

constexpr int kMostRank = 3;

// Where the elements of one side are; `is_given` if the program said so.
struct Layout {
  bool is_given = false;
  std::int64_t embed[kMostRank] = {1, 1, 1}, stride = 1, distance = 0;

  std::int64_t place(std::int64_t b, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return b * distance + ((x * embed[1] + y) * embed[2] + z) * stride;
  }
};

struct Plan {
  cufftType type{};
  std::int64_t sizes[kMostRank] = {1, 1, 1};  // the last one is the fastest; those that are left out are 1
  std::int64_t batch = 0;                     // 0: there is no plan yet
  Layout in, out;
  cudaStream_t stream = nullptr;

  std::int64_t half() const { return sizes[2] / 2 + 1; }
  std::int64_t elements() const { return sizes[0] * sizes[1] * sizes[2]; }
};

std::map<cufftHandle, Plan>& plans() {
  static auto& all = *new std::map<cufftHandle, Plan>;
  return all;
}

Plan* find_plan(cufftHandle handle) {
  const auto found = plans().find(handle);
  return found == plans().end() ? nullptr : &found->second;
}

bool is_type(cufftType type) {
  return type == CUFFT_C2C || type == CUFFT_R2C || type == CUFFT_C2R || type == CUFFT_Z2Z ||
         type == CUFFT_D2Z || type == CUFFT_Z2D;
}

// Contiguous elements, with a last dimension of some length.
Layout contiguous(const Plan& plan, std::int64_t last) {
  return {false, {plan.sizes[0], plan.sizes[1], last}, 1, plan.sizes[0] * plan.sizes[1] * last};
}

Layout given(int rank, const int* embed, int stride, int distance) {
  Layout layout{true, {1, 1, 1}, stride, distance};
  std::copy(embed, embed + rank, layout.embed + kMostRank - rank);
  return layout;
}

cufftResult make(cufftHandle handle, int rank, const int* sizes, const Layout* in, const Layout* out,
                 cufftType type, int batch, std::size_t* work_bytes) {
  Plan* plan = find_plan(handle);
  if (!plan || plan->batch) return CUFFT_INVALID_PLAN;
  if (!is_type(type)) return CUFFT_INVALID_TYPE;
  if (rank < 1 || rank > kMostRank || !sizes) return CUFFT_INVALID_VALUE;
  if (batch < 1 || std::any_of(sizes, sizes + rank, [](int size) { return size < 1; }))
    return CUFFT_INVALID_SIZE;
  plan->type = type;
  plan->batch = batch;
  std::copy(sizes, sizes + rank, plan->sizes + kMostRank - rank);
  if (in) plan->in = *in;
  if (out) plan->out = *out;
  if (work_bytes) *work_bytes = 0;
  return CUFFT_SUCCESS;
}

// The result of a function that makes a plan, for a new handle.
template <typename Make>
cufftResult make_new(cufftHandle* handle, Make make) {
  if (const cufftResult result = cufftCreate(handle)) return result;
  const cufftResult result = make(*handle);
  if (result) plans().erase(*handle);
  return result;
}

// The elements of one side, as operands; a line has `last` elements.
template <typename T, typename Add>
void add_elements(const Plan& plan, const Layout& layout, std::int64_t last, const T* begin, Add add) {
  const std::size_t element = sizeof(T), line = element * last;
  const std::int64_t nx = plan.sizes[0], ny = plan.sizes[1];
  if (layout.stride == 1 && nx * ny == 1)
    return add({begin, layout.distance * element, line, std::size_t(plan.batch)});
  if (nx * ny == 1)
    return add({begin, layout.stride * element, element, std::size_t(last), layout.distance * element,
                std::size_t(plan.batch)});
  for (std::int64_t b = 0; b < plan.batch; b++) {
    if (layout.stride == 1) {
      const std::size_t pitch = layout.embed[2] * element;
      add({begin + layout.place(b, 0, 0, 0), pitch, line, std::size_t(ny), pitch * layout.embed[1],
           std::size_t(nx)});
      continue;
    }
    for (std::int64_t x = 0; x < nx; x++)
      add({begin + layout.place(b, x, 0, 0), layout.stride * element, element, std::size_t(last),
           layout.stride * layout.embed[2] * element, std::size_t(ny)});
  }
}

template <typename Take>
void each_element(const Plan& plan, std::int64_t last, Take take) {
  for (std::int64_t x = 0; x < plan.sizes[0]; x++)
    for (std::int64_t y = 0; y < plan.sizes[1]; y++)
      for (std::int64_t z = 0; z < last; z++) take(x, y, z);
}

// Transforms along each dimension. `all` has the elements of one transform, in order.
void transform(const Plan& plan, const std::unique_ptr<Fourier> (&lines)[kMostRank],
               std::vector<Complex>& all) {
  std::int64_t step = 1;
  for (int dimension = kMostRank - 1; dimension >= 0; dimension--) {
    const std::int64_t size = plan.sizes[dimension];
    std::vector<Complex> line(size);
    for (std::int64_t first = 0; size > 1 && first < plan.elements(); first++) {
      if (first / step % size) continue;  // not the beginning of a line
      lines[dimension]->transform(&all[first], step, line.data());
      for (std::int64_t k = 0; k < size; k++) all[first + k * step] = line[k];
    }
    step *= size;
  }
}

Complex read(const float& x) { return x; }
Complex read(const double& x) { return x; }
Complex read(const cufftComplex& x) { return {x.x, x.y}; }
Complex read(const cufftDoubleComplex& x) { return {x.x, x.y}; }
void write(float& x, Complex value) { x = float(value.real()); }
void write(double& x, Complex value) { x = value.real(); }
void write(cufftComplex& x, Complex value) { x = {float(value.real()), float(value.imag())}; }
void write(cufftDoubleComplex& x, Complex value) { x = {value.real(), value.imag()}; }

// Executes all transforms. If only half of the elements are given, the others are their conjugates.
template <typename In, typename Out>
void compute(const Plan& plan, const Layout& from, const Layout& to, std::int64_t last_in,
             std::int64_t last_out, const In* in, Out* out, int sign) {
  const auto [nx, ny, nz] = plan.sizes;
  std::unique_ptr<Fourier> lines[kMostRank];
  for (int i = 0; i < kMostRank; i++) lines[i] = std::make_unique<Fourier>(plan.sizes[i], sign);
  std::vector<std::vector<Complex>> all(plan.batch);  // read before anything is written: out may be in
  for (std::int64_t b = 0; b < plan.batch; b++) {
    all[b].resize(plan.elements());
    each_element(plan, nz, [&, nx = nx, ny = ny, nz = nz](std::int64_t x, std::int64_t y, std::int64_t z) {
      const bool is_given = z < last_in;
      const std::int64_t place =
          is_given ? from.place(b, x, y, z) : from.place(b, (nx - x) % nx, (ny - y) % ny, nz - z);
      all[b][(x * ny + y) * nz + z] = is_given ? read(in[place]) : std::conj(read(in[place]));
    });
  }
  for (std::int64_t b = 0; b < plan.batch; b++) {
    transform(plan, lines, all[b]);
    each_element(plan, last_out, [&, ny = ny, nz = nz](std::int64_t x, std::int64_t y, std::int64_t z) {
      write(out[to.place(b, x, y, z)], all[b][(x * ny + y) * nz + z]);
    });
  }
}

template <typename In, typename Out>
cufftResult execute(const char* name, Position where, cufftHandle handle, cufftType type, In* in, Out* out,
                    int sign) {
  const Plan* plan = find_plan(handle);
  if (!plan || !plan->batch) return CUFFT_INVALID_PLAN;
  if (plan->type != type) return CUFFT_INVALID_TYPE;
  if ((sign != CUFFT_FORWARD && sign != CUFFT_INVERSE) || !in || !out) return CUFFT_INVALID_VALUE;
  const bool is_real_in = std::is_floating_point_v<In>, is_real_out = std::is_floating_point_v<Out>;
  const bool in_place = static_cast<void*>(in) == out;
  const std::int64_t nz = plan->sizes[2], last_in = is_real_out ? plan->half() : nz;
  const std::int64_t last_out = is_real_in ? plan->half() : nz, padded = 2 * plan->half();
  const Layout from =
      plan->in.is_given ? plan->in : contiguous(*plan, is_real_in && in_place ? padded : last_in);
  const Layout to =
      plan->out.is_given ? plan->out : contiguous(*plan, is_real_out && in_place ? padded : last_out);
  LibraryCall call(name, where);
  add_elements(*plan, from, last_in, in, [&](const Rows& rows) { call.reads("idata", 1, rows); });
  add_elements(*plan, to, last_out, out, [&](const Rows& rows) { call.writes("odata", 2, rows); });
  const cudaError_t error = call.submit(
      plan->stream, [=, plan = *plan] { compute(plan, from, to, last_in, last_out, in, out, sign); });
  return error ? CUFFT_EXEC_FAILED : CUFFT_SUCCESS;
}

}  // namespace
}  // namespace emulator::cufft

using namespace emulator;
using namespace emulator::cufft;

cufftResult cufftCreate(cufftHandle* plan) {
  static cufftHandle next = 0;
  if (!plan) return CUFFT_INVALID_VALUE;
  plans()[*plan = ++next] = {};
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle plan, Position where) {
  if (!find_plan(plan)) return CUFFT_INVALID_PLAN;
  const Call call("cufftDestroy", where);
  finish_all();
  plans().erase(plan);
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, std::size_t* work_bytes) {
  return make(plan, 1, &nx, nullptr, nullptr, type, batch, work_bytes);
}
cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, std::size_t* work_bytes) {
  const int sizes[] = {nx, ny};
  return make(plan, 2, sizes, nullptr, nullptr, type, 1, work_bytes);
}
cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type,
                            std::size_t* work_bytes) {
  const int sizes[] = {nx, ny, nz};
  return make(plan, 3, sizes, nullptr, nullptr, type, 1, work_bytes);
}
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* sizes, int* in_embed, int in_stride,
                              int in_distance, int* out_embed, int out_stride, int out_distance,
                              cufftType type, int batch, std::size_t* work_bytes) {
  if (rank < 1 || rank > kMostRank) return CUFFT_INVALID_VALUE;
  if (!in_embed || !out_embed) return make(plan, rank, sizes, nullptr, nullptr, type, batch, work_bytes);
  const Layout in = given(rank, in_embed, in_stride, in_distance);
  const Layout out = given(rank, out_embed, out_stride, out_distance);
  return make(plan, rank, sizes, &in, &out, type, batch, work_bytes);
}
cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch) {
  return make_new(plan, [&](cufftHandle made) { return cufftMakePlan1d(made, nx, type, batch, nullptr); });
}
cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type) {
  return make_new(plan, [&](cufftHandle made) { return cufftMakePlan2d(made, nx, ny, type, nullptr); });
}
cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type) {
  return make_new(plan, [&](cufftHandle made) { return cufftMakePlan3d(made, nx, ny, nz, type, nullptr); });
}
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* sizes, int* in_embed, int in_stride,
                          int in_distance, int* out_embed, int out_stride, int out_distance, cufftType type,
                          int batch) {
  return make_new(plan, [&](cufftHandle made) {
    return cufftMakePlanMany(made, rank, sizes, in_embed, in_stride, in_distance, out_embed, out_stride,
                             out_distance, type, batch, nullptr);
  });
}

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
  if (!find_plan(plan)) return CUFFT_INVALID_PLAN;
  return find_plan(plan)->stream = stream, CUFFT_SUCCESS;
}
cufftResult cufftSetAutoAllocation(cufftHandle plan, int) {
  return find_plan(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetWorkArea(cufftHandle plan, void*) {
  return find_plan(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftGetSize(cufftHandle plan, std::size_t* work_bytes) {
  if (!find_plan(plan)) return CUFFT_INVALID_PLAN;
  return *work_bytes = 0, CUFFT_SUCCESS;
}
cufftResult cufftEstimate1d(int, cufftType, int, std::size_t* work_bytes) {
  return *work_bytes = 0, CUFFT_SUCCESS;
}
cufftResult cufftGetVersion(int* version) { return *version = CUFFT_VERSION, CUFFT_SUCCESS; }
cufftResult cufftGetProperty(libraryPropertyType property, int* value) {
  static constexpr int parts[] = {CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH};
  if (!value || property < 0 || property > 2) return CUFFT_INVALID_VALUE;
  return *value = parts[property], CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction,
                         Position where) {
  return execute("cufftExecC2C", where, plan, CUFFT_C2C, in, out, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out, Position where) {
  return execute("cufftExecR2C", where, plan, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out, Position where) {
  return execute("cufftExecC2R", where, plan, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction,
                         Position where) {
  return execute("cufftExecZ2Z", where, plan, CUFFT_Z2Z, in, out, direction);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out, Position where) {
  return execute("cufftExecD2Z", where, plan, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out, Position where) {
  return execute("cufftExecZ2D", where, plan, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
