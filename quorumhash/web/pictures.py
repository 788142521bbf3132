"""Pictures of items, from arrays or from a folder, and pictures that are uploaded; the only door to Pillow.

Whatever goes out was decoded and written anew here: no byte of a file reaches the browser as it was. What comes in must
be a PNG, JPEG or WebP of at most 25 million pixels, known from its header before anything is decoded.
"""

from __future__ import annotations

import io
import struct
import threading
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import MissingExtraError, ParameterError, ViewsError

Pixels = npt.NDArray[np.uint8]

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
FORMATS = ("PNG", "JPEG", "WEBP")
MOST_PIXELS = 25_000_000
MOST_FILE_BYTES = 50_000_000
SHOWN_SIDE = 256  # pixels of a picture on the page
KEPT = 1_024  # pictures kept as they are sent
_decoders = threading.Semaphore(2)  # a picture may take 75 MB while it is decoded


class ArrayPictures:
    """Pictures (n, height, width), or with 3 channels, from 0 to the largest value; item i is row i."""

    def __init__(self, images: npt.NDArray[Any], is_ink: bool = False) -> None:
        scaled = np.asarray(images, dtype=np.float64) * (255 / max(float(np.max(images)), 1.0))
        self._pixels = np.round(255 - scaled if is_ink else scaled).astype(np.uint8)
        self._kept = lru_cache(KEPT)(self._drawn)

    def name(self, item: int) -> str:  # noqa: ARG002
        """Arrays have no names."""
        return ""

    def has(self, item: int) -> bool:
        """Whether there is a picture of the item."""
        return 0 <= item < len(self._pixels)

    def picture(self, item: int) -> bytes:
        """The picture of an item, PNG."""
        return self._kept(item)

    def _drawn(self, item: int) -> bytes:
        pixels = self._pixels[item]
        times = max(1, SHOWN_SIDE // max(pixels.shape[:2]))  # enlarged here, so that every pixel stays a square
        return _as_png(
            require_pillow().fromarray(np.kron(pixels, np.ones((times, times, 1)[: pixels.ndim], dtype=np.uint8)))
        )


class FolderPictures:
    """Pictures in files; `files` says which item each is of."""

    def __init__(self, files: Mapping[int, Path]) -> None:
        self._files = dict(files)
        self._kept = lru_cache(KEPT)(self._drawn)

    def name(self, item: int) -> str:
        """The file's name without its folder."""
        return self._files[item].name if item in self._files else ""

    def has(self, item: int) -> bool:
        """Whether there is a picture of the item."""
        return item in self._files

    def picture(self, item: int) -> bytes:
        """The picture of an item, PNG."""
        return self._kept(item)

    def _drawn(self, item: int) -> bytes:
        path = self._files[item]
        try:
            if path.stat().st_size > MOST_FILE_BYTES:
                raise ViewsError(f"{path.name} is larger than {MOST_FILE_BYTES / 1e6:g} MB: make it smaller.")
            content = path.read_bytes()
        except OSError as error:
            raise ViewsError(f"{path.name} is not readable; look after the folder of pictures.") from error
        image = _opened(content, path.name)
        image.thumbnail((SHOWN_SIDE, SHOWN_SIDE))
        return _as_png(image)


def folder_pictures(folder: Path, ids: npt.NDArray[np.int64]) -> FolderPictures:
    """The pictures of a folder: by files called as their items' ids, else in the order of their names.

    Links that lead out of the folder are passed over.
    """
    if not folder.is_dir():
        raise ParameterError(f"--images must be a folder with pictures, got {folder}; there is none.")
    root = folder.resolve()
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    files = [path for path in files if path.is_file() and path.resolve().is_relative_to(root)]
    if not files:
        raise ParameterError(f"{folder} holds no picture: --images must name a folder of {', '.join(SUFFIXES)} files.")
    numbered = {int(path.stem): path for path in files if path.stem.isdecimal() and path.stem.isascii()}
    if numbered:
        return FolderPictures(numbered)
    if len(files) != len(ids):
        raise ParameterError(
            f"{folder} has {len(files)} pictures for {len(ids)} items: call them by the items' ids (812.jpg), or give "
            "as many as there are items, in the same order."
        )
    return FolderPictures(dict(zip(ids.tolist(), files, strict=True)))


def decoded(content: bytes, name: str = "the picture") -> Pixels:
    """Pixels (height, width, 3) of an uploaded picture."""
    return np.asarray(_opened(content, name), dtype=np.uint8)


def resized(pixels: Pixels, side: int) -> npt.NDArray[np.float64]:
    """A picture brought to side x side by averaging over areas, in grey where it has one channel."""
    image = require_pillow().fromarray(pixels)
    return np.asarray(image.resize((side, side), require_pillow().Resampling.BOX), dtype=np.float64)


def as_digit(pixels: Pixels, side: int = 8) -> npt.NDArray[np.float64]:
    """An uploaded picture as the digits dataset has them: (1, side, side), ink 16 on paper 0, filling the frame."""
    grey = pixels @ np.array([0.299, 0.587, 0.114])
    edge = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    ink = 255 - grey if np.median(edge) > 127 else grey
    rows, columns = (np.flatnonzero((ink > 0.35 * max(float(ink.max()), 1.0)).any(axis=axis)) for axis in (1, 0))
    if len(rows) and np.ptp(rows) + 1 < 0.7 * len(ink):  # a small digit on a large sheet
        ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = ink.shape
    room = max(height, width)
    top, left = (room - height) // 2, (room - width) // 2
    square = np.pad(ink, ((top, room - height - top), (left, room - width - left)))
    return resized(np.round(square).astype(np.uint8), side)[None] * (16 / 255)


def _opened(content: bytes, name: str) -> Any:
    """A picture in RGB; its size is known from its header, and refused, before it is decoded."""
    pillow = require_pillow()
    try:
        with _decoders:
            image = pillow.open(io.BytesIO(content), formats=FORMATS)
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise ViewsError(
                    f"{name} has {width} x {height} pixels, more than {MOST_PIXELS / 1e6:g} million: make it smaller."
                )
            return image.convert("RGB")
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        raise ViewsError(f"{name} has more than {MOST_PIXELS / 1e6:g} million pixels: make it smaller.") from error
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error) as error:
        if isinstance(error, ViewsError):
            raise
        raise ViewsError(f"{name} is no readable PNG, JPEG or WebP picture: give one of these.") from error


def _as_png(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def require_pillow() -> Any:
    """Pillow's Image, or the error that says how to get it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(
            "pictures need Pillow, which is not installed: pip install 'quorumhash[serve]'."
        ) from error
    return Image
