"""The families of cases: each module has FAMILIES, a dictionary from a family's name to a function that yields its cases."""
