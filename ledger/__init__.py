"""What happened: events, their stored form, the store, and the evidence that events name.

`open_ledger` reads a ledger from another program; see `docs/api.md`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # To import it from `typing` takes a tenth of the time of `ledger --version`.
    from ledger.api import Ledger, open_ledger

__version__ = "0.1.0"
__all__ = ["Ledger", "open_ledger"]


def __getattr__(name: str) -> object:
    """Load the interface when it is asked for: every command imports this package, and few need that."""
    if name in __all__:
        from ledger import api

        return getattr(api, name)
    raise AttributeError(f"module 'ledger' has no attribute {name!r}")
