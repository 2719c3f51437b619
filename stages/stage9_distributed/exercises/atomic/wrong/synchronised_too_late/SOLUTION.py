disk.write("checkpoint.new", data)
disk.rename("checkpoint.new", "checkpoint")
disk.sync("checkpoint")
disk.sync_folder()
