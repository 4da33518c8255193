"""``mutkv completion``: the script that makes a shell complete commands, options and names."""

import click
from click.shell_completion import get_completion_class

from mutkv.errors import unknown_name

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL.

    For bash: eval "$(mutkv completion bash)"
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise unknown_name("shell", shell, SHELLS)
    click.echo(kind(context.find_root().command, {}, "mutkv", "_MUTKV_COMPLETE").source())
