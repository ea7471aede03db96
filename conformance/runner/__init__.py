"""The runner: gives cases to an implementation and judges what comes back. Needs Python's standard library and numpy."""
