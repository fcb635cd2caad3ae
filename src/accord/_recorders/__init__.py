"""What the framework faces share; of all frameworks, only torch is imported here."""
