"""Tools for finding and reviewing wrong training labels."""
