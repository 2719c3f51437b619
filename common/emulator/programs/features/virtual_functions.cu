// Device code: virtual functions of objects that kernels make with new or placement new
// Support: yes
#include <cuda_runtime.h>

#include <cstdio>
#include <new>

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float area() const = 0;
};

struct Square : Shape {
  float side;
  __device__ explicit Square(float side_) : side(side_) {}
  __device__ float area() const override { return side * side; }
};

struct Rectangle : Shape {
  float width, height;
  __device__ Rectangle(float width_, float height_) : width(width_), height(height_) {}
  __device__ float area() const override { return width * height; }
};

constexpr int kShapes = 64;

// Objects on the heap of the device; another kernel may use and delete them.
__global__ void make(Shape** shapes) {
  const int i = threadIdx.x;
  shapes[i] = i % 2 ? static_cast<Shape*>(new Square(float(i))) : new Rectangle(float(i), 2);
}
__global__ void destroy(Shape** shapes) { delete shapes[threadIdx.x]; }

// Objects in memory from cudaMalloc.
__global__ void make_in_place(Square* squares, Shape** shapes) {
  shapes[threadIdx.x] = new (squares + threadIdx.x) Square(float(threadIdx.x));
}

__global__ void measure(float* areas, Shape* const* shapes) {
  areas[threadIdx.x] = shapes[threadIdx.x]->area();
}

bool are(const float* d_areas, float (*expected)(int)) {
  float areas[kShapes];
  cudaMemcpy(areas, d_areas, sizeof(areas), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kShapes; i++)
    if (areas[i] != expected(i)) {
      std::fprintf(stderr, "area of shape %d: got %g, expected %g\n", i, areas[i], expected(i));
      return false;
    }
  return true;
}

int main() {
  Shape** shapes;
  Square* squares;
  float* areas;
  cudaMalloc(&shapes, kShapes * sizeof(Shape*));
  cudaMalloc(&squares, kShapes * sizeof(Square));
  cudaMalloc(&areas, kShapes * sizeof(float));

  make<<<1, kShapes>>>(shapes);
  measure<<<1, kShapes>>>(areas, shapes);
  destroy<<<1, kShapes>>>(shapes);
  if (!are(areas, [](int i) { return float(i % 2 ? i * i : 2 * i); })) return 1;

  make_in_place<<<1, kShapes>>>(squares, shapes);
  measure<<<1, kShapes>>>(areas, shapes);
  if (!are(areas, [](int i) { return float(i * i); })) return 1;

  cudaFree(shapes);
  cudaFree(squares);
  cudaFree(areas);
  return 0;
}
