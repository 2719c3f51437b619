extra_compile_args={"cxx": ["-O3"], "nvcc": ["-O3", "-rdc=true"]},
