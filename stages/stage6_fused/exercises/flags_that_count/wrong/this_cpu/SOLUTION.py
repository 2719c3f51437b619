extra_compile_args=["-O3", "-fno-trapping-math", "-fopenmp", "-march=native"],
