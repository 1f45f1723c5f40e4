"""Commands about blocks and documents."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmem.core.choices import MODALITIES
from graphmem.errors import InvalidInput
from graphmem.surfaces.cli.group import FilePath, WholeNumber, json_option, scene_option
from graphmem.surfaces.opening import Session
from graphmem.surfaces.output import none_of, print_table, printable, to_json

if TYPE_CHECKING:
    from graphmem.core.model import Block, Document

_source_option = click.option("--source", default="", help="Where it comes from, such as a channel.")


@click.group("block")
def block_command() -> None:
    """Keep texts, pictures, videos and sounds, and attach them to scenes. Each command takes --json.

    \b
    Example:
      graphmem block put 周末排班表 --scene chan:qq
    """


@block_command.command("put", short_help="Keep a text or a file.")
@click.argument("text", default="")
@click.option("--file", type=FilePath(path_type=Path), help="The picture, video or sound that TEXT is about.")
@click.option("--modality", type=click.Choice(MODALITIES), default="text", help="What it is.")
@click.option("--mime", default="", help="Its media type, such as image/png.")
@scene_option
@_source_option
@json_option
@click.pass_obj
def put_block_command(
    session: Session, /, text: str, file: Path | None, modality: str, as_json: bool, **options: Any
) -> None:
    """Keep TEXT, or a file that TEXT is about. The same content is the same block.

    \b
    Example:
      graphmem block put "the rota on the wall" --scene chan:qq
    """
    payload = None if file is None else _bytes_of(file)
    block = session.run(lambda memory: memory.put_block(text, modality=modality, payload=payload, **options))
    _print_block(block, as_json=as_json)


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput("--file", str(file), f"cannot be read: {error.strerror}") from error


@block_command.command("show", short_help="Show a block.")
@click.argument("block_id", metavar="ID")
@click.option("--save", type=click.File("wb", lazy=True), help="Write the payload into a file; - for standard output.")
@json_option
@click.pass_obj
def show_block_command(session: Session, /, block_id: str, save: Any, as_json: bool) -> None:
    """Show the block ID, or save its payload.

    \b
    Example:
      graphmem block show blk_f73420be11d28f740e9286eb
    """
    with session.open(create=False) as memory:
        block = memory.block(block_id, payload=save is not None)
    if save is None:
        _print_block(block, as_json=as_json)
        return
    if block.payload is None:
        raise InvalidInput("--save", block_id, "the block has no payload; leave the option out to see its text")
    save.write(block.payload)


@block_command.command("delete", short_help="Delete a block for good.")
@click.argument("block_id", metavar="ID")
@json_option
@click.pass_obj
def delete_block_command(session: Session, /, block_id: str, as_json: bool) -> None:
    """Delete the block ID for good, from its scenes and documents too.

    \b
    Example:
      graphmem block delete blk_f73420be11d28f740e9286eb
    """
    with session.open(create=False) as memory:
        memory.delete_block(block_id)
    click.echo(to_json({"deleted": block_id}) if as_json else printable(f"deleted {block_id}"))


def _print_block(block: "Block", *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(dataclasses.replace(block, payload=None)))
        return
    columns = ["block", "modality", "bytes#", "text", "scenes", "created (UTC)"]
    row = (block.id, block.modality, block.size, block.text, ", ".join(block.scenes), block.created_at[:16])
    print_table(columns, [row], empty="")


@click.group("document")
def document_command() -> None:
    """Keep whole texts, find them by words, take them out again. Each command takes --json.

    \b
    Example:
      graphmem document put "nginx runs on port 4379" --scene chan:qq
      graphmem document query nginx
    """


@document_command.command("put", short_help="Keep a text as a whole.")
@click.argument("text", default="")
@click.option("--file", type=click.File("r", encoding="utf-8-sig"), help="A file of text; - for standard input.")
@click.option("--summary", default="", help="What it says in short.  [default: made of its words]")
@click.option("--tag", "tags", multiple=True, help="May be repeated; 10 are kept.")
@click.option("--entity", "entities", multiple=True, help="Who or what it is about; may be repeated; 20 are kept.")
@click.option("--block", "blocks", multiple=True, metavar="ID", help="A block that belongs to it; may be repeated.")
@scene_option
@_source_option
@json_option
@click.pass_obj
def put_document_command(session: Session, /, text: str, file: Any, as_json: bool, **options: Any) -> None:
    """Keep TEXT, or the text of a file, as a whole. The same text is the same document.

    \b
    Example:
      graphmem document put "nginx runs on port 4379" --scene chan:qq --tag nginx
    """
    if bool(text) == (file is not None):
        raise click.UsageError("give TEXT, or --file FILE")
    try:
        whole = text if file is None else file.read()
    except UnicodeDecodeError as error:
        raise InvalidInput("--file", file.name, f"is no UTF-8 text: {error.reason} at byte {error.start}") from None
    document = session.run(lambda memory: memory.put_document(whole, **options))
    if as_json:
        click.echo(to_json(document))
    else:
        _print_documents([document])


@document_command.command("query", short_help="Find documents by words.")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=WholeNumber(0), default=3, help="How many at the most.  [default: 3]")
@json_option
@click.pass_obj
def query_documents_command(session: Session, /, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find the documents that hold most of the words.

    \b
    Example:
      graphmem document query nginx port
    """
    with session.open(create=False) as memory:
        found = memory.query_documents(" ".join(words), limit=limit)
    if as_json:
        click.echo(to_json(found))
    else:
        _print_documents(found, empty=none_of(limit, "no document holds these words"))


@document_command.command("consume", short_help="Print a document and remove it.")
@click.argument("document_id", metavar="ID")
@json_option
@click.pass_obj
def consume_document_command(session: Session, /, document_id: str, as_json: bool) -> None:
    """Print the text of the document ID and remove it for good.

    \b
    Example:
      graphmem document consume doc_b98e2c77b53c36b0051dfcc0
    """
    with session.open(create=False) as memory:
        document = memory.consume_document(document_id)
    click.echo(to_json(document) if as_json else "\n".join(map(printable, document.text.splitlines())))


def _print_documents(documents: "list[Document] | tuple[Document, ...]", *, empty: str = "") -> None:
    rows = [
        (one.id, one.summary, ", ".join(one.tags), ", ".join(one.scenes), one.access_count, one.created_at[:16])
        for one in documents
    ]
    columns = ["document", "summary", "tags", "scenes", "asked for#", "created (UTC)"]
    print_table(columns, rows, empty=empty)
