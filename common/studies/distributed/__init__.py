"""Records of stage 9: what each stage learns and how long it takes, and trainings whose processes are killed."""
