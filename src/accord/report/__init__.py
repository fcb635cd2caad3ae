"""What people read of a record: tables, figures, the HTML page."""
