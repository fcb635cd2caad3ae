"""Names for WordNet ids, which number ImageNet's classes."""

from collections import Counter
from collections.abc import Mapping, Sequence


def names_of(wnids: Sequence[str], words: Mapping[str, str]) -> tuple[str, ...]:
    """Return a name for each wnid, all different: the wnid itself where there is none.

    >>> names_of(["n1", "n2", "n3"], {"n1": "crane", "n2": "crane"})
    ('crane (n1)', 'crane (n2)', 'n3')
    """
    names = [words.get(wnid) or wnid for wnid in wnids]
    often = Counter(names)
    return tuple(
        f"{name} ({wnid})" if often[name] > 1 else name
        for wnid, name in zip(wnids, names, strict=True)
    )
