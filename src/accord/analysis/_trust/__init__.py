"""Tools for assessing the reliability of predictions."""
