"""What happened: events, their stored form, the store, and the evidence that events name."""

__version__ = "0.1.0"
