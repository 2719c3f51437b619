extra_compile_args=["-fopenmp", "-march=native", "-Wall"],
extra_link_args=["-fopenmp"],
