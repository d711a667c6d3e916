"""What people decided for the whole ledger, and what it means for verdicts."""
