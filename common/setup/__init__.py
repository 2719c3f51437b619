"""Reports what this machine has and lacks, and installs missing packages."""
