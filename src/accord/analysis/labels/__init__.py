"""Wrong training labels: found by votes, reviewed by people."""
