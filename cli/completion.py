"""Shell completion: Click does it, this says how to switch it on."""

import click

_HOW = {
    "bash": ("~/.bashrc", 'eval "$(_SQSQLITE_COMPLETE=bash_source sqsqlite)"'),
    "zsh": ("~/.zshrc", 'eval "$(_SQSQLITE_COMPLETE=zsh_source sqsqlite)"'),
    "fish": ("~/.config/fish/completions/sqsqlite.fish", "_SQSQLITE_COMPLETE=fish_source sqsqlite | source"),
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(shell: str) -> None:
    r"""Print how to switch shell completion on.

    \b
      sqsqlite completion bash >> ~/.bashrc

    Commands, flags, attributes and the names of queues are completed, these from the file that the line speaks of
    (--db, else SQSQLITE_DB, else ./sqsqlite.db).
    """
    place, command = _HOW[shell]
    click.echo(f"# in {place}:\n{command}")
