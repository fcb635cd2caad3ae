"""How far predictions can be trusted: calibration, risk, corrected accuracy, verification."""
