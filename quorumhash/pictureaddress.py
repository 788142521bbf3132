"""A picture as an address that a page can hold: pixels become a PNG, the bytes of a picture file stay as they are."""

from __future__ import annotations

from base64 import b64encode

from numpy.typing import ArrayLike

from quorumhash._drawing import as_grey, encode_png
from quorumhash.errors import ParameterError

MARKS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}  # first bytes of a file


def picture_address(picture: ArrayLike | bytes) -> str:
    """A data address of grey pixels (height, width), or of the bytes of a picture file.

    >>> picture_address(b"GIF89a")
    'data:image/gif;base64,R0lGODlh'
    """
    content = picture if isinstance(picture, bytes) else encode_png(as_grey(picture))
    kind = next((kind for mark, kind in MARKS.items() if content.startswith(mark)), None)
    if kind is None:
        raise ParameterError(f"a picture must be a PNG, JPEG, GIF or WebP file, got one that begins {content[:8]!r}.")
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
