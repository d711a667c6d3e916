"""The history of all runs, kept in a side file of the ledger."""
