"""How tables call a method: what could only be reconstructed is said to be such."""

from __future__ import annotations

from quorumhash.hashers import HASHERS


def called(name: str, hasher: str | None = None) -> str:
    """The name of a method as tables show it; `hasher` where the method's name, up to a comma, is another.

    >>> called("itq"), called("ssh"), called("chms, published")
    ('itq', 'ssh (reconstruction)', 'chms, published (reconstruction)')
    """
    found = HASHERS.get(name.partition(",")[0] if hasher is None else hasher)
    return f"{name} (reconstruction)" if found is not None and found.about.is_reconstruction else name
