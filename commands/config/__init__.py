"""Settings: where each value comes from, and what a run keeps of them."""
