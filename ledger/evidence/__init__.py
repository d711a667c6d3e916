"""Evidence: reports, logs and tables, kept by the digest of their bytes and named by events."""

from ledger.evidence.files import EvidenceStore

__all__ = ["EvidenceStore"]
