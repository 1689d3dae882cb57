"""Where a volume's pages come from: its manifest, or the one that is made of a list of images."""

from __future__ import annotations

from htrflow_batch import documents, iiif, redact
from htrflow_batch.config import Config
from htrflow_batch.errors import LaterError, PageError, PermanentError, TransientError
from htrflow_batch.fetch import Fetcher
from htrflow_batch.source import Source
from htrflow_batch.store import Store


def source(config: Config, fetcher: Fetcher, store: Store) -> Source:
    """The volume's source. A list of images gets a manifest, which is in the store before a page is read.

    Raises :class:`PermanentError` when there is no usable page, and :class:`TransientError` when the manifest is not to
    be had for a while.
    """
    if config.manifest_url is None:
        address = address_of(config)
        base = address.removesuffix("/manifest.json")
        shown = [documents.without_user_info(image) for image in config.images]
        published = iiif.synthetic_manifest(config.volume, shown, base)
        store.put(config.keys.source_manifest, documents.to_bytes(published), "application/json")
        return iiif.read_manifest(iiif.synthetic_manifest(config.volume, config.images, base), address)
    try:
        found = fetcher.fetch(config.manifest_url, limit_bytes=config.fetching.manifest_bytes, kind="json")
    except PageError as error:
        raise PermanentError(f"the manifest cannot be had: {error}") from error
    except LaterError as error:
        raise TransientError(f"the manifest cannot be had for a while: {error}") from error
    return iiif.read(found.content, config.manifest_url)


def address_of(config: Config) -> str:
    """The address of the volume's manifest, without secrets where it is not one of ours."""
    if config.manifest_url is None:
        return f"{config.results_url}/{config.keys.source_manifest}"
    return redact.url(config.manifest_url)
