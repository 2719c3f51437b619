// Textures: mipmaps, cube maps, and gathers of four texels
// Support: refused: the emulator does not support tex2DLod
#include <cuda_runtime.h>

__global__ void read(cudaTextureObject_t image, float* result) {
  *result = tex2DLod<float>(image, 0.5f, 0.5f, 1.0f);
}

int main() { return 0; }
