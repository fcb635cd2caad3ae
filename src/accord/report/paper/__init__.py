"""The paper's figures in the paper's form, measured on records and drawn from those numbers."""
