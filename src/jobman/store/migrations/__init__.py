"""Numbered, immutable steps of the schema, each with its checksum, the SHA-256 of its text.

A migration never changes once released; a test compares every file with its checksum here. The checksums are constants
because reading and hashing the files at every start would cost more than the query that they protect.
"""

from __future__ import annotations

from jobman.errors import StoreForeignError, StoreNewerError

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from jobman.store.connection import Store

APPLICATION_ID = 0x4A4F424D  # "JOBM"
MIGRATIONS = (
    ("0001_jobs", "43996cbdb6f12be45d4479fbe453a643a0be8460569a0711218bfbb193038900"),
    ("0002_scheduling", "660890237d17f79e93b216f8e8676c5c8d3cc93e0d48b30cd11c133499b565b6"),
    ("0003_live_input", "0a97f18980879ef8d4597f3e29aa47b4aa10a5e6611627534cfb744142d72acb"),
    ("0004_pruning", "72ef501b2e4dfa8f97cbdf5660b65b43ff8a45348ed724b30f643c5f548f710b"),
    ("0005_notifications", "d782d5c0c1f2ede10fd969df57ba770daabef4a364f9e0c1a9070da9986159a4"),
    ("0006_seen_to_fit", "d8837c42cb015d8f14df202c710e44d55755c1eb488ef771a0b500a99abced5f"),
    ("0007_active", "8b1025a6f10d29613c99202b085e154de80d0c5b27024dbd9e1eee526374e42c"),
    ("0008_listing", "ca8cba3a6fd33376d53305dbc8d33836a2f04620d81b686037a5161bd7ec7853"),
)
SCHEMA_VERSION = len(MIGRATIONS)


def ensure_schema(store: Store) -> None:
    """Bring the database to `SCHEMA_VERSION`, or refuse it; writes nothing when it is there already (O.66).

    Raises:
        StoreForeignError: another program's database, or a history that does not match ours.
        StoreNewerError: written by a newer Jobman.
    """
    application_id, version = _header(store)
    if (application_id, version) == (0, 0) and not store.read_only:
        _create(store)
    elif application_id != APPLICATION_ID:
        raise StoreForeignError(path=_path(store), detail=f"application id {application_id:#x}")
    elif version > SCHEMA_VERSION:
        raise StoreNewerError(path=_path(store), found=version, supported=SCHEMA_VERSION)
    elif version < SCHEMA_VERSION:
        _upgrade(store, version)
    check_history(store, SCHEMA_VERSION)


def _header(store: Store) -> tuple[int, int]:
    # Version first: another first command may commit both in between, and must not make us see half of it.
    version = store.execute("PRAGMA user_version")[0][0]
    return store.execute("PRAGMA application_id")[0][0], version


def _create(store: Store) -> None:
    from jobman.store.migrations._apply import create_schema

    create_schema(store)


def _upgrade(store: Store, version: int) -> None:
    from jobman.store.migrations._apply import upgrade_schema

    if store.read_only:
        detail = f"schema {version} has to be upgraded to {SCHEMA_VERSION}, and the file system is read-only"
        raise StoreForeignError(path=_path(store), detail=detail)
    upgrade_schema(store)


def check_history(store: Store, version: int) -> None:
    """Refuse a store whose migrations up to ``version`` are not ours.

    Raises:
        StoreForeignError: they are others, or more, or fewer.
    """
    rows = store.execute("SELECT version, checksum FROM schema_migrations ORDER BY version")
    expected = [(number, checksum) for number, (_, checksum) in enumerate(MIGRATIONS[:version], 1)]
    if rows != expected:
        raise StoreForeignError(path=_path(store), detail="its migrations are not the ones this Jobman knows")


def _path(store: Store) -> str:
    return f"{store.root}/jobman.db"
