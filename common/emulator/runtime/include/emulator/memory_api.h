// CUDA's runtime API for memory: allocations, pools, copies, and `__device__` variables.
#pragma once

#include "emulator/runtime_api.h"

EMULATOR_BEGIN
namespace emulator {
// Never defined: `decltype(&cudaFree)` becomes the type of this, since cudaFree itself also takes a position.
template <class T>
cudaError_t deleter(T);
}  // namespace emulator

// They return uninitialised memory, which contains the uninitialised pattern.
cudaError_t cudaMalloc(void** memory, std::size_t bytes, EMULATOR_HERE);
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                            EMULATOR_HERE);
cudaError_t cudaMallocPitch(void** memory, std::size_t* pitch, std::size_t width, std::size_t height,
                            EMULATOR_HERE);
cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent, EMULATOR_HERE);
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned int flags = cudaMemAttachGlobal,
                              EMULATOR_HERE);
cudaError_t cudaMallocHost(void** memory, std::size_t bytes, EMULATOR_HERE);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE);
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE);
cudaError_t cudaHostUnregister(void* memory, EMULATOR_HERE);
cudaError_t cudaHostGetDevicePointer(void** on_device, void* memory, unsigned int flags, EMULATOR_HERE);
cudaError_t cudaHostGetFlags(unsigned int* flags, void* memory, EMULATOR_HERE);
cudaError_t cudaFree(void* memory, EMULATOR_HERE);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaFreeHost(void* memory, EMULATOR_HERE);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
// Where managed memory is makes no difference here. CUDA 12 has a number for the location.
cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, int device,
                                 cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location, EMULATOR_HERE);
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise advice, int device,
                          EMULATOR_HERE);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* memory, std::size_t bytes = 0,
                                     unsigned int flags = cudaMemAttachSingle, EMULATOR_HERE);

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* wanted, std::size_t count);
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                    EMULATOR_HERE);

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy, EMULATOR_HERE);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                           EMULATOR_HERE);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes, EMULATOR_HERE);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream = nullptr,
                            EMULATOR_HERE);
cudaError_t cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width, std::size_t height,
                         EMULATOR_HERE);
cudaError_t cudaMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent, EMULATOR_HERE);
cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent,
                              cudaStream_t stream = nullptr, EMULATOR_HERE);

inline cudaPitchedPtr make_cudaPitchedPtr(void* memory, std::size_t pitch, std::size_t width,
                                          std::size_t height) {
  return {memory, pitch, width, height};
}
inline cudaPos make_cudaPos(std::size_t x, std::size_t y, std::size_t z) { return {x, y, z}; }
inline cudaExtent make_cudaExtent(std::size_t width, std::size_t height, std::size_t depth) {
  return {width, height, depth};
}

namespace emulator {

// The rewriter calls these after each `__device__`, `__constant__` and `__managed__` variable.
bool new_variable(const volatile void* variable, std::size_t size, const ArrayShape& shape, const char* name,
                  bool is_constant, Position where);
template <typename T>
bool variable(const T& variable, const char* name, Position where = Position::current()) {
  return new_variable(const_cast<const void*>(static_cast<const volatile void*>(&variable)), sizeof(T),
                      ArrayShapeOf<T>::value, name, false, where);
}
template <typename T>
bool constant(const T& variable, const char* name, Position where = Position::current()) {
  return new_variable(&variable, sizeof(T), ArrayShapeOf<T>::value, name, true, where);
}

void* new_managed(const void* initial, std::size_t size, const char* name, Position where);
template <typename T>
T& managed(T& initial, const char* name, Position where = Position::current()) {
  return *static_cast<T*>(new_managed(&initial, sizeof(T), name, where));
}

cudaError_t copy_to_symbol(const void* symbol, std::size_t size, const void* from, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                           Position where);
cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                             Position where);
cudaError_t address_of_symbol(void** address, const void* symbol, std::size_t size, Position where);

}  // namespace emulator

#define EMULATOR_TYPED(name, parameters, ...)                   \
  template <typename T>                                         \
  cudaError_t name parameters {                                 \
    return name(reinterpret_cast<void**>(memory), __VA_ARGS__); \
  }
EMULATOR_TYPED(cudaMalloc, (T * *memory, std::size_t bytes, EMULATOR_HERE), bytes, where)
EMULATOR_TYPED(cudaMallocAsync, (T * *memory, std::size_t bytes, cudaStream_t stream, EMULATOR_HERE), bytes,
               stream, where)
EMULATOR_TYPED(cudaMallocFromPoolAsync,
               (T * *memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream, EMULATOR_HERE),
               bytes, pool, stream, where)
EMULATOR_TYPED(cudaMallocAsync,
               (T * *memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream, EMULATOR_HERE),
               bytes, pool, stream, where)
EMULATOR_TYPED(cudaMallocPitch,
               (T * *memory, std::size_t* pitch, std::size_t width, std::size_t height, EMULATOR_HERE), pitch,
               width, height, where)
EMULATOR_TYPED(cudaMallocManaged,
               (T * *memory, std::size_t bytes, unsigned int flags = cudaMemAttachGlobal, EMULATOR_HERE),
               bytes, flags, where)
EMULATOR_TYPED(cudaHostAlloc, (T * *memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE), bytes,
               flags, where)
EMULATOR_TYPED(cudaHostGetDevicePointer, (T * *memory, void* host, unsigned int flags, EMULATOR_HERE), host,
               flags, where)
// In CUDA 13 only this one has flags.
EMULATOR_TYPED(cudaMallocHost, (T * *memory, std::size_t bytes, unsigned int, EMULATOR_HERE), bytes, where)
EMULATOR_TYPED(cudaMallocHost, (T * *memory, std::size_t bytes, EMULATOR_HERE), bytes, where)
#undef EMULATOR_TYPED

template <typename T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice, EMULATOR_HERE) {
  return emulator::copy_to_symbol(&symbol, sizeof(T), from, bytes, offset, kind, nullptr, where);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = nullptr, EMULATOR_HERE) {
  return emulator::copy_to_symbol(&symbol, sizeof(T), from, bytes, offset, kind, &stream, where);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost, EMULATOR_HERE) {
  return emulator::copy_from_symbol(to, &symbol, sizeof(T), bytes, offset, kind, nullptr, where);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr, EMULATOR_HERE) {
  return emulator::copy_from_symbol(to, &symbol, sizeof(T), bytes, offset, kind, &stream, where);
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol, EMULATOR_HERE) {
  return emulator::address_of_symbol(address, &symbol, sizeof(T), where);
}
template <typename T>
cudaError_t cudaGetSymbolSize(std::size_t* size, const T&) {
  return *size = sizeof(T), cudaSuccess;
}

EMULATOR_END
