"""The deep rival of the benchmarks learns: small, on this machine's processor."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from quorumhash import Views

pytestmark = pytest.mark.extra

FILE = Path(__file__).parents[1] / "benchmarks" / "quality" / "deep_rival.py"


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="the extra torch is not installed")


@pytest.fixture(scope="module")
def deep(torch):
    spec = importlib.util.spec_from_file_location("deep_rival", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["deep_rival"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["deep_rival"]


def test_spoiling_changes_the_share_and_leaves_a_view(deep, torch):
    views = [torch.randn(4000, 3), torch.randn(4000, 2)]
    present = torch.ones(4000, 2)
    present[:500, 1] = 0
    draw = torch.Generator().manual_seed(0)
    changed, there = deep.spoiled(views, present, 0.4, draw)
    assert (there.sum(dim=1) >= 1).all()
    assert ((there == 0) | (there == present)).all()
    assert 0.1 < (present - there)[500:].mean() < 0.22  # 0.2 less what would leave no view
    is_swapped = ((changed[0] - views[0].roll(1, dims=0)).norm(dim=1) < 2.5) & (
        (changed[0] - views[0]).norm(dim=1) > 2.5
    )
    assert 0.02 < is_swapped.float().mean() < 0.25
    assert torch.equal(deep.spoiled(views, present, 0.0, draw)[1], present)


def test_an_absent_view_has_no_say(deep, torch):
    torch.manual_seed(0)
    network = deep.Network([3, 2], 8, 16).eval()
    one, other = torch.randn(5, 3), torch.randn(5, 2)
    alone = torch.tensor([[1.0, 0.0]]).expand(5, 2)
    assert torch.equal(network([one, other], alone), network([one, 99 * other], alone))
    both = torch.ones(5, 2)
    assert not torch.equal(network([one, other], both), network([one, 99 * other], both))


def test_straight_through_gives_signs_with_a_gradient(deep, torch):
    scores = torch.tensor([-2.0, -0.1, 0.3], requires_grad=True)
    code = deep.activated(scores, 0.5, is_straight=True)
    assert code.tolist() == pytest.approx([-1.0, -1.0, 1.0])
    code.sum().backward()
    assert scores.grad.tolist() == pytest.approx((1 - np.tanh([-2.0, -0.1, 0.3]) ** 2).tolist(), abs=1e-6)


def test_clusters_get_codes_of_their_own(deep, torch):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 100)
    rows = [torch.tensor(0.3 * rng.standard_normal((200, 4)) + labels[:, None] * 2 - 1, dtype=torch.float32)] * 2
    present = torch.ones(200, 2)
    network = deep.learn(deep.Plan(hidden=32, batch=64), rows, present, n_bits=8, n_steps=80, seed=0)
    bits = (network(rows, present) >= 0).numpy()
    within = np.mean([np.abs(bits[labels == k].mean(axis=0) - 0.5).mean() for k in (0, 1)])
    between = np.abs(bits[labels == 0].mean(axis=0) - bits[labels == 1].mean(axis=0)).max()
    assert within > 0.3
    assert between > 0.9


def test_the_whole_run_writes_every_cell(deep, tmp_path, capsys):
    out = tmp_path / "deep.json"
    words = (
        "--datasets digits --bits 16 --seeds 1 --steps 30 --tuning-steps 4 --plans 2 --max-rows 300 --device cpu --out"
    )
    deep.main([*words.split(), str(out)])
    report = json.loads(out.read_text())
    assert len(report["tried"]) == 2
    assert report["chosen"] == max(report["tried"], key=lambda row: row["score"])["plan"]
    assert list(report["cells"]["digits"]) == [
        "clean 0 both 16",
        "swap 0.2 both 16",
        "noise 0.3 both 16",
        "zero 0.3 both 16",
    ]
    assert report["cells"]["digits"]["clean 0 both 16"]["map"][0] > 0.3  # chance: 0.1
    assert report["provenance"]["device"] == "cpu"
    assert str(tmp_path) not in out.read_text()


def test_weights_scale_views_and_drop_those_without(deep, torch):
    rng = np.random.default_rng(0)
    views = Views({name: rng.standard_normal((50, 3)) for name in "abc"})
    plain, _ = deep.tensors(views, np.arange(50), "cpu")
    weighted, present = deep.tensors(views, np.arange(50), "cpu", {"a": 3.0, "b": 0.0, "c": 1.0})
    assert present.shape == (50, 2)
    assert torch.allclose(weighted[0], 1.5 * plain[0])
    assert torch.allclose(weighted[1], 0.5 * plain[2])
