"""The only door to OpenCV (extra "bench"): SIFT descriptors at given places, and pictures from PNG files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import MissingExtraError, ViewsError

DESCRIPTOR_WIDTH = 128
PATCH_PER_SIZE = 6  # SIFT has 4 x 4 bins of 1.5 times a keypoint's size


def sift_descriptors(
    grey: npt.NDArray[np.uint8], places: npt.NDArray[np.float32], patch: float
) -> npt.NDArray[np.float32]:
    """SIFT of upright square patches around places (m, 2), x and y, in pictures (n, height, width): (n, m, 128)."""
    cv2 = _opencv()
    sift = cv2.SIFT_create()
    keypoints = [cv2.KeyPoint(float(x), float(y), patch / PATCH_PER_SIZE, 0) for x, y in places]
    described = np.empty((len(grey), len(places), DESCRIPTOR_WIDTH), dtype=np.float32)
    for row, picture in zip(described, grey, strict=True):
        row[...] = sift.compute(picture, keypoints)[1]
    return described


def read_png(content: bytes, name: str) -> npt.NDArray[np.uint8]:
    """The picture (height, width, 3), red, green, blue, of the bytes of a PNG file; `name` is for the error."""
    cv2 = _opencv()
    picture = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise ViewsError(f"{name} is no readable PNG picture; get the file anew.")
    return np.ascontiguousarray(picture[:, :, ::-1], dtype=np.uint8)


def _opencv() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise MissingExtraError(
            "visual words and PNG files need OpenCV, which is not installed: pip install 'quorumhash[bench]'."
        ) from error
    return cv2
