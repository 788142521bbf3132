"""Wrong words on the command line: one sentence, where to look, exit status 2, for every command there is."""

import pytest
import typer
from commands import call as quorumhash
from typer.main import get_command

from quorumhash.cli import app
from quorumhash.usage import ORDER, Commands


def walk(command, *words):
    yield words, command
    for name, part in getattr(command, "commands", {}).items():
        yield from walk(part, *words, name)


ALL = dict(walk(get_command(app)))
GROUPS = {words: command for words, command in ALL.items() if hasattr(command, "commands")}
LEAVES = {words: command for words, command in ALL.items() if words not in GROUPS}
NUMBERS = [
    ("fit views.npz", "--bits"), ("fit views.npz", "--seed"), ("encode items.qh views.npz", "--first-id"),
    ("audit views.npz", "--seed"), ("audit views.npz", "--false-alarms"), ("index add items.qhx codes.npy", "--bits"),
    ("search items.qh items.qhx query.npz", "-k"), ("search items.qh items.qhx query.npz", "--radius"),
    ("serve", "--port"), ("serve", "--rate"), ("serve", "--uploads"), ("bench run panel.toml", "--jobs"),
    ("bench report panel.toml", "--jobs"), ("bench paper panel.toml", "--jobs"),
]  # fmt: skip


def sentence(*words):
    """What wrong usage gives, less the name of the program."""
    done = quorumhash(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("quorumhash: ")
    assert done.stderr.endswith(".\n")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("quorumhash: ").strip()


def named(words):
    return " ".join(("quorumhash", *words))


@pytest.mark.parametrize("words", ALL, ids=named)
def test_unknown_options_are_named_and_the_help_of_their_command_too(words):
    said = sentence(*words, "--polish")
    assert "--polish" in said
    assert said.endswith(f"see {named(words)} --help.")


@pytest.mark.parametrize("words", GROUPS, ids=named)
def test_unknown_commands_are_named(words):
    said = sentence(*words, "polish")
    assert said.startswith("no such command 'polish'")
    assert said.endswith(f"see {named(words)} --help.")


@pytest.mark.parametrize(
    "words", [words for words, leaf in LEAVES.items() if any(p.required for p in leaf.params)], ids=named
)
def test_missing_arguments_are_named(words):
    first = next(parameter for parameter in LEAVES[words].params if parameter.required)
    said = sentence(*words)
    assert said.startswith(f"missing argument '{first.metavar or first.name}'")
    assert said.endswith(f"see {named(words)} --help.")


@pytest.mark.parametrize(("words", "option"), NUMBERS)
def test_values_that_are_no_numbers_are_told(words, option):
    said = sentence(*words.split(), option, "many")
    assert option in said
    assert "'many'" in said
    assert said.endswith(" --help.")


def test_words_too_many_and_values_too_few():
    assert "unexpected extra argument" in sentence("doctor", "now")
    assert sentence("fit", "views.npz", "--bits").endswith("requires an argument; see quorumhash fit --help.")


def test_near_misses_are_told_what_may_be_meant():
    assert "did you mean --bits" in sentence("fit", "views.npz", "--bit", "3")
    assert "." not in sentence("serch", "a").removesuffix(".")


def test_debug_after_the_command_is_told_its_place():
    assert sentence("fit", "views.npz", "--debug").startswith("--debug goes before the command")


def test_a_group_alone_shows_its_help():
    for words in GROUPS:
        done = quorumhash(*words)
        assert f"Usage: {named(words)} " in done.stdout + done.stderr
        assert "quorumhash: " not in done.stderr


@pytest.mark.parametrize("words", LEAVES, ids=named)
def test_every_command_has_json(words):
    (option,) = [parameter for parameter in LEAVES[words].params if "--json" in parameter.opts]
    assert option.is_flag


def test_commands_stand_in_the_order_of_use():
    root = ALL[()]
    assert isinstance(root, Commands)
    assert tuple(root.list_commands(typer.Context(root))) == ORDER
