extra_compile_args=["-O3", "-fno-trapping-math"],
extra_link_args=["-fopenmp"],
