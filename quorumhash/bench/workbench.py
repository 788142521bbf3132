"""The runs of a benchmark: done in this process or shared out among several, stored one by one, never done twice.

Workers compute and hand outcomes back; only this process writes files. So Ctrl-C may stop a worker anywhere, and what
is stored is whole.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from quorumhash.bench.processes import threads_each, walk
from quorumhash.bench.provenance import provenance
from quorumhash.bench.runs import read_run, run_path, write_run
from quorumhash.bench.settings import EQUAL, DatasetKey, Setting, damage_key, dataset_key
from quorumhash.bench.weighting import automatic_weights
from quorumhash.corruption import Damaged
from quorumhash.datasets import Dataset, load_dataset, thinned, validation_cut
from quorumhash.errors import ParameterError, QuorumHashError, RunFileError, RunFileWarning
from quorumhash.experiment import Outcome, damaged_data, empty_outcome, run_setting

Key = TypeVar("Key")
Value = TypeVar("Value")
N_DATASETS = 4  # that are held at once; those of one panel follow each other
SPLIT = "split"
N_REMEMBERED = 2  # damaged views: those at work, and the undamaged ones between them


class Datasets:
    """Datasets by name, options, number of rows and cut, each loaded and thinned once while it is among the latest."""

    def __init__(self) -> None:
        self._loaded: dict[DatasetKey, Dataset] = {}

    def get(self, setting: Setting) -> Dataset:
        """The dataset that the setting is about."""
        key = dataset_key(setting)
        return _remembered(self._loaded, key, lambda: self._load(setting), N_DATASETS)

    @staticmethod
    def _load(setting: Setting) -> Dataset:
        dataset = replace(load_dataset(setting.dataset, **setting.dataset_options), images=None)  # nobody looks at them
        if setting.is_validation:
            dataset = validation_cut(dataset)
        return dataset if setting.max_rows is None else thinned(dataset, setting.max_rows)


class Workbench:
    """Call it with a setting to get its outcome; runs on the same damaged data share it when they follow each other."""

    def __init__(self) -> None:
        self._datasets = Datasets()
        self._damaged: dict[str, Damaged] = {}  # the latest few, oldest first, by damage key
        self._weights: dict[str, dict[str, float]] = {}

    def __call__(self, setting: Setting) -> Outcome:
        """Run it; what goes wrong is an outcome too, so that one method cannot stop a panel."""
        dataset = self._datasets.get(setting)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they would break up the progress bar thousands of times
                damaged, weights = self._damaged_for(setting, dataset), self._weights_for(setting, dataset)
                return run_setting(setting, dataset, damaged, weights)
        except Exception as error:
            said = str(error).partition("\n")[0]
            sentence = said if isinstance(error, QuorumHashError) else f"{type(error).__name__}: {said}"
            return replace(empty_outcome(setting), error=sentence)

    def _damaged_for(self, setting: Setting, dataset: Dataset) -> Damaged:
        return _remembered(self._damaged, damage_key(setting), lambda: damaged_data(dataset, setting))

    def _weights_for(self, setting: Setting, dataset: Dataset) -> dict[str, float] | None:
        if setting.weights == EQUAL:
            return None
        training = self._damaged_for(setting, dataset).views[dataset.train_rows]
        return _remembered(
            self._weights, damage_key(setting), lambda: automatic_weights(training, setting.random_state)
        )


def _remembered(known: dict[Key, Value], key: Key, make: Callable[[], Value], n_kept: int = N_REMEMBERED) -> Value:
    """What was made for the key, made now if it is not among the latest few."""
    if key not in known:
        known[key] = make()
        for old in list(known)[:-n_kept]:
            del known[old]
    return known[key]


def run_settings(
    settings: list[Setting],
    folder: Path,
    n_jobs: int = 1,
    done: Callable[[str], None] = lambda _: None,
    is_retry: bool = False,
) -> Counter[str]:
    """Run and store what is not stored yet; how many were kept, done, refused and failed.

    `is_retry` does failed runs again. `done` is called with a word for every run, stored before or now.
    """
    make_folder(folder)
    wanted = [setting for setting in settings if not _is_kept(folder, setting, is_retry)]
    tally = Counter(kept=len(settings) - len(wanted))
    for _ in range(tally["kept"]):
        done("stored before")
    _require_datasets(wanted)
    facts = provenance(threads_each(n_jobs)) | {"jobs": str(n_jobs)}
    with closing(walk(Workbench, wanted, n_jobs)) as outcomes:  # closed at once on Ctrl-C, wherever it hits
        for setting, outcome in outcomes:
            write_run(folder, outcome, facts)
            tally["failed" if outcome.error else "refused" if outcome.refusal else "done"] += 1
            done(f"{setting.label or setting.hasher}, {setting.dataset} {setting.damage}")
    return tally


def _is_kept(folder: Path, setting: Setting, is_retry: bool) -> bool:
    path = run_path(folder, setting)
    if not path.is_file():
        return False
    try:
        outcome = read_run(path, setting).outcome
    except RunFileError:
        warnings.warn(f"{path.name} is damaged and is made again", RunFileWarning, stacklevel=3)
        return False
    return not (is_retry and outcome.error)


def _require_datasets(settings: list[Setting]) -> None:
    """Load every dataset once, in one split: a file that is not there is known before hours of work, not after."""
    datasets, seen = Datasets(), set()
    for setting in settings:
        options = {name: value for name, value in setting.dataset_options.items() if name != SPLIT}
        key = dataset_key(replace(setting, dataset_options=options))
        if key not in seen:
            datasets.get(setting)
            seen.add(key)


def make_folder(folder: Path) -> None:
    """Make the folder of the runs where there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"the folder {folder} cannot be made ({error.strerror or error}); give another."
        ) from error
