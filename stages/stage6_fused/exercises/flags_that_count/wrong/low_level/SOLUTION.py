extra_compile_args=["-O1", "-fno-trapping-math", "-fopenmp"],
