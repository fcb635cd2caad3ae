"""How the agreement between networks is judged: whether it has fallen for good, and where."""
