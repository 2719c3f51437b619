int main() {
  volatile int n = 0;
  for (;;) n = n + 1;
}
