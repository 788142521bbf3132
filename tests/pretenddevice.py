"""A CUDA device without one: tensors in the host's memory that say they lie on cuda:0 and refuse to meet others.

What fails on a real device fails here too: a tensor of the host or a NumPy array in an operation with one of the
device, and reading a tensor of the device as a NumPy array. Numbers and tensors without dimensions may meet anything.
"""

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

DEVICE = torch.device("cuda", 0)
MOVES = {torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda, torch.as_tensor, torch.asarray, torch.tensor}
COPIES_ACROSS = {torch.Tensor.copy_, torch.Tensor.__setitem__}


def is_there(value):
    return isinstance(value, torch.Tensor) and getattr(value, "is_pretended", False)


def tensors_in(values):
    for value in values:
        if isinstance(value, torch.Tensor | np.ndarray):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def marked(value):
    if isinstance(value, torch.Tensor):
        value.is_pretended = True
    elif isinstance(value, list | tuple):
        for part in value:
            marked(part)
    return value


class PretendedDevice(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if name == "__get__" and function == torch.Tensor.device.__get__:
            return DEVICE if is_there(args[0]) else function(*args, **kwargs)
        if name in ("__get__", "__set__", "dim", "size", "stride", "__len__", "is_floating_point", "is_complex"):
            result = function(*args, **kwargs)
            return marked(result) if is_there(args[0]) and isinstance(result, torch.Tensor) else result
        if name in ("numpy", "__array__") and is_there(args[0]):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        target = kwargs.get("device")
        if function in MOVES and target is None:
            target = next((a for a in args[1:] if isinstance(a, torch.device)), None)
        given = list(tensors_in([*args, *kwargs.values()]))
        there = [value for value in given if is_there(value)]
        if function not in MOVES and function not in COPIES_ACROSS and there and name != "__getitem__":
            for value in given:
                if not is_there(value) and value.ndim:
                    raise RuntimeError(f"{name}: expected all tensors to be on the same device, cuda:0 and cpu")
        args = [torch.device("cpu") if isinstance(a, torch.device) else a for a in args]
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu") if target is not None else None
        result = function(*args, **kwargs)
        if function in MOVES and (target is not None or function is torch.Tensor.cpu):
            if target is not None and torch.device(target).type == "cuda":
                return marked(result)
            return result.clone() if isinstance(result, torch.Tensor) and is_there(result) else result
        is_factory = not given and target is not None and torch.device(target).type == "cuda"
        return marked(result) if there or is_factory else result
