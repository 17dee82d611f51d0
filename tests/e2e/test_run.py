"""``jobman run``, from the words of a shell to the recorded end."""

from __future__ import annotations

from tests.support import Cli


def test_a_command_runs_to_success_and_leaves_its_record(cli: Cli) -> None:
    job_id = cli.finish("sh", "-c", "echo hello; echo oops >&2")

    detail = cli.json("show", job_id)

    assert detail["summary"]["outcome"] == "success"
    assert detail["runs"][0]["exit"]["exit_code"] == 0
    assert cli("logs", "--stream", "stdout", job_id).out == "hello\n"
    assert cli("logs", "--stream", "stderr", job_id).out == "oops\n"
