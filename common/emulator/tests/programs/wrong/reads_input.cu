#include <cstdio>
int main() {
  int n = -1;
  printf("%d %d\n", scanf("%d", &n), n);
}
