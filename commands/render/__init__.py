"""Views as text for people. Pure: nothing here reads or writes anything."""
