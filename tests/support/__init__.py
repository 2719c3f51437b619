"""What several tests use: data that is made up, small programs, and places to try something in."""
