extra_compile_args=["-O3", "-fopenmp"],
