"""Random numbers by named stream, those of the server's own (src/base/rng.h): what is drawn here
and what the program draws is the same on every machine.
"""
import math

_ALL = (1 << 64) - 1


def _fnv1a(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & _ALL
    return value


def _split_mix(x):
    """SplitMix64's next number, and where it goes on."""
    x = x + 0x9e3779b97f4a7c15 & _ALL
    z = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & _ALL
    z = (z ^ z >> 27) * 0x94d049bb133111eb & _ALL
    return z ^ z >> 31, x


def _rotl(x, by):
    return (x << by | x >> 64 - by) & _ALL


class Stream:
    """xoshiro256** (Blackman and Vigna, 2018)."""

    def __init__(self, seed, name):
        x = _split_mix(_fnv1a(name))[0] ^ seed
        self._state = []
        for _ in range(4):
            word, x = _split_mix(x)
            self._state.append(word)

    def next(self):
        s = self._state
        result = _rotl(s[1] * 5 & _ALL, 7) * 9 & _ALL
        t = s[1] << 17 & _ALL
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotl(s[3], 45)
        return result

    def below(self, bound):
        """Uniform over 0 to bound - 1."""
        while True:
            value = self.next()
            if value >= (1 << 64) % bound:
                return value % bound

    def exponential(self, rate):
        return -math.log1p(-(self.next() >> 11) * 2.0 ** -53) / rate
