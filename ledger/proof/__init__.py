"""Proof: is the ledger still what was written? `verify` names every difference, `recover` keeps what holds."""
