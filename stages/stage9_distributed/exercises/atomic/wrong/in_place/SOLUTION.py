disk.write("checkpoint", data)
disk.sync("checkpoint")
disk.sync_folder()
