"""``mutkv weights``: make the trained weights again."""

from pathlib import Path

import click


@click.group()
def weights() -> None:
    """Train the small models that ship with mutkv."""


@weights.command("train")
@click.option("--family", "families", multiple=True, help="Train this family only; repeatable.  [default: all]")
@click.option(
    "--out", type=click.Path(path_type=Path), default="trained", show_default=True, help="Folder to write to."
)
def train_command(families: tuple[str, ...], out: Path) -> None:
    """Train each family down to its fixed loss and write safetensors files."""
    from mutkv.weights.train import FAMILIES, save_family, train_family

    for name in families or tuple(FAMILIES):
        family = train_family(name, show_loss)
        click.echo("", err=True)
        path = save_family(out, family)
        click.echo(f"{path}: {family.steps} steps, losses {', '.join(f'{loss:.3f}' for loss in family.losses)}")


def show_loss(step: int, loss: float) -> None:
    """Show the largest held-out loss on one line of stderr."""
    click.echo(f"\rstep {step}, held-out loss {loss:.3f} ", nl=False, err=True)
