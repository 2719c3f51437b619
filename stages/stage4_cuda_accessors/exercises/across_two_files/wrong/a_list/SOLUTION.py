dlink=True,
extra_compile_args=["-O3", "-rdc=true"],
