"""What this machine has and lacks, and the installation of what is missing."""
