#include <cstdio>
int main() {
  for (int i = 0; i < 10000000; i++) printf("a line of some hundred characters, again and again and again and again and again and again\n");
}
