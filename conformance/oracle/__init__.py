"""Expected values: exact integers and rationals, mpmath for functions. Nothing here knows any implementation of Tile IR."""
