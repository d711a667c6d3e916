"""Views of a gate: shards, cases, classes, verdict, progress and explanations."""
