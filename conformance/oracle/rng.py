"""The suite's random numbers: SplitMix64 seeded by a name, the same on every machine for ever."""

import zlib

MASK = (1 << 64) - 1


class Rng:
    def __init__(self, name):
        self.state = (zlib.crc32(name.encode()) << 32 | zlib.adler32(name.encode())) & MASK

    def u64(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def bits(self, n):
        return self.u64() >> (64 - n)

    def below(self, n):
        return self.u64() * n >> 64

    def between(self, lo, hi):
        """Inclusive."""
        return lo + self.below(hi - lo + 1)

    def unit(self):
        return (self.u64() >> 11) * 2.0**-53

    def uniform(self, lo, hi):
        return lo + self.unit() * (hi - lo)

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffled(self, items):
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items
