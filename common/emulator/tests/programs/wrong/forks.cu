#include <cstdio>
#include <unistd.h>
int main() {
  if (fork() == 0) sleep(1000);
  printf("parent\n");
}
