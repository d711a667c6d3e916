"""What to do next: messages, decisions, readers, runners, executors, the loop, the driver and the command line."""
