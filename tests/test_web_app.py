"""The page's routes over HTTP: answers, refusals in one sentence, pictures, and nothing that ends in a 500."""

import io
import json
import re
import signal
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest
from webcollection import N_STORED, SCRIPT, digit_collection, serving

import quorumhash as qh
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.web.guards import Limits

pytestmark = pytest.mark.extra
for package in ("fastapi", "uvicorn", "PIL", "httpx"):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'quorumhash[all]'")

import httpx  # noqa: E402
from PIL import Image  # noqa: E402

from quorumhash.web.pictures import as_digit, decoded, folder_pictures  # noqa: E402

PNG = {"content-type": "image/png"}


def as_png(pixels, **options):
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(buffer, "PNG", **options)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def collection():
    return digit_collection()


@pytest.fixture(scope="module")
def client(collection):
    with serving(collection, Limits(requests_per_second=0)) as address, httpx.Client(base_url=address) as client:
        yield client


def test_page_and_its_files(client):
    page = client.get("/")
    assert page.status_code == 200
    assert "<script>" not in page.text
    assert "style=" not in page.text
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    for name in ("style.css", "page.js", "theme.js", "mark.svg", "search.js"):
        assert client.get(f"/static/{name}").status_code == 200
    for name in ("app.py", "..%2fapp.py", "%2e%2e/app.py", "../../../etc/passwd", "nothing.js"):
        assert client.get(f"/static/{name}").status_code == 404


def test_search_by_item(client, collection):
    found = client.get("/api/search", params={"item": 50, "k": 4}).json()
    assert [match["id"] for match in found["matches"]] == [
        int(i) for i in collection.index.search(collection.code(50)[None], k=5).ids[0] if i != 50
    ][:4]


def test_pictures_come_back_as_png(client):
    answer = client.get("/api/items/50/picture")
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).size == (256, 256)


def test_an_uploaded_digit_is_read_as_it_is_stored(client, collection):
    """What the page shows of an item, sent back, has the item's pixels, and so its code from the views."""
    item = 10 * (N_STORED + 2)
    picture = client.get(f"/api/items/{item}/picture").content
    answer = client.post("/api/search", params={"k": 3}, content=picture, headers=PNG)
    assert answer.status_code == 200
    np.testing.assert_allclose(
        as_digit(decoded(picture))[0].ravel(), collection.views["pixels"][N_STORED + 2], atol=0.04
    )
    told = client.get(f"/api/items/{item}").json()
    differing = int(told["code"], 16) ^ int(answer.json()["code"], 16)
    assert differing.bit_count() <= 2  # grey steps are 255 / 16, rounded


def test_a_small_digit_on_a_large_dark_or_light_sheet_is_the_same_digit():
    ink = np.zeros((64, 64))
    ink[8:56, 24:40] = 255
    sheet = np.full((400, 300), 255.0)
    sheet[100:164, 50:114] -= ink
    plain = as_digit(np.repeat((255 - ink)[8:56, 8:56, None], 3, axis=2).astype(np.uint8))
    for pixels in (sheet, 255 - sheet):
        found = as_digit(np.repeat(pixels[:, :, None], 3, axis=2).astype(np.uint8))
        np.testing.assert_allclose(found, plain, atol=0.5)


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/api/items/7", 404, "got 7"),
        ("/api/items/seven", 422, "item: "),
        ("/api/items/7/picture", 200, ""),
        ("/api/items/99999999/picture", 404, "no picture of item 99999999"),
        ("/api/search?item=50&k=0", 422, "k: "),
        ("/api/search?item=50&k=100000", 422, "k: "),
        ("/api/search?item=50&radius=33", 422, "radius: "),
        ("/api/search?item=9999999999999999999999", 422, "item: "),
        ("/api/search", 422, "item: "),
        ("/api/damage?item=50&strength=nan", 422, "strength: "),
        ("/api/damage?item=50&swapped=5", 422, "swapped: "),
        ("/nothing", 404, "there is nothing here"),
    ],
)
def test_wrong_requests_get_one_sentence(client, path, status, sentence):
    answer = client.get(path)
    assert answer.status_code == status
    if status != 200:
        assert list(answer.json()) == ["error"]
        assert sentence in answer.json()["error"]


def bomb():
    """A PNG whose header says 60,000 x 60,000 pixels."""
    header = (60_000).to_bytes(4, "big") * 2 + b"\x08\x00\x00\x00\x00"
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big") for kind, body in chunks
    )


@pytest.mark.parametrize(
    ("content", "kind", "status", "sentence"),
    [
        (b"", "image/png", 422, "the body is empty"),
        (b"hello", "image/png", 400, "no readable PNG, JPEG or WebP"),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
            "image/svg+xml",
            400,
            "no readable",
        ),
        (b"GIF89a", "image/gif", 400, "no readable"),
        (as_png(np.zeros((8, 8)))[:45], "image/png", 400, "no readable"),
        (as_png(np.zeros((8, 8))), "text/plain", 415, "only pictures are taken"),
        (as_png(np.zeros((8, 8))), "multipart/form-data", 415, "only pictures are taken"),
        (bomb(), "image/png", 400, "million"),
        (as_png(np.zeros((5001, 5001))), "image/png", 400, "5001 x 5001 pixels, more than 25 million"),
        (bytes(10_000_001), "image/png", 413, "at most 10 MB"),
    ],
    ids=["empty", "text", "svg", "gif", "torn", "other type", "form", "bomb", "too many pixels", "too large"],
)
def test_uploads_that_are_refused(client, content, kind, status, sentence):
    answer = client.post("/api/search", content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_a_body_without_a_length_is_counted(client):
    answer = client.post("/api/search", content=(bytes(1_000_000) for _ in range(12)), headers=PNG)
    assert answer.status_code == 413


def test_other_sites_and_names_are_refused(client):
    assert client.get("/api/collection", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/collection", headers={"host": "evil.example"}).status_code == 421
    preflight = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = client.options("/api/search", headers=preflight)
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_too_many_requests_are_refused(collection):
    with (
        serving(collection, Limits(requests_per_second=1, burst=5)) as address,
        httpx.Client(base_url=address) as client,
    ):
        statuses = [client.get("/api/collection").status_code for _ in range(8)]
    assert statuses[:5] == [200] * 5
    assert 429 in statuses[5:]


def test_health_waits_for_the_audit_and_gives_a_table(client):
    while client.get("/api/health").json()["state"] == "running":
        time.sleep(0.1)
    table = client.get("/api/health.csv")
    assert table.headers["content-disposition"] == 'attachment; filename="health.csv"'
    assert table.text.startswith("item,name,view,kind,p_value,partners\r\n")
    assert ",gradients,zero," in table.text


def test_folders_of_pictures(tmp_path):
    for i, name in enumerate((SCRIPT, "b.png", "c.jpg")):
        Image.fromarray(np.full((400, 300, 3), 40 * i, dtype=np.uint8)).save(tmp_path / name)
    book = folder_pictures(tmp_path, np.array([5, 7, 9]))
    assert book.name(5) == SCRIPT
    assert Image.open(io.BytesIO(book.picture(7))).size == (192, 256)
    assert not book.has(6)
    with pytest.raises(ParameterError, match="has 3 pictures for 2 items"):
        folder_pictures(tmp_path, np.array([5, 7]))
    (tmp_path / "b.png").write_bytes(b"no picture")
    with pytest.raises(ViewsError, match="no readable"):
        folder_pictures(tmp_path, np.array([5, 7, 9])).picture(7)


def test_links_out_of_the_folder_are_passed_over(tmp_path):
    (tmp_path / "in").mkdir()
    Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(tmp_path / "secret.png")
    Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(tmp_path / "in" / "1.png")
    (tmp_path / "in" / "2.png").symlink_to(tmp_path / "secret.png")
    book = folder_pictures(tmp_path / "in", np.array([1, 2]))
    assert book.has(1)
    assert not book.has(2)


def test_pictures_are_read_into_the_views_the_library_makes():
    """Views of a picture are those of extract_features at the same size; views of another width are left out."""
    from quorumhash.web.opening import _picture_reader

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 24, 24, 3), dtype=np.uint8)
    made = qh.extract_features(images, ["gist", "colour"], is_cached=False)
    model = qh.LSHHasher(16).fit({**dict(made.items()), "texture": rng.standard_normal((40, 7))})
    views = _picture_reader(model, 24)(images[3])
    assert views.names == ("gist", "colour")
    for name in views:
        np.testing.assert_allclose(views[name][0], made[name][3], rtol=1e-4, atol=1e-5)
    with pytest.raises(ParameterError, match="got 3"):
        _picture_reader(model, 3)


@pytest.mark.filterwarnings("default")
def test_no_request_of_the_description_ends_in_a_500(client, tmp_path):
    """schemathesis makes requests from the OpenAPI description, right and wrong ones."""
    pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'quorumhash[all]'")
    address = str(client.base_url).rstrip("/")
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json", "--checks",
               "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
               "--max-examples", "8", "--seed", "1", "--generation-database", "none", "--phases",
               "examples,coverage,fuzzing", "--request-timeout", "60", "--no-shrink"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=400)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    tally = re.search(r"(\d+) generated, (\d+) passed\n", done.stdout)
    assert int(tally[1]) == int(tally[2]) > 200


def test_serve_shows_files_and_ends_by_ctrl_c(tmp_path, collection):
    """The command as people call it: a model, an index, views, labels, and a folder with one picture an item."""
    collection.hasher.save(tmp_path / "items.qh")
    with qh.HammingIndex.open(tmp_path / "items.qhx", 32) as index:
        index.add(collection.codes, model=collection.hasher)
    views = collection.views[:N_STORED]
    np.savez(tmp_path / "views.npz", **dict(views.items()))
    np.save(tmp_path / "labels.npy", collection.labels[:N_STORED])
    (tmp_path / "pictures").mkdir()
    for i, pixels in enumerate(views["pixels"].reshape(-1, 8, 8)):
        name = f"item {i:03d}{SCRIPT if i == 3 else '.png'}"
        Image.fromarray((15 * pixels).astype(np.uint8)).save(tmp_path / "pictures" / name)
    command = [sys.executable, "-c", "from quorumhash.cli import main; main()", "serve", "items.qh", "items.qhx",
               "--views", "views.npz", "--labels", "labels.npy", "--images", "pictures", "--port", "0",
               "--json"]  # fmt: skip
    interruptible = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes, **interruptible) as process:
        facts = json.loads(process.stdout.readline())
        assert facts["items"] == N_STORED
        assert facts["url"].startswith("http://127.0.0.1:")
        with httpx.Client(base_url=facts["url"]) as client:
            assert client.get("/api/items/3").json()["name"] == f"item 003{SCRIPT}"
            assert client.get("/api/items/5/picture").status_code == 200
            told = client.get("/api/collection").json()
            assert (told["has_views"], told["has_labels"], told["takes_uploads"]) == (True, True, False)
            assert client.post("/api/search", content=as_png(np.zeros((8, 8))), headers=PNG).status_code == 400
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "quorumhash: stopped; every file is the old one or a whole new one."
