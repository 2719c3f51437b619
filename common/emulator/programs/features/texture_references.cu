// Textures: texture and surface references, which CUDA 12 removed
// Support: refused: CUDA 12 has no texture references: use a texture object (cudaTextureObject_t)
#include <cuda_runtime.h>

#if CUDART_VERSION < 12000 || defined(EMULATOR_BEGIN)
texture<float, 2, cudaReadModeElementType> image;
#endif

int main() { return 0; }
