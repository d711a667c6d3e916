"""What is known of targets beside what their runner says."""
