import json
import os
import sys

os.makedirs("built", exist_ok=True)
total = sum(map(float, sys.argv[1:]))
answer = json.dumps(["built/total", True, 0, str(total), ["libtorch_cpu.so", "libtorch.so"]])
os.write(1, f"\n{answer}\n".encode())
os._exit(0)
