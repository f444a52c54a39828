"""The project's URLs in a release: the sources name no repository, so that a fork has its own."""

from __future__ import annotations

import os

from hatchling.metadata.plugin.interface import MetadataHookInterface


class CustomMetadataHook(MetadataHookInterface):
    """Reads ``COMPILE_GATE_REPOSITORY``, as ``owner/name`` on GitHub, and the commit in ``GITHUB_SHA``."""

    def update(self, metadata: dict[str, object]) -> None:
        """Add the URLs; none where the variable is not set."""
        owner, _, name = os.environ.get("COMPILE_GATE_REPOSITORY", "").partition("/")
        source = f"https://github.com/{owner}/{name}"
        urls = {
            "Documentation": f"https://{owner}.github.io/{name}/",
            "Source": source,
            "Issues": f"{source}/issues",
            "Changelog": f"{source}/blob/main/CHANGELOG.md",
        }
        if commit := os.environ.get("GITHUB_SHA", ""):
            urls["Action"] = f"{source}/tree/{commit}"  # what `init` pins in a workflow
        metadata["urls"] = urls if name else {}
