#include <cstdio>
__global__ void hello() { printf("hello\n"); }
int main() {
  hello<<<1, 4>>>();
  printf("bye\n");
}
