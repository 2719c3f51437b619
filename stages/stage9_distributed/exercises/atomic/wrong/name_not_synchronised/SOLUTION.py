disk.write("checkpoint.new", data)
disk.sync("checkpoint.new")
disk.rename("checkpoint.new", "checkpoint")
