extra_compile_args={
    "cxx": ["-fopenmp", "-march=native", "-Wall"],
    "nvcc": ["--use_fast_math", "-lineinfo", "-Xcompiler=-Wall,-march=native"],
},
extra_link_args=["-fopenmp"],
