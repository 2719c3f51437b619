extra_compile_args=["-O3", "-ffast-math", "-fopenmp"],
