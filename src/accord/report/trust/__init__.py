"""How far to trust predictions, which networks are bad and what was forgotten, told and drawn."""
