// cudaDeviceGetAttribute: each attribute is a member of cudaDeviceProp, or a constant.
#include "../memory/devices.h"
#include "../report/call.h"

namespace emulator {
namespace {

// What cudaDeviceProp no longer has since CUDA 13.
constexpr int kClockRate = 1'980'000, kMemoryClockRate = 2'619'000;  // kHz
constexpr int kSingleToDouble = 2;

bool is_reserved(cudaDeviceAttr attribute) {
  return (attribute >= cudaDevAttrReserved92 && attribute <= cudaDevAttrReserved94) ||
         attribute == cudaDevAttrReserved96 ||
         (attribute >= cudaDevAttrReserved122 && attribute <= cudaDevAttrReserved124) ||
         (attribute >= cudaDevAttrReserved127 && attribute <= cudaDevAttrReserved129) ||
         attribute == cudaDevAttrReserved132 || attribute == cudaDevAttrReserved141 ||
         attribute == cudaDevAttrReserved145;
}

// Returns false for an attribute that does not exist.
bool find_attribute(const cudaDeviceProp& d, cudaDeviceAttr attribute, std::size_t& value) {
  const struct {
    cudaDeviceAttr attribute;
    std::size_t value;
  } known[] = {
#define EMULATOR_ATTRIBUTE(name, member) {cudaDevAttr##name, std::size_t(d.member)},
      // clang-format off
      EMULATOR_ATTRIBUTE(MaxThreadsPerBlock, maxThreadsPerBlock)
      EMULATOR_ATTRIBUTE(MaxBlockDimX, maxThreadsDim[0])
      EMULATOR_ATTRIBUTE(MaxBlockDimY, maxThreadsDim[1])
      EMULATOR_ATTRIBUTE(MaxBlockDimZ, maxThreadsDim[2])
      EMULATOR_ATTRIBUTE(MaxGridDimX, maxGridSize[0])
      EMULATOR_ATTRIBUTE(MaxGridDimY, maxGridSize[1])
      EMULATOR_ATTRIBUTE(MaxGridDimZ, maxGridSize[2])
      EMULATOR_ATTRIBUTE(MaxSharedMemoryPerBlock, sharedMemPerBlock)
      EMULATOR_ATTRIBUTE(TotalConstantMemory, totalConstMem)
      EMULATOR_ATTRIBUTE(WarpSize, warpSize)
      EMULATOR_ATTRIBUTE(MaxPitch, memPitch)
      EMULATOR_ATTRIBUTE(MaxRegistersPerBlock, regsPerBlock)
      EMULATOR_ATTRIBUTE(TextureAlignment, textureAlignment)
      EMULATOR_ATTRIBUTE(MultiProcessorCount, multiProcessorCount)
      EMULATOR_ATTRIBUTE(Integrated, integrated)
      EMULATOR_ATTRIBUTE(CanMapHostMemory, canMapHostMemory)
      EMULATOR_ATTRIBUTE(MaxTexture1DWidth, maxTexture1D)
      EMULATOR_ATTRIBUTE(MaxTexture2DWidth, maxTexture2D[0])
      EMULATOR_ATTRIBUTE(MaxTexture2DHeight, maxTexture2D[1])
      EMULATOR_ATTRIBUTE(MaxTexture3DWidth, maxTexture3D[0])
      EMULATOR_ATTRIBUTE(MaxTexture3DHeight, maxTexture3D[1])
      EMULATOR_ATTRIBUTE(MaxTexture3DDepth, maxTexture3D[2])
      EMULATOR_ATTRIBUTE(MaxTexture2DLayeredWidth, maxTexture2DLayered[0])
      EMULATOR_ATTRIBUTE(MaxTexture2DLayeredHeight, maxTexture2DLayered[1])
      EMULATOR_ATTRIBUTE(MaxTexture2DLayeredLayers, maxTexture2DLayered[2])
      EMULATOR_ATTRIBUTE(SurfaceAlignment, surfaceAlignment)
      EMULATOR_ATTRIBUTE(ConcurrentKernels, concurrentKernels)
      EMULATOR_ATTRIBUTE(EccEnabled, ECCEnabled)
      EMULATOR_ATTRIBUTE(PciBusId, pciBusID)
      EMULATOR_ATTRIBUTE(PciDeviceId, pciDeviceID)
      EMULATOR_ATTRIBUTE(TccDriver, tccDriver)
      EMULATOR_ATTRIBUTE(GlobalMemoryBusWidth, memoryBusWidth)
      EMULATOR_ATTRIBUTE(L2CacheSize, l2CacheSize)
      EMULATOR_ATTRIBUTE(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor)
      EMULATOR_ATTRIBUTE(AsyncEngineCount, asyncEngineCount)
      EMULATOR_ATTRIBUTE(UnifiedAddressing, unifiedAddressing)
      EMULATOR_ATTRIBUTE(MaxTexture1DLayeredWidth, maxTexture1DLayered[0])
      EMULATOR_ATTRIBUTE(MaxTexture1DLayeredLayers, maxTexture1DLayered[1])
      EMULATOR_ATTRIBUTE(MaxTexture2DGatherWidth, maxTexture2DGather[0])
      EMULATOR_ATTRIBUTE(MaxTexture2DGatherHeight, maxTexture2DGather[1])
      EMULATOR_ATTRIBUTE(MaxTexture3DWidthAlt, maxTexture3DAlt[0])
      EMULATOR_ATTRIBUTE(MaxTexture3DHeightAlt, maxTexture3DAlt[1])
      EMULATOR_ATTRIBUTE(MaxTexture3DDepthAlt, maxTexture3DAlt[2])
      EMULATOR_ATTRIBUTE(PciDomainId, pciDomainID)
      EMULATOR_ATTRIBUTE(TexturePitchAlignment, texturePitchAlignment)
      EMULATOR_ATTRIBUTE(MaxTextureCubemapWidth, maxTextureCubemap)
      EMULATOR_ATTRIBUTE(MaxTextureCubemapLayeredWidth, maxTextureCubemapLayered[0])
      EMULATOR_ATTRIBUTE(MaxTextureCubemapLayeredLayers, maxTextureCubemapLayered[1])
      EMULATOR_ATTRIBUTE(MaxSurface1DWidth, maxSurface1D)
      EMULATOR_ATTRIBUTE(MaxSurface2DWidth, maxSurface2D[0])
      EMULATOR_ATTRIBUTE(MaxSurface2DHeight, maxSurface2D[1])
      EMULATOR_ATTRIBUTE(MaxSurface3DWidth, maxSurface3D[0])
      EMULATOR_ATTRIBUTE(MaxSurface3DHeight, maxSurface3D[1])
      EMULATOR_ATTRIBUTE(MaxSurface3DDepth, maxSurface3D[2])
      EMULATOR_ATTRIBUTE(MaxSurface1DLayeredWidth, maxSurface1DLayered[0])
      EMULATOR_ATTRIBUTE(MaxSurface1DLayeredLayers, maxSurface1DLayered[1])
      EMULATOR_ATTRIBUTE(MaxSurface2DLayeredWidth, maxSurface2DLayered[0])
      EMULATOR_ATTRIBUTE(MaxSurface2DLayeredHeight, maxSurface2DLayered[1])
      EMULATOR_ATTRIBUTE(MaxSurface2DLayeredLayers, maxSurface2DLayered[2])
      EMULATOR_ATTRIBUTE(MaxSurfaceCubemapWidth, maxSurfaceCubemap)
      EMULATOR_ATTRIBUTE(MaxSurfaceCubemapLayeredWidth, maxSurfaceCubemapLayered[0])
      EMULATOR_ATTRIBUTE(MaxSurfaceCubemapLayeredLayers, maxSurfaceCubemapLayered[1])
      EMULATOR_ATTRIBUTE(MaxTexture2DLinearWidth, maxTexture2DLinear[0])
      EMULATOR_ATTRIBUTE(MaxTexture2DLinearHeight, maxTexture2DLinear[1])
      EMULATOR_ATTRIBUTE(MaxTexture2DLinearPitch, maxTexture2DLinear[2])
      EMULATOR_ATTRIBUTE(MaxTexture2DMipmappedWidth, maxTexture2DMipmap[0])
      EMULATOR_ATTRIBUTE(MaxTexture2DMipmappedHeight, maxTexture2DMipmap[1])
      EMULATOR_ATTRIBUTE(ComputeCapabilityMajor, major)
      EMULATOR_ATTRIBUTE(ComputeCapabilityMinor, minor)
      EMULATOR_ATTRIBUTE(MaxTexture1DMipmappedWidth, maxTexture1DMipmap)
      EMULATOR_ATTRIBUTE(StreamPrioritiesSupported, streamPrioritiesSupported)
      EMULATOR_ATTRIBUTE(GlobalL1CacheSupported, globalL1CacheSupported)
      EMULATOR_ATTRIBUTE(LocalL1CacheSupported, localL1CacheSupported)
      EMULATOR_ATTRIBUTE(MaxSharedMemoryPerMultiprocessor, sharedMemPerMultiprocessor)
      EMULATOR_ATTRIBUTE(MaxRegistersPerMultiprocessor, regsPerMultiprocessor)
      EMULATOR_ATTRIBUTE(ManagedMemory, managedMemory)
      EMULATOR_ATTRIBUTE(IsMultiGpuBoard, isMultiGpuBoard)
      EMULATOR_ATTRIBUTE(MultiGpuBoardGroupID, multiGpuBoardGroupID)
      EMULATOR_ATTRIBUTE(HostNativeAtomicSupported, hostNativeAtomicSupported)
      EMULATOR_ATTRIBUTE(PageableMemoryAccess, pageableMemoryAccess)
      EMULATOR_ATTRIBUTE(ConcurrentManagedAccess, concurrentManagedAccess)
      EMULATOR_ATTRIBUTE(ComputePreemptionSupported, computePreemptionSupported)
      EMULATOR_ATTRIBUTE(CanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem)
      EMULATOR_ATTRIBUTE(CooperativeLaunch, cooperativeLaunch)
      EMULATOR_ATTRIBUTE(MaxSharedMemoryPerBlockOptin, sharedMemPerBlockOptin)
      EMULATOR_ATTRIBUTE(HostRegisterSupported, hostRegisterSupported)
      EMULATOR_ATTRIBUTE(PageableMemoryAccessUsesHostPageTables, pageableMemoryAccessUsesHostPageTables)
      EMULATOR_ATTRIBUTE(DirectManagedMemAccessFromHost, directManagedMemAccessFromHost)
      EMULATOR_ATTRIBUTE(MaxBlocksPerMultiprocessor, maxBlocksPerMultiProcessor)
      EMULATOR_ATTRIBUTE(MaxPersistingL2CacheSize, persistingL2CacheMaxSize)
      EMULATOR_ATTRIBUTE(MaxAccessPolicyWindowSize, accessPolicyMaxWindowSize)
      EMULATOR_ATTRIBUTE(ReservedSharedMemoryPerBlock, reservedSharedMemPerBlock)
      EMULATOR_ATTRIBUTE(SparseCudaArraySupported, sparseCudaArraySupported)
      EMULATOR_ATTRIBUTE(HostRegisterReadOnlySupported, hostRegisterReadOnlySupported)
      EMULATOR_ATTRIBUTE(TimelineSemaphoreInteropSupported, timelineSemaphoreInteropSupported)
      EMULATOR_ATTRIBUTE(MemoryPoolsSupported, memoryPoolsSupported)
      EMULATOR_ATTRIBUTE(GPUDirectRDMASupported, gpuDirectRDMASupported)
      EMULATOR_ATTRIBUTE(GPUDirectRDMAFlushWritesOptions, gpuDirectRDMAFlushWritesOptions)
      EMULATOR_ATTRIBUTE(GPUDirectRDMAWritesOrdering, gpuDirectRDMAWritesOrdering)
      EMULATOR_ATTRIBUTE(MemoryPoolSupportedHandleTypes, memoryPoolSupportedHandleTypes)
      EMULATOR_ATTRIBUTE(ClusterLaunch, clusterLaunch)
      EMULATOR_ATTRIBUTE(DeferredMappingCudaArraySupported, deferredMappingCudaArraySupported)
      EMULATOR_ATTRIBUTE(IpcEventSupport, ipcEventSupported)
      EMULATOR_ATTRIBUTE(NumaConfig, deviceNumaConfig)
      EMULATOR_ATTRIBUTE(NumaId, deviceNumaId)
      EMULATOR_ATTRIBUTE(MpsEnabled, mpsEnabled)
      EMULATOR_ATTRIBUTE(HostNumaId, hostNumaId)
      EMULATOR_ATTRIBUTE(GpuPciDeviceId, gpuPciDeviceID)
      EMULATOR_ATTRIBUTE(GpuPciSubsystemId, gpuPciSubsystemID)
      EMULATOR_ATTRIBUTE(HostNumaMultinodeIpcSupported, hostNumaMultinodeIpcSupported)
      {cudaDevAttrClockRate, kClockRate}, {cudaDevAttrMemoryClockRate, kMemoryClockRate},
      {cudaDevAttrGpuOverlap, d.asyncEngineCount > 0}, {cudaDevAttrKernelExecTimeout, 0},
      {cudaDevAttrComputeMode, cudaComputeModeDefault}, {cudaDevAttrMaxTexture1DLinearWidth, 1 << 28},
      {cudaDevAttrSingleToDoublePrecisionPerfRatio, kSingleToDouble}, {cudaDevAttrCanFlushRemoteWrites, 0},
      {cudaDevAttrMemSyncDomainCount, 1}, {cudaDevAttrD3D12CigSupported, 0}, {cudaDevAttrVulkanCigSupported, 0},
      {cudaDevAttrHostNumaMemoryPoolsSupported, 0}, {cudaDevAttrHostMemoryPoolsSupported, 0},
      {cudaDevAttrOnlyPartialHostNativeAtomicSupported, 0},
// clang-format on
#undef EMULATOR_ATTRIBUTE
  };
  for (const auto& one : known)
    if (one.attribute == attribute) return value = one.value, true;
  value = 0;
  return is_reserved(attribute);
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (check_device(device)) return cudaErrorInvalidDevice;
  std::size_t found;
  if (!value || !find_attribute(emulator::device(), attribute, found)) return fail(cudaErrorInvalidValue);
  return *value = int(found), cudaSuccess;
}
