"""Who is told of what happens to a job, and how (contract, E.1, E.3 and L).

Values only; they are part of a job's specification, so that a later change of the configuration changes nothing for a
job that is on its way. A secret is named by the place where it lies, never by what it is.
"""

from __future__ import annotations

from jobman.model.secrets import is_environment_name, place_problem, secrets_problem
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobman.model.events import NotifyEvent
    from jobman.model.secrets import SecretVariable

SECOND_NS = 1_000_000_000
DEFAULT_TIMEOUT_NS = 10 * SECOND_NS
DEFAULT_BUDGET_NS = 60 * SECOND_NS
DEFAULT_OUTPUT_LIMIT = 65_536
RESPONSE_LIMIT = 65_536
MESSAGE_LIMIT = 1 << 20
MAX_ATTEMPTS = 100
MAX_PORT = 65_535


class NotifierKind(StrEnum):
    """By what a message travels."""

    COMMAND = "command"
    HTTP = "http"
    SMTP = "smtp"


class TlsMode(StrEnum):
    """How a mail server is spoken to: encrypted from the first byte, or from STARTTLS on."""

    STARTTLS = "starttls"
    IMPLICIT = "implicit"


class RetryPolicy(NamedTuple):
    """How often a delivery is tried, and how long in between: ``delay_ns`` doubled each time up to ``max_delay_ns``."""

    max_attempts: int = 3
    delay_ns: int = SECOND_NS
    max_delay_ns: int = 60 * SECOND_NS


class CommandTarget(NamedTuple):
    """A program that reads the message; ``assignments`` and ``secrets`` are its whole environment."""

    executable: str
    arguments: tuple[str, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    secrets: tuple[SecretVariable, ...] = ()
    output_limit: int = DEFAULT_OUTPUT_LIMIT
    working_directory: str = ""


class HttpTarget(NamedTuple):
    """An address that the message is posted to; in ``secret_headers`` the name of a secret is the header's."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    secret_headers: tuple[SecretVariable, ...] = ()
    signing_secret: SecretVariable | None = None
    signature_header: str = ""
    allow_http: bool = False
    allow_private: bool = False
    follow_redirects: bool = False


class SmtpTarget(NamedTuple):
    """A mail server and who is written to; ``address`` is ``host:port``."""

    address: str
    sender: str
    recipients: tuple[str, ...]
    mode: TlsMode
    username: str = ""
    password: SecretVariable | None = None
    subject_prefix: str = ""
    server_name: str = ""


class Notifier(NamedTuple):
    """One way to tell somebody; of the three targets exactly one is set.

    ``budget_ns`` begins with the event: nothing is sent after it, whatever the retries say (D5).
    """

    name: str
    command: CommandTarget | None = None
    http: HttpTarget | None = None
    smtp: SmtpTarget | None = None
    timeout_ns: int = DEFAULT_TIMEOUT_NS
    budget_ns: int = DEFAULT_BUDGET_NS
    retry: RetryPolicy = RetryPolicy()

    @property
    def kind(self) -> NotifierKind:
        """By what it sends."""
        if self.command is not None:
            return NotifierKind.COMMAND
        return NotifierKind.HTTP if self.http is not None else NotifierKind.SMTP

    def secrets(self) -> tuple[SecretVariable, ...]:
        """Return the places of all secrets that sending needs."""
        if self.command is not None:
            return self.command.secrets
        if self.http is not None:
            signing = self.http.signing_secret
            return self.http.secret_headers + (() if signing is None else (signing,))
        return () if self.smtp is None or self.smtp.password is None else (self.smtp.password,)


class Subscription(NamedTuple):
    """Of what a notifier tells."""

    notifier: str
    events: tuple[NotifyEvent, ...]


def subscriptions_problem(subscriptions: Iterable[Subscription], notifiers: Iterable[Notifier]) -> str | None:
    """Return what is wrong with who is told of what, in words, or ``None``."""
    defined = [notifier.name for notifier in notifiers]
    if len(set(defined)) != len(defined):
        return "a notifier is defined twice"
    seen = set()
    for name, events in subscriptions:
        if name not in defined:
            return f"notifier {name!r} has no definition"
        if name in seen:
            return f"notifier {name!r} is named twice"
        if not events or len(set(events)) != len(events):
            return f"notifier {name!r} must be told of at least one event, and of each once"
        seen.add(name)
    return next((problem for notifier in notifiers if (problem := notifier_problem(notifier))), None)


def notifier_problem(notifier: Notifier) -> str | None:
    """Return what is wrong with a notifier, in words, or ``None``.

    What a configuration says is held to more rules where it is read; these are the ones without which a specification
    cannot be stored or acted upon (contract, E.3).
    """
    name, retry = notifier.name, notifier.retry
    if not name or name != name.strip() or not name.isprintable():
        return f"the name of a notifier, {name!r}, is empty, begins or ends with a space, or cannot be printed"
    if [notifier.command, notifier.http, notifier.smtp].count(None) != 2:
        return f"notifier {name}: exactly one of command, http and smtp is needed"
    if notifier.timeout_ns <= 0 or notifier.budget_ns <= 0:
        return f"notifier {name}: timeout and budget must be positive"
    if not 1 <= retry.max_attempts <= MAX_ATTEMPTS:
        return f"notifier {name}: attempts must be 1 to {MAX_ATTEMPTS}"
    if retry.delay_ns < 0 or (retry.max_delay_ns and retry.max_delay_ns < retry.delay_ns):
        return f"notifier {name}: the longest delay is shorter than the first"
    problem = next((found for secret in notifier.secrets() if (found := place_problem(*secret))), None)
    if problem is None:
        problem = _command_problem(notifier.command) or _http_problem(notifier.http) or _smtp_problem(notifier.smtp)
    return f"notifier {name}: {problem}" if problem else None


def _command_problem(command: CommandTarget | None) -> str | None:
    if command is None:
        return None
    words = (command.executable, *command.arguments, command.working_directory)
    if not command.executable.startswith("/") or any("\0" in word for word in words):
        return "the program needs an absolute path, and no word may hold a NUL"
    if not 0 <= command.output_limit <= MESSAGE_LIMIT:
        return f"the output limit must be at most {MESSAGE_LIMIT} bytes"
    for variable, value in command.assignments:
        if not is_environment_name(variable) or "\0" in value:
            return f"environment variable {variable!r} is not of the form [A-Za-z_][A-Za-z0-9_]*, or holds a NUL"
    return secrets_problem(command.secrets, [variable for variable, _ in command.assignments])


def _http_problem(http: HttpTarget | None) -> str | None:
    if http is None:
        return None
    scheme, _, rest = http.url.partition("://")
    if scheme not in (("https", "http") if http.allow_http else ("https",)) or not rest.partition("/")[0]:
        return "the URL must begin with https:// and name a host"
    names = [name.lower() for name, _ in http.headers] + [secret.name.lower() for secret in http.secret_headers]
    return "a header is given twice" if len(set(names)) != len(names) else None


def _smtp_problem(smtp: SmtpTarget | None) -> str | None:
    if smtp is None:
        return None
    host, _, port = smtp.address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 1 <= int(port[:6]) <= MAX_PORT:
        return "the address must be host:port"
    if not smtp.recipients or any(not text.isprintable() for text in (smtp.sender, *smtp.recipients)):
        return "there must be a recipient, and no address may hold control characters"
    if (smtp.password is None) != (not smtp.username):
        return "a user name and a password are needed together"
    return None if all(char not in smtp.subject_prefix for char in "\r\n\0") else "the prefix must be one line"
