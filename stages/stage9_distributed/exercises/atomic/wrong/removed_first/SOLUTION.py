disk.write("checkpoint.new", data)
disk.sync("checkpoint.new")
if disk.exists("checkpoint"):
    disk.remove("checkpoint")
disk.rename("checkpoint.new", "checkpoint")
disk.sync_folder()
