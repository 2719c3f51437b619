int main(int argc, char**) {
  volatile int zero = argc - argc;
  return 3 / zero;
}
