"""What it means now: pure folds of events into views, and the policies that say what is so."""
