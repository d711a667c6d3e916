"""Executors start, observe and stop the processes of attempts."""
