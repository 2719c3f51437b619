extra_compile_args={
    "g++": ["-fopenmp", "-march=native", "-Wall"],
    "nvcc": ["--use_fast_math", "-lineinfo", "-Xcompiler=-Wall"],
},
extra_link_args=["-fopenmp"],
