"""What people decide for the whole ledger, from the request to what is recorded."""
