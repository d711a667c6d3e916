"""Members of the pool: what they have, and what is booked of it."""
