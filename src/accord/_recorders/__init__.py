"""Utilities shared by the integrations with frameworks."""
