"""Every deliberate error of the library.

    QuorumHashError                     catch this to catch them all
    ├── ViewsError (ValueError)         views that cannot be used: rows, width, inf, an item with no view
    │   └── ViewsTypeError (TypeError)  values that are no numbers, texts that are no strings
    ├── ParameterError (ValueError)     an argument out of range
    ├── RefusedError (ValueError)       the method cannot face this setting, with the reason
    ├── ModelFileError (OSError)        a model file that is damaged, truncated, too new, or no model file
    ├── IndexFileError (OSError)        an index file that is damaged, too new, full, or no index file
    │   └── IndexLockedError            an index file that another writer holds
    ├── EngineError (RuntimeError)      the cluster that an engine works on does not answer, or went away
    ├── StoreError (OSError)            a store of another program that does not answer, or refuses
    ├── MissingExtraError (ImportError) a package that an extra brings is not installed
    ├── RunFileError (OSError)          the stored run of a benchmark that is absent or damaged
    └── DownloadError (OSError)         a file that could not be fetched, or is not the one that was meant

    QuorumHashWarning (UserWarning)     the result stands, but something about it should be known
    ├── RankWarning                     the consensus has fewer dimensions than the code has bits
    └── RunFileWarning                  the stored run of a benchmark is damaged and is made again

Each error is also the built-in that users of NumPy and scikit-learn expect. A message is one sentence:
what, where, what it must be, what was given, what to do. A hasher used before `fit` raises scikit-learn's
own NotFittedError, which tools built on scikit-learn look for.
"""


class QuorumHashError(Exception):
    """Any error that quorumhash raises on purpose."""


class ViewsError(QuorumHashError, ValueError):
    """The views given cannot be used; the message names the view and the place."""


class ViewsTypeError(ViewsError, TypeError):
    """A view holds something that is no number, or texts something that is no string."""


class ParameterError(QuorumHashError, ValueError):
    """An argument is out of range; the message says what it must be and what was given."""


class RefusedError(QuorumHashError, ValueError):
    """A method cannot face this setting; the message says why."""


class ModelFileError(QuorumHashError, OSError):
    """A model file cannot be trusted or read."""


class IndexFileError(QuorumHashError, OSError):
    """An index file cannot be trusted, read or written."""


class IndexLockedError(IndexFileError):
    """An index file is open for writing elsewhere."""


class EngineError(QuorumHashError, RuntimeError):
    """The cluster that an engine works on cannot be reached, or went away."""


class StoreError(QuorumHashError, OSError):
    """A store of another program cannot be reached, or refuses."""


class MissingExtraError(QuorumHashError, ImportError):
    """Something needs a package that is not installed; the message names the extra that brings it."""


class RunFileError(QuorumHashError, OSError):
    """A stored run of a benchmark cannot be read."""


class DownloadError(QuorumHashError, OSError):
    """A file could not be fetched, or what came is not the file that was meant."""


class QuorumHashWarning(UserWarning):
    """Any warning that quorumhash gives on purpose."""


class RankWarning(QuorumHashWarning):
    """The consensus has fewer dimensions than the code has bits."""


class RunFileWarning(QuorumHashWarning):
    """A stored run of a benchmark is damaged and is made again."""
