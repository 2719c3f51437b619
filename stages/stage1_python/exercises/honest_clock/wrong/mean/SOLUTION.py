for _ in range(10):
    machine.launch()
machine.synchronize()
samples = []
for _ in range(calls):
    start = machine.clock()
    machine.launch()
    machine.synchronize()
    samples.append(machine.clock() - start)
return statistics.mean(samples)
