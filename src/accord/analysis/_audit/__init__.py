"""Wrong training labels: the audit, its notes, and the review of what it flags."""
