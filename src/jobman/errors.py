"""What can go wrong, one class per condition, each with the exit status of its category.

An error carries fields, not text; ``template`` turns them into one message that says what happened, to what, and what
to do. Imports nothing: every start-up path loads this module.
"""

from __future__ import annotations


class JobmanError(Exception):
    """Any condition that Jobman reports to its user."""

    exit_status = 1
    template = "{detail}"

    def __init__(self, **fields: object) -> None:
        super().__init__(fields)
        self.fields = fields

    def __str__(self) -> str:
        # A quoted word of the command line shows a byte that is not UTF-8 as the surrogate it is kept as.
        return self.template.format_map(self.fields).replace("\\udc", "\\x")


# --- Usage and validation: exit status 2 ---------------------------------------------------------------------------


class UsageError(JobmanError):
    """The command line does not say what to do; fields: ``detail``."""

    exit_status = 2
    template = "invalid command usage: {detail}"


class InvalidValueError(JobmanError):
    """A value lies outside what its grammar or range allows; fields: ``what``, ``value``, ``expected``."""

    exit_status = 2
    template = "{what}: invalid value {value!r}: expected {expected}"


class InvalidSpecError(JobmanError):
    """A job specification breaks one of its rules; fields: ``detail``."""

    exit_status = 2
    template = "invalid job specification: {detail}"


class InvalidConfigError(JobmanError):
    """A configuration source says what it must not; fields: ``where``, ``detail``."""

    exit_status = 2
    template = "invalid configuration: {where}: {detail}"


# --- Nothing there: exit status 3 ----------------------------------------------------------------------------------


class JobNotFoundError(JobmanError):
    """No job answers to a selector; fields: ``selector``."""

    exit_status = 3
    template = "no job matches {selector!r}: give an ID, a prefix of at least 8 characters, or an exact name"


class RunNotFoundError(JobmanError):
    """A job has no such run; fields: ``job``, ``run``."""

    exit_status = 3
    template = "job {job} has no run {run}: jobman show {job} lists its runs"


class LogsPrunedError(JobmanError):
    """The logs of a run were removed; fields: ``job``, ``run``, ``pruned_at``."""

    exit_status = 3
    template = "the logs of run {run} of job {job} were pruned at {pruned_at}"


class LogsBeingPrunedError(JobmanError):
    """The logs of a run are being removed; fields: ``job``, ``run``."""

    exit_status = 3
    template = "the logs of run {run} of job {job} are being removed by jobman clean"


# --- More than one there: exit status 4 ----------------------------------------------------------------------------


class AmbiguousSelectorError(JobmanError):
    """Several jobs answer to a selector; fields: ``selector``, ``candidates``."""

    exit_status = 4
    template = "{selector!r} matches several jobs ({candidates}): give a full ID"


# --- Not in this state: exit status 5 ------------------------------------------------------------------------------


class ConflictError(JobmanError):
    """The job is not in a state that allows the request; fields: ``detail``."""

    exit_status = 5


class TransitionError(ConflictError):
    """A transition is not legal from the present phase; fields: ``transition``, ``entity``, ``phase``."""

    template = "{transition} is not possible while {entity} is {phase}"


class InvariantError(JobmanError):
    """A snapshot contradicts itself: a defect, or a damaged store; fields: ``entity``, ``detail``."""

    template = "inconsistent record of {entity}: {detail}; jobman doctor examines the store"


class ClaimError(ConflictError):
    """A supervisor may not have the job; fields: ``job``, ``detail``."""

    template = "job {job} cannot be claimed: {detail}"


class RevisionConflictError(ConflictError):
    """Somebody else changed the entity first; fields: ``entity``."""

    template = "{entity} was changed by somebody else at the same time: try again"


class DependencyConflictError(ConflictError):
    """The dependencies of a job contradict each other; fields: ``job``, ``first``, ``second``."""

    template = "contradictory dependencies on job {job}: {first} and {second}"


class LimitConflictError(ConflictError):
    """A change of limits would strand jobs; fields: ``scope``, ``detail``, ``jobs``."""

    template = "{scope} cannot be changed: {detail} (job {jobs})"


class UnknownPoolError(ConflictError):
    """A job asks for a pool that the store does not have; fields: ``pool``."""

    template = "there is no pool {pool!r}: declare it under concurrency.pools and run jobman config apply"


class TooManySlotsError(ConflictError):
    """A job asks for more slots than its limits could ever give; fields: ``slots``, ``scope``, ``capacity``."""

    template = "{slots} slots never fit into {scope} with its {capacity}"


class NoRunYetError(ConflictError):
    """Logs were asked of a job that has not run; fields: ``job``, ``phase``."""

    template = "job {job} has no run yet (it is {phase}): jobman logs --follow {job} waits for one"


class NeverRunError(ConflictError):
    """Logs were asked of a job that ended without a run; fields: ``job``."""

    template = "job {job} ended without a run: jobman status {job} says why"


class NoLiveInputError(ConflictError):
    """Input was sent to a job that does not take any; fields: ``job``, ``stdin``."""

    template = "job {job} takes no input, its standard input is {stdin}: only jobs of jobman run --stdin live do"


class InputEndedError(ConflictError):
    """The run that took the input is over, or is not to get more; fields: ``job``, ``detail``, ``delivered``."""

    template = "job {job}: {detail}, after {delivered} bytes of input"


class NotCompletedError(ConflictError):
    """Something was asked for that only a completed job allows; fields: ``job``, ``phase``."""

    template = "job {job} is {phase}: only a completed job can be cleaned"


class NoActiveRunError(ConflictError):
    """The run asked for is not the active one; fields: ``job``, ``run``."""

    template = "run {run} of job {job} is not active"


# --- A part of it: exit status 6 ------------------------------------------------------------------------------------


class ShortInputError(JobmanError):
    """The target did not take all of the input; fields: ``job``, ``delivered``."""

    exit_status = 6
    template = "job {job} took only {delivered} bytes of the input: its command reads no more of it"


# --- The machine and the store: exit status 1 ----------------------------------------------------------------------


class StateDirectoryError(JobmanError):
    """The state directory cannot be used; fields: ``path``, ``detail``."""

    template = "open job manager: state directory {path}: {detail}; JOBMAN_STATE_DIR or --state-dir choose another"


class ConfigFileError(JobmanError):
    """A configuration file cannot be read; fields: ``path``, ``detail``."""

    template = "configuration file {path}: {detail}"


class StoreFileError(JobmanError):
    """A database file is not safe to open; fields: ``path``, ``detail``."""

    template = "open job manager: {path}: {detail}"


class StoreForeignError(JobmanError):
    """The database belongs to another program, or its history does not match ours; fields: ``path``, ``detail``."""

    template = "open job manager: {path} is not a Jobman store: {detail}"


class StoreNewerError(JobmanError):
    """The database was written by a newer Jobman; fields: ``path``, ``found``, ``supported``."""

    template = "open job manager: {path} has schema {found}, this Jobman knows {supported}: upgrade jobman"


class StoreBusyError(JobmanError):
    """Another process held the write lock for too long; fields: ``seconds``."""

    template = "the store is busy: another process has been writing for {seconds} s; try again"


class StoreFailureError(JobmanError):
    """SQLite or the file system refused; fields: ``detail``."""

    template = "the store cannot be used: {detail}"


class SecretUnavailableError(JobmanError):
    """A secret cannot be had when it is needed; fields: ``variable``, ``source``, ``detail``."""

    template = "secret missing: {source}, for {variable}, {detail}"


class BackupError(JobmanError):
    """A copy of the store cannot be made; fields: ``path``, ``detail``."""

    template = "backup {path}: {detail}"


class NotifierError(JobmanError):
    """A test event did not arrive; fields: ``notifier``, ``code``, ``detail``."""

    template = "notifier {notifier}: {code}: {detail}"


class WorkingDirectoryError(JobmanError):
    """The directory from which a job is submitted is gone; fields: ``detail``."""

    template = "the current directory cannot be used ({detail}): change to another one, or give an absolute --cwd"


class LaunchError(JobmanError):
    """No supervisor took the job over; fields: ``detail``."""

    template = "launch job supervisor: {detail}"


class EndpointError(JobmanError):
    """The socket for live input cannot be used; fields: ``path``, ``detail``."""

    template = "live input at {path}: {detail}"


class HandshakeError(JobmanError):
    """The other side of the hand-over does not speak our protocol; fields: ``detail``."""

    template = "hand over the job: {detail}"


class UnsafeLogError(JobmanError):
    """A log file or directory is not what we left there; fields: ``path``, ``detail``."""

    template = "unsafe log path {path}: {detail}"


class ActiveCaptureError(JobmanError):
    """The logs of a completed run are marked as being written; fields: ``path``."""

    template = (
        "{path} marks a log that is being recorded: nothing of that run was removed; "
        "jobman doctor --repair removes a mark that a dead supervisor has left"
    )


class MissingLogError(JobmanError):
    """A log file that the record names is gone; fields: ``path``, ``run``, ``offset`` in its stream."""

    template = "missing log file {path} of run {run}, which began at byte {offset}"


class CorruptIndexError(JobmanError):
    """The chunk index contradicts itself or its streams; fields: ``path``, ``run``, ``offset``, ``detail``."""

    template = (
        "corrupt log chunk index {path} of run {run} at byte {offset}: {detail}; "
        "jobman logs --stream stdout still works"
    )


class InterruptedClientError(JobmanError):
    """A signal ended a client that was waiting; fields: ``doing``."""

    template = "{doing}: interrupted; the job goes on"


class DetachedError(JobmanError):
    """A client that was attached to a job left it; fields: ``job``."""

    template = "detached; job {job} goes on: jobman logs --follow {job} shows its output, jobman cancel {job} ends it"


class OutputError(JobmanError):
    """Our own output cannot be written; fields: ``detail``."""

    template = "standard output: {detail}"


class UntoldError(JobmanError):
    """A job was submitted, and what is to be printed of it cannot be; fields: ``job``, ``detail``."""

    template = (
        "standard output: {detail}; job {job} was submitted and goes on: "
        "jobman logs --follow {job} shows its output, jobman cancel {job} ends it"
    )


class OutcomeError(JobmanError):
    """A job that was waited for did not succeed; fields: ``job``, ``outcome``."""

    template = "job {job} completed with outcome {outcome}"


class WaitTimeoutError(JobmanError):
    """``wait --timeout`` elapsed; fields: ``pending``, a number of jobs in words."""

    exit_status = 124
    template = "wait timed out with {pending} not completed"


class UnsupportedPlatformError(JobmanError):
    """Jobman has not been verified on this operating system; fields: ``platform``."""

    template = "jobman does not support {platform} yet"
